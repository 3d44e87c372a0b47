! Programs of other compilers include this; peerway fc needs nothing of it.
