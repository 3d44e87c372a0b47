"""The lines of system/programs/order.py between two ranks' memory on GPUs: each rank has a GPU of its
own where there are two.

    gpu_order.py PATH...
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from gpu_transfers import Gpu

import peerway
from peerway import _core

sys.path.append(str(Path(__file__).resolve().parents[2] / "system" / "programs"))

import order


class Memory(order.Memory):
    """A region on the GPU, read and written with the driver's copies."""

    def __init__(self, ctx: peerway.Context) -> None:
        count = sum(name.startswith("cuda") for name, _ in _core.devices())
        ordinal = ctx.rank % count
        self.device = f"cuda:{ordinal}"
        self._gpu = Gpu(ordinal)
        self.region = ctx.allocate(self.device, order.SIZE)
        self._values = np.empty(order.SIZE, np.uint8)

    def fill(self, value: int) -> None:
        super().fill(value)
        self._gpu.copy(self.region.address, self._values.ctypes.data, order.SIZE)

    def holds(self, value: int, first: int = 0) -> bool:
        self._gpu.copy(self._values.ctypes.data, self.region.address, order.SIZE)
        return super().holds(value, first)


if __name__ == "__main__":
    sys.exit(order.main(Memory))
