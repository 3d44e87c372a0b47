"""Runs another of these programs with each rank on a host of its own, as far as Peerway can tell, or so many
ranks on each host as the variable RANKS_PER_HOST says.

far.py PROGRAM ARGUMENT...
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    host = int(os.environ["PEERWAY_RANK"]) // int(os.environ.get("RANKS_PER_HOST", "1"))
    os.environ["PEERWAY_HOST_ID"] = f"host {host}"
    sys.argv = sys.argv[1:]
    runpy.run_path(str(Path(__file__).with_name(sys.argv[0])), run_name="__main__")
