"""High-Performance Linpack over Peerway: how it is built and measured."""
