"""`python -m peerway` is the command `peerway`."""

from __future__ import annotations

from peerway_common.cli import main

main()
