"""Which share of an application's run time transfers take: what `peerway trace shares` writes; and figures
that are stated instead.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from peerway_measure.worth.csv_file import BadFile, Column, number, optional, rows, text, whole

WRITER = "`peerway trace shares FOLDER -o FILE`"
OTHER = "other"  # the time outside of transfers that a benchmark measures
_TOLERANCE = 1e-3  # by which shares may exceed 1, as they are rounded
_SHARE = number(0, 1)
_NAME = Column(text, absent="", necessary=False)
_COLUMNS = {
    "application": Column(text), "node_type": _NAME, "trace": Column(text), "test": Column(text),
    "path": Column(text), "bytes": Column(optional(whole)), "share": Column(_SHARE),
    "waiting": Column(_SHARE, absent=0.0, necessary=False),
    "ranks": Column(optional(whole), necessary=False), "shape": _NAME, "source": _NAME, "target": _NAME,
}  # fmt: skip
_STATED = {
    "application": Column(text), "node_type": Column(text),
    "less_time": Column(optional(number(-1000, 100)), necessary=False),
    "faster": Column(optional(number(-99, 1e6)), necessary=False),
    "low": Column(optional(number(-1000, 1e6)), necessary=False),
    "high": Column(optional(number(-1000, 1e6)), necessary=False),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Transfer:
    """A kind of transfer: what is needed to find its speed-up among the records."""

    test: str
    path: str
    bytes: int
    ranks: int | None = None
    shape: str = ""
    source: str = ""
    target: str = ""


@dataclass(frozen=True, slots=True)
class Share:
    """The share of the run time that a kind of transfer takes in one trace."""

    transfer: Transfer
    share: float
    waiting: float = 0.0


Traces = dict[str, list[Share]]  # by the name of the trace


@dataclass(frozen=True, slots=True)
class Stated:
    """By which share the run time shrinks, with the bounds of its 95 % interval if they are known."""

    less_time: float
    low: float | None = None
    high: float | None = None


def read(paths: Sequence[Path]) -> dict[tuple[str, str], Traces]:
    """The shares by application and node type ("": all). Raises BadFile and OSError."""
    shares: dict[tuple[str, str], Traces] = defaultdict(lambda: defaultdict(list))
    sums: dict[tuple[str, str, str], float] = defaultdict(float)
    for path in paths:
        for line, row in rows(path, _COLUMNS, WRITER):
            where = f"{path}:{line}"
            key = (row["application"], row["node_type"])
            sums[*key, row["trace"]] += row["share"] + row["waiting"]
            if sums[*key, row["trace"]] > 1 + _TOLERANCE:
                raise BadFile(
                    f"{where}: the shares of the trace {row['trace']} are {sums[*key, row['trace']]:.4g} "
                    "together, more than the whole run; is a file given twice, or are two traces of one name?"
                )
            several = shares[key][row["trace"]]  # a trace without transfers is a sample, too
            if row["test"] == OTHER:
                continue
            if not row["test"]:
                raise BadFile(f"{where}: test is empty; name put, get, send, write, other or a benchmark")
            known = {name: row[name] for name in ("ranks", "shape", "source", "target")}
            transfer = Transfer(row["test"], row["path"], row["bytes"] or 0, **known)
            several.append(Share(transfer, row["share"], row["waiting"]))
    return {key: dict(traces) for key, traces in shares.items()}


def read_stated(paths: Sequence[Path]) -> dict[tuple[str, str], Stated]:
    """Stated figures by application and node type ("": all). Raises BadFile and OSError."""
    stated: dict[tuple[str, str], Stated] = {}
    for path in paths:
        for line, row in rows(path, _STATED, "an editor"):
            where, key = f"{path}:{line}", (row["application"], row["node_type"])
            if (row["less_time"] is None) == (row["faster"] is None):
                raise BadFile(f"{where}: give either less_time or faster, in per cent")
            if (row["low"] is None) != (row["high"] is None):
                raise BadFile(f"{where}: give both low and high, the bounds of the interval, or neither")
            if key in stated:
                raise BadFile(f"{where}: this application and node type stand in an earlier line, too")
            slower = row["faster"] is None
            value = row["less_time"] if slower else row["faster"]
            bounds = (row["low"], row["high"])
            if bounds[0] is not None and not bounds[0] <= value <= bounds[1]:
                raise BadFile(f"{where}: {value:g} does not lie between low ({row['low']:g}) and high "
                              f"({row['high']:g})")  # fmt: skip
            stated[key] = Stated(*(None if v is None else _less_time(v, slower, where)
                                   for v in (value, *bounds)))  # type: ignore[arg-type]  # fmt: skip
    return stated


def _less_time(percent: float, is_less_time: bool, where: str) -> float:
    """The share of the run time that is saved."""
    if is_less_time:
        if percent > 100:
            raise BadFile(f"{where}: less_time cannot be more than 100 %, but is {percent:g}")
        return percent / 100
    if percent <= -100:
        raise BadFile(f"{where}: faster must be above -100 %, but is {percent:g}")
    return 1 - 1 / (1 + percent / 100)
