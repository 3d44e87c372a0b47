"""`peerway tune`: measures every available path and writes the route table."""
