"""Records in the output format of the OSU micro-benchmarks, for tools that read it.

Comment lines that start with "#" (a title, the names of the columns), then lines of a size and one or more
numbers in columns. See https://mvapich.cse.ohio-state.edu/benchmarks/.
"""

from __future__ import annotations

from itertools import groupby
from statistics import median
from typing import TYPE_CHECKING

from peerway_common.printable import printable
from peerway_measure.bench.kinds import KINDS
from peerway_measure.cube import shape_class

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from peerway_measure.records import Record

_COLUMN = 20


def as_osu(records: Iterable[Record]) -> str:
    """One block for each test, path, shape and pair: a title, the column names, and a line for each size with
    the median of its records. The title adds what OSU's own title lacks: path, shape and pair.
    """
    return "\n".join("\n".join(_osu_block(block)) + "\n" for block in _blocks(records))


def _blocks(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each curve, by size; the curves in the order of their first record."""
    curves: dict[tuple[object, ...], list[Record]] = {}
    for r in records:
        key = (r.test, r.op, shape_class(r.shape), r.source, r.target, r.ranks, r.host, r.via)
        curves.setdefault(key, []).append(r)
    return [sorted(curve, key=lambda record: record.bytes) for curve in curves.values()]


def _osu_block(block: Sequence[Record]) -> Iterator[str]:
    first = block[0]
    names = _osu_columns(first.test)
    where = f"{shape_class(first.shape)}, {first.source} to {first.target}, {first.ranks} ranks"
    yield _one_line(f"# Peerway {first.test} v{first.version} (via {first.via}, {where})")
    whole = first.test in KINDS and KINDS[first.test].one_way_trips == 1
    latency = f"# Latency is {'of the whole operation' if whole else 'one way'}; each number is the median."
    yield latency if "p50_us" in names else "# MB = 10^6 bytes."
    yield f"{'# Size':<{_COLUMN}}" + "".join(f"{title:>{_COLUMN}}" for title in names.values())
    for size, same in groupby(block, key=lambda record: record.bytes):
        repeats = list(same)
        numbers = (median(getattr(record, name) for record in repeats) for name in names)
        yield f"{size:<{_COLUMN}}" + "".join(f"{number:>{_COLUMN}.3f}" for number in numbers)


def _osu_columns(test: str) -> dict[str, str]:
    """The fields of a record that the table of a test shows, and OSU's names of these columns."""
    if test.endswith("_mr"):
        return {"bandwidth_MBps": "MB/s", "messages_per_s": "Messages/s"}
    if test.endswith("bw"):
        return {"bandwidth_MBps": "Bandwidth (MB/s)"}
    return {"p50_us": "Latency (us)"}


def _one_line(text: str) -> str:
    """A name from a record may contain anything; a newline in it would end the comment."""
    return printable(" ".join(text.split()))
