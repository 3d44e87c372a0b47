"""Reads gpu_metrics, a binary table of the driver amdgpu: energy, throttling, how busy each compute die is.

The kernel defines its layouts in drivers/gpu/drm/amd/include/kgd_pp_interface.h. Revisions 1.3 and 1.6 to 1.8
differ in where a field is, so they are read only with their exact size. In 1.9 each field carries its number
and type. Others (1.0 to 1.2, 1.4, 1.5, those of APUs) report throttling in bits that depend on the chip, and
are not read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

_HEADER = struct.Struct("<HBB")  # size of the table, format, revision
_STATUS = (120, struct.Struct("<112xQ"))  # 1.3: size; throttle status of MI200 and RDNA
# Energy, then counters of the firmware's cycles: all, and those in which the clock was held down by the
# hardware (PROCHOT), by power, and by the heat of the socket, of its voltage regulators and of its memory.
_EARLY, _LATE = struct.Struct("<16xQ8x6I"), struct.Struct("<24xQ8x6I")
_CYCLES = {  # (revision, size): those fields; where the partitions' figures begin, and the bytes of each
    (6, 1664): (_EARLY, 312, 168),
    (7, 2208): (_LATE, 344, 232),
    (8, 3360): (_LATE, 344, 376),
    (8, 3872): (_LATE, 344, 440),
}
_MOST_PARTITIONS, _DIES = 8, struct.Struct("<8I")  # how busy each die of a partition is, in per cent
_NAMED = 9  # the revision in which each field carries its number
_ENERGY, _COUNTERS, _BUSY = 7, range(9, 15), 40  # numbers of the fields of 1.9
_TYPES = "BbHhIiQq"  # in the order of the kernel's numbers
_ABSENT = {4: (1 << 32) - 1, 8: (1 << 64) - 1}  # what the driver writes for a figure that it lacks, by size


class UnknownTable(ValueError):
    """A table that is not read. The message says why."""


@dataclass(slots=True)
class Table:
    """What a table says; None and empty if it does not."""

    status: int | None = None  # bits of what throttles the GPU at this moment
    energy: int | None = None  # in 2^-16 J
    cycles: tuple[int, ...] | None = None  # as in the comment above
    busy: list[list[int]] = field(default_factory=list)  # % of each die: one list of all, or by partition

    def utilization(self, place: int, partitions: int) -> float | None:
        """How busy the dies of one of the GPU's partitions are, 0 to 1; None if the table does not say."""
        if len(self.busy) != 1:
            dies = self.busy[place] if place < len(self.busy) else []
        else:
            count, rest = divmod(len(self.busy[0]), partitions)  # all partitions have equally many
            dies = [] if rest else self.busy[0][place * count : (place + 1) * count]
        return sum(dies) / len(dies) / 100 if dies else None


def decode(table: bytes) -> Table:
    """Read a table. Raises UnknownTable."""
    if len(table) < _HEADER.size:
        raise UnknownTable(f"{len(table)} bytes are no table")
    size, form, revision = _HEADER.unpack_from(table)
    if form == 1 and len(table) >= size:
        if (revision, size) == (3, _STATUS[0]):
            (status,) = _STATUS[1].unpack_from(table)
            return Table(status=None if status == _ABSENT[8] else status)
        if (revision, size) in _CYCLES:
            return _of_cycles(table, *_CYCLES[revision, size])
        if revision == _NAMED:
            return _of_fields(dict(_fields(table)))
    raise UnknownTable(f"throttling is not read from a table {form}.{revision} of {size} bytes")


def _of_cycles(table: bytes, layout: struct.Struct, first: int, length: int) -> Table:
    energy, *cycles = layout.unpack_from(table)
    busy = [_DIES.unpack_from(table, first + place * length) for place in range(_MOST_PARTITIONS)]
    return Table(
        None, None if energy == _ABSENT[8] else energy, tuple(cycles), [_known(dies) for dies in busy]
    )


def _of_fields(values: dict[int, tuple[int, ...]]) -> Table:
    energy = values.get(_ENERGY, ())
    cycles = [values.get(number, ()) for number in _COUNTERS]
    return Table(
        None,
        energy[0] if energy and energy[0] != _ABSENT[8] else None,
        tuple(each[0] for each in cycles) if all(cycles) else None,
        [_known(values.get(_BUSY, ()))],
    )


def _known(dies: tuple[int, ...]) -> list[int]:
    return [die for die in dies if die != _ABSENT[4]]


def _fields(table: bytes) -> Iterator[tuple[int, tuple[int, ...]]]:
    """The number and values of each field of a table 1.9, up to the first that cannot be read.

    A field is 64 bits (10 for the number of values, 10 for the field's, 4 for the type), then its values.
    """
    try:
        (count,) = struct.unpack_from("<i", table, 4)
        at = 8
        for _ in range(count):
            (head,) = struct.unpack_from("<Q", table, at)
            layout = struct.Struct(f"<{max(head & 0x3FF, 1)}{_TYPES[head >> 20 & 0xF]}")
            yield head >> 10 & 0x3FF, layout.unpack_from(table, at + 8)
            at += 8 + layout.size
    except (struct.error, IndexError):  # cut short, or of a type that is not known
        return
