"""The metrics of a comparison: the field of the record, whether larger is better, and the format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from peerway_common import units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from peerway_measure.records import Record


_NAMING = ("test", "via", "shape", "bytes", "ranks")  # the fields that identify a test for people


@dataclass(frozen=True)
class Metric:
    """A field of a record that can be compared."""

    field: str
    name: str
    more_is_better: bool
    text: Callable[[float], str]

    def of(self, record: Record) -> float | None:
        """The value in one record; None if it was not measured."""
        value: float | None = getattr(record, self.field)
        return value


METRICS = {
    metric.field: metric
    for metric in (
        Metric("p50_us", "median time", False, units.time_text),
        Metric("p99_us", "99th percentile of time", False, units.time_text),
        Metric("min_us", "shortest time", False, units.time_text),
        Metric("mean_us", "mean time", False, units.time_text),
        Metric("bandwidth_MBps", "bandwidth", True, units.bandwidth_text),
        Metric("messages_per_s", "message rate", True, units.rate_text),
        Metric("cpu_percent", "CPU use", False, lambda value: f"{value:.0f} %"),
    )
}


def name_of(record: Record) -> str:
    """A test with everything that distinguishes it: "file_write_bw · posix · sequential 1 MiB · 1 GiB · 4
    streams".
    """
    return named({name: getattr(record, name) for name in _NAMING} | {"via": record.full_via})


def named(fields: Mapping[str, str | int]) -> str:
    """As name_of(), with only these fields, such as those that both sides of a comparison share."""
    test, size = str(fields.get("test", "")), int(fields.get("bytes", 0))
    parts = [test, *(str(fields.get(name, "")) for name in ("via", "shape"))]
    parts += [units.size_text(size)] if size else []
    parts += [ranks_text(test, int(fields["ranks"]))] if "ranks" in fields else []
    return " · ".join(filter(None, parts))


def ranks_text(test: str, ranks: int) -> str:
    """The number of ranks as text, "2 ranks"; in a test of files these are streams."""
    return units.counted(ranks, "stream" if test.startswith("file_") else "rank")


def metric_of(test: str, name: str | None = None) -> Metric:
    """The requested metric; by default the bandwidth of a bandwidth test, the message rate of a rate test,
    and the median time of all others.
    """
    if name:
        return METRICS[name]
    if test.endswith("_mr"):
        return METRICS["messages_per_s"]
    return METRICS["bandwidth_MBps" if test.endswith("bw") else "p50_us"]
