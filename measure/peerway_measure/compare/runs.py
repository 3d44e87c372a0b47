"""Groups records by run, because differences between runs do not average out within one.

Where memory lies, which CPUs the ranks have and what else the machine does stay the same while the ranks
live. So records of one run are not independent samples, and become one value, their median.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from peerway_measure.compare.metric import Metric
    from peerway_measure.records import Record

MOST_RUNS = 1000  # on one side of a group; the ratios of all pairs of more runs would need gigabytes


def runs_of(records: Iterable[Record]) -> list[list[Record]]:
    """The records of each run. A record that names no run is a run of its own."""
    runs: dict[object, list[Record]] = {}
    for number, record in enumerate(records):
        runs.setdefault((record.host, record.run) if record.run else number, []).append(record)
    return list(runs.values())


def started(records: Iterable[Record], metric: Metric) -> NDArray[np.float64]:
    """When each run first measured the metric, in seconds, in the order of `by_run`; NaN if a record does not
    say it.
    """
    measured = [[r.time for r in run if metric.of(r) is not None] for run in runs_of(records)]
    return np.array([seconds(min(times)) for times in measured if times])


def seconds(time: str) -> float:
    """The time in seconds since 1970; NaN if the text is not a time."""
    try:
        return datetime.fromisoformat(time).timestamp()
    except ValueError:
        return np.nan


def by_run(records: Iterable[Record], metric: Metric) -> NDArray[np.float64]:
    """One value for each run that measured the metric."""
    measured = [[v for r in run if (v := metric.of(r)) is not None] for run in runs_of(records)]
    return np.array([np.median(values) if len(values) > 1 else values[0] for values in measured if values])
