"""What the products of Peerway share: the command line, files, units and texts. It imports none of them."""
