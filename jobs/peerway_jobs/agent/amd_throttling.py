"""Computes throttling and energy of AMD GPUs from what amd_metrics.py reads."""

from __future__ import annotations

from peerway_jobs.agent.amd_metrics import Table
from peerway_jobs.agent.system import Figures

_JOULES = 2.0**-16  # unit of the energy
# Bits of the throttle status that do not depend on the chip (SMU_THROTTLER_..._BIT of amdgpu_smu.h).
_POWER = range(8)  # package power limits
_HARDWARE = (*range(16, 24), 46, 47)  # limits of current, and PROCHOT
_THERMAL = range(32, 46)


class Throttling:
    """Keeps the last counters of each GPU, to compare the next ones with them."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, ...]] = {}

    def figures(self, uuid: str, table: Table) -> Figures:
        """The figures in a table. Shares of time need two tables."""
        figures: Figures = {} if table.energy is None else {"gpu_energy_joules_total": table.energy * _JOULES}
        if table.status is not None:
            figures |= _of_status(table.status)
        if table.cycles is not None:
            figures |= self._since_last(uuid, table.cycles)
        return figures

    def _since_last(self, uuid: str, counters: tuple[int, ...]) -> Figures:
        last = self._last.get(uuid)
        self._last[uuid] = counters
        if last is None:
            return {}
        # The counters have 32 bits and begin again at 0.
        cycles, hardware, power, *thermal = (
            (now - before) % (1 << 32) for now, before in zip(counters, last, strict=True)
        )
        if not 0 < cycles < 1 << 31 or max(hardware, power, *thermal) > cycles:
            return {}  # the same table again, or the GPU was reset
        return {
            "gpu_throttled_power_ratio": power / cycles,
            "gpu_throttled_thermal_ratio": max(thermal) / cycles,
            "gpu_throttled_hardware_ratio": hardware / cycles,
        }


def _of_status(status: int) -> Figures:
    return {
        f"gpu_throttled_{name}_ratio": int(any(status >> bit & 1 for bit in bits))
        for name, bits in (("power", _POWER), ("thermal", _THERMAL), ("hardware", _HARDWARE))
    }
