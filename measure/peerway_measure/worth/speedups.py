"""The speed-up of each test on each node type, and which of them applies to a transfer of an application."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import log

from peerway_common.printable import shell_word
from peerway_common.units import size_text
from peerway_measure.compare.node_types import Row, rows
from peerway_measure.compare.statistics import runs_needed
from peerway_measure.records import Record
from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.shares import Transfer

# The benchmarks whose speed-up an operation of a trace has; the first that was measured counts.
TESTS = {
    "put": ("put_latency", "pingpong", "put_bw"),
    "get": ("get_latency", "get_bw"),
    "send": ("mpi_latency", "put_latency", "pingpong", "mpi_bw", "put_bw"),
    "write": ("file_write_bw",),
}
_MPIS = ("openmpi", "mpich")
_BEYOND = log(2) + 1e-9  # how far a size may lie outside of those that were measured


@dataclass(frozen=True, slots=True)
class SpeedUp:
    """The time of a test before, divided by that after, as logarithms with a 95 % interval. `problem` says
    why it is unknown; empty: it is known.
    """

    node_type: str
    transfer: Transfer
    value: float = 0.0
    low: float = 0.0
    high: float = 0.0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Match:
    """What applies to a transfer: speed-ups with the weights by which their logarithms are added; or why none
    does, and the command that measures one.
    """

    parts: tuple[tuple[SpeedUp, float], ...] = ()
    problem: str = ""
    command: str = ""

    @property
    def value(self) -> float:
        """The logarithm of the speed-up."""
        return sum(weight * part.value for part, weight in self.parts)


def speedups(
    before: Iterable[Record], after: Iterable[Record], factors: Sequence[str], assumed: Assumptions
) -> list[SpeedUp]:
    """One for each row of the table by node type (compare/node_types.py)."""
    return [_of_row(row, assumed) for row in rows(before, after, factors)]


def _of_row(row: Row, assumed: Assumptions) -> SpeedUp:
    fields = row.pair.key.as_dict()
    transfer = Transfer(
        str(fields.get("test", "")), str(fields.get("via", "")), int(fields.get("bytes", 0)),
        int(fields["ranks"]) if "ranks" in fields else None, str(fields.get("shape", "")),
        str(fields.get("source", "")), str(fields.get("target", "")),
    )  # fmt: skip
    if problem := _problem(row, assumed):
        return SpeedUp(row.node_type, transfer, problem=problem)
    if row.difference == "no difference" and assumed.no_difference == "zero":
        return SpeedUp(row.node_type, transfer)
    value, low, high = (log(1 + (percent or 0) / 100) for percent in (row.percent, row.low, row.high))
    return SpeedUp(row.node_type, transfer, value, low, high)


def _problem(row: Row, assumed: Assumptions) -> str:
    """Why the speed-up of a row is unknown; empty: it is known."""
    if row.percent is None or row.low is None or row.high is None:
        least = runs_needed(1)
        return f"{min(row.samples)} runs on a side are too few; measure {least} or more"
    if row.verdict == "not attributable" and assumed.other_changes == "unknown":
        return f"something else changed, too ({row.besides[0]}); name it with --factor if that was meant"
    if row.verdict == "confounded with time" and assumed.order == "unknown":
        return "one side was measured after the other, in too few rounds; measure both in turn, or 10 rounds"
    return ""


def match(transfer: Transfer, node_type: str, known: Sequence[SpeedUp], assumed: Assumptions) -> Match:
    """The speed-up of a transfer on a node type."""
    tests = TESTS.get(transfer.test, (transfer.test,))
    for test in tests:
        of_test = [
            s for s in known
            if s.node_type == node_type and s.transfer.test == test and _fits(transfer, s.transfer)
        ]  # fmt: skip
        if of_test:
            return _at_size(transfer, _plain(transfer, of_test), assumed)
    types = sorted({s.node_type for s in known if s.transfer.test in tests and _fits(transfer, s.transfer)})
    elsewhere = f" (only on {', '.join(types)})" if types else ""
    return Match(
        problem=f"no speed-up of {_name(transfer)} on {node_type}{elsewhere}", command=_command(transfer)
    )


def _fits(wanted: Transfer, measured: Transfer) -> bool:
    return wanted.path == measured.path and all(
        getattr(wanted, name) in (None, "", getattr(measured, name))
        for name in ("ranks", "shape", "source", "target")
    )


def _plain(transfer: Transfer, several: list[SpeedUp]) -> list[SpeedUp]:
    """Only those of contiguous data, if there are any and no shape was named."""
    plain = [s for s in several if s.transfer.shape == "contiguous"]
    return plain if plain and not transfer.shape else several


def _at_size(transfer: Transfer, several: list[SpeedUp], assumed: Assumptions) -> Match:
    """Interpolate between the sizes of one benchmark."""
    for name in ("ranks", "shape", "source", "target"):
        values = sorted({str(getattr(s.transfer, name)) for s in several})
        if len(values) > 1:
            return Match(problem=f"{_name(transfer)} was measured with several values of {name} "
                         f"({', '.join(values)}); name one in the column {name} of the shares")  # fmt: skip
    ordered = sorted(several, key=lambda s: s.transfer.bytes)
    below = [s for s in ordered if s.transfer.bytes <= transfer.bytes]
    above = [s for s in ordered if s.transfer.bytes >= transfer.bytes]
    if below and above and below[-1] is above[0]:
        return _of_parts(transfer, ((below[-1], 1.0),))
    sizes = ", ".join(size_text(s.transfer.bytes) for s in (ordered[0], ordered[-1]))
    if assumed.sizes == "exact":
        return Match(problem=f"{_name(transfer)} was not measured at {size_text(transfer.bytes)}",
                     command=_command(transfer))  # fmt: skip
    if below and above:
        low, high = below[-1], above[0]
        place = (_log(transfer.bytes) - _log(low.transfer.bytes)) / (
            _log(high.transfer.bytes) - _log(low.transfer.bytes)
        )
        return _of_parts(transfer, ((low, 1 - place), (high, place)))
    nearest = (below or above)[-1 if below else 0]
    if assumed.sizes == "within" and abs(_log(transfer.bytes) - _log(nearest.transfer.bytes)) > _BEYOND:
        return Match(problem=f"{_name(transfer)} of {size_text(transfer.bytes)} lies beyond the sizes that "
                     f"were measured ({sizes})", command=_command(transfer))  # fmt: skip
    return _of_parts(transfer, ((nearest, 1.0),))


def _of_parts(transfer: Transfer, parts: tuple[tuple[SpeedUp, float], ...]) -> Match:
    for part, _ in parts:
        if part.problem:
            size = size_text(part.transfer.bytes)
            return Match(problem=f"{_name(transfer)} at {size}: {part.problem}")
    return Match(parts)


def _log(count: int) -> float:
    return log(max(1, count))


def _name(transfer: Transfer) -> str:
    return f"{transfer.test} by {transfer.path}" if transfer.path else transfer.test


def _command(transfer: Transfer) -> str:
    """The command that measures such a transfer; run it before the change and after it."""
    test = TESTS.get(transfer.test, (transfer.test,))
    if test[0].startswith("file_"):
        names = "write" if transfer.test in ("write", "file_write_bw") else "write read"
        return f"peerway storage FOLDER {names} --repeat 10 --out FILE"
    if transfer.test not in ("put", "get", "send") and not transfer.test.startswith(("put_", "get_")):
        return f"a campaign with the test {transfer.test}"
    if transfer.path.partition("/")[0] in _MPIS:
        name = "get_latency" if transfer.test == "get" else "put_latency"
        return f"peerway bench {name} --peers {shell_word(transfer.path)} --repeat 10 --out FILE"
    chosen = f" --paths {shell_word(transfer.path)}" if transfer.path else ""
    name = "put_latency" if transfer.test == "send" else test[0]
    return f"peerway bench {name}{chosen} --repeat 10 --out FILE"
