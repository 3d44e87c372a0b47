"""What the products of Peerway share: the command line, errors, files, units and texts. It needs none of them."""
