"""`peerway fc`: Fortran with directives. README.md of xacc says what it shares with `peerway cc`."""
