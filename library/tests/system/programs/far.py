"""Runs another of these programs with each rank on a host of its own, as far as Peerway can tell.

far.py PROGRAM ARGUMENT...
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

if __name__ == "__main__":
    os.environ["PEERWAY_HOST_ID"] = f"host {os.environ['PEERWAY_RANK']}"
    sys.argv = sys.argv[1:]
    runpy.run_path(str(Path(__file__).with_name(sys.argv[0])), run_name="__main__")
