"""Reads throttling and energy of AMD GPUs from gpu_metrics, a binary table of the driver amdgpu.

The kernel defines its layouts in drivers/gpu/drm/amd/include/kgd_pp_interface.h. They differ from revision to
revision, also in where a field is, so only the revisions listed here are read, and only with their exact
size. Others (1.0 to 1.2, 1.4, 1.5, those of APUs) report throttling in bits that depend on the chip.
"""

from __future__ import annotations

import struct

from peerway_jobs.agent.system import Figures

_HEADER = struct.Struct("<HBB")  # size of the table, format, revision
_STATUS = {3: (120, struct.Struct("<112xQ"))}  # revision of format 1 -> size; throttle status: MI200, RDNA
# Energy, then counters of the firmware's cycles: all, and those in which the clock was held down by the
# hardware (PROCHOT), by power, and by the heat of the socket, of its voltage regulators and of its memory.
_CYCLES = {
    6: (1664, struct.Struct("<16xQ8x6I")),  # MI300
    7: (2208, struct.Struct("<24xQ8x6I")),
    8: (3360, struct.Struct("<24xQ8x6I")),
}
_NO_FIGURE = (1 << 64) - 1
_JOULES = 2.0**-16  # unit of the energy
# Bits of the throttle status that do not depend on the chip (SMU_THROTTLER_..._BIT of amdgpu_smu.h).
_POWER = range(8)  # package power limits
_HARDWARE = (*range(16, 24), 46, 47)  # limits of current, and PROCHOT
_THERMAL = range(32, 46)


class Throttling:
    """Keeps the last counters of each GPU, to compare the next ones with them."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[int, ...]] = {}

    def figures(self, uuid: str, table: bytes) -> tuple[Figures, str]:
        """The figures in a table, and why there are none. Shares of time need two tables."""
        if len(table) < _HEADER.size:
            return {}, f"{len(table)} bytes are no table"
        size, form, revision = _HEADER.unpack_from(table)
        known, layout = (_STATUS | _CYCLES).get(revision, (0, None)) if form == 1 else (0, None)
        if layout is None or size != known or len(table) < size:
            return {}, f"throttling is not read from a table {form}.{revision} of {size} bytes"
        fields = layout.unpack_from(table)
        if revision in _STATUS:
            return ({} if fields[0] == _NO_FIGURE else _of_status(fields[0])), ""
        energy, *counters = fields
        figures: Figures = {} if energy == _NO_FIGURE else {"gpu_energy_joules_total": energy * _JOULES}
        return figures | self._since_last(uuid, tuple(counters)), ""

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
