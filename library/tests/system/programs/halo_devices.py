"""Requests one halo over an array on the host and one on the GPU, and prints the error."""

from __future__ import annotations

import json
import sys

import numpy as np

import peerway


def main() -> int:
    """Request the halo and print the error."""
    with peerway.Context() as ctx:
        here = np.zeros((4, 5))
        there = ctx.allocate("cuda", here.nbytes).array("f8", here.shape)
        try:
            ctx.halo([here, there], grid=(ctx.size,))
        except peerway.Error as error:
            print(json.dumps([type(error).__name__, str(error)]), flush=True)
        else:
            print(json.dumps(["nothing", ""]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
