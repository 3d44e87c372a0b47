"""Shows records of storage on the terminal: one line each, in columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from peerway_common.units import time_text
from peerway_measure.bench.shapes import parse_size
from peerway_measure.compare.metric import metric_of
from peerway_measure.records import Record

_KINDS = ("sequential", "shared", "random", "metadata")  # in the order of `peerway storage --help`
_HEAD = ("test", "engine", "how", "streams", "n", "median", "cpu", "state proved")


def rows(records: Sequence[Record]) -> Iterator[str]:
    """The lines of the table; repeated records share one."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for r in sorted(records, key=_place):
        groups.setdefault((r.test, r.via, r.shape, r.ranks, r.bytes), []).append(r)
    lines = [_HEAD, *(_cells(several) for several in groups.values())]
    if len(lines) == 1:
        return
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEAD))]
    for line in lines:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def _place(r: Record) -> tuple[object, ...]:
    """The sort key of a record, since records are measured in random order. Steps of a test keep their order,
    such as the write before the reads.
    """
    kind = (
        "metadata" if r.test.endswith("_mr")
        else "random" if r.test.startswith("file_random")
        else "shared" if r.shape.startswith("shared")
        else "sequential"
    )  # fmt: skip
    block = str(r.extra.get("block", "1")).replace(" ", "")
    return (_KINDS.index(kind), r.via, r.bytes, parse_size(block), r.shape, r.ranks)


def _tail(several: Sequence[Record]) -> str:
    """The slow operations, for tests that time each operation."""
    if not several[0].test.endswith("_latency"):
        return ""
    return f", p99 {time_text(median(r.p99_us for r in several))}"


def _cells(several: Sequence[Record]) -> tuple[str, ...]:
    first = several[0]
    metric = metric_of(first.test)
    values = [v for r in several if (v := metric.of(r)) is not None]
    used = [r.cpu_percent for r in several if r.cpu_percent is not None]
    proved = {r.extra.get("state_proved") for r in several}
    proof = "" if proved == {None} else "yes" if proved == {True} else "no"
    cpu = f"{median(used):.0f} %" if used else ""
    return (
        first.test,
        first.via,
        first.shape,
        str(first.ranks),
        str(len(several)),
        metric.text(median(values)) + _tail(several),
        cpu,
        proof,
    )
