"""Job arrays in lists: the sums of an array, and lists that show an array as one row."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.lists import OF_ARRAY, TASKS, Filter, Place, elapsed, listed, sound
from peerway_jobs.store.runs import Run

_MOST_ROUNDS = 50  # after so many rounds a page is returned with fewer rows than usual


@dataclass(frozen=True)
class ArrayRow:
    """The row of an array: its newest task that matches the filter, and the sums of all its tasks."""

    array: str
    run: Run
    total: dict[str, Any]

    @property
    def label(self) -> str:
        """The array as Slurm writes it: 16_[1-30]."""
        return f"{self.array}_[{self.total['tasks_text']}]"


def array_sum(base: Connection, seen: tuple[str, list[str]], array: str, now: float) -> dict[str, Any]:
    """The sums of an array's tasks that have begun and that the viewer may see; `seen` is Viewer.clause()."""
    tasks = f"FROM {OF_ARRAY} WHERE {TASKS} AND NOT provisional AND {seen[0]}"
    bounds = [f"{array}_", f"{array}_:", *seen[1]]
    row = base.execute(
        "SELECT count(*) AS tasks, count(*) - count(ended) AS running, "
        "count(*) FILTER (WHERE ended IS NOT NULL AND state != 'COMPLETED') AS failed, "
        "count(*) FILTER (WHERE verdict = 'inefficient') AS inefficient, "
        "count(*) FILTER (WHERE verdict = 'efficient') AS efficient, "
        "count(*) FILTER (WHERE verdict = 'waiting') AS waiting, "
        f"sum({sound('cores')} * {elapsed('?')}) / 3600 AS core_hours, "
        f"sum({sound('gpus')} * {elapsed('?')}) / 3600 AS gpu_hours, "
        f"sum({sound('idle_core_hours')}) AS idle_core_hours, "
        f"sum({sound('idle_gpu_hours')}) AS idle_gpu_hours, "
        f"min({sound('started', 'NULL')}) AS first_started {tasks}",
        [now, now, *bounds],
    ).fetchone()
    total = {name: row[name] or 0 for name in row.keys()}  # noqa: SIM118 -- a row's values are iterated
    texts = [text for (text,) in base.execute(f"SELECT DISTINCT array {tasks}", bounds)]
    numbers = [text.rpartition("_")[2] for text in texts if isinstance(text, str)]
    total["tasks_text"] = spans(int(each) for each in numbers if each.isdecimal() and len(each) <= 10)
    return total


def spans(numbers: Iterable[int]) -> str:
    """Numbers as text, such as "1-5,7"."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else f"{first}" for first, last in parts)


def folded(
    base: Connection,
    seen: tuple[str, list[str]],
    wanted: Filter,
    now: float,
    *,
    most: int = 50,
    before: Place | None = None,
) -> tuple[list[Run | ArrayRow], Place | None]:
    """Like `listed` ordered by start, but each array is one row, at the place of its newest task.

    An array with only one task in the list is a normal row.
    """
    rows: list[Run | ArrayRow] = []
    handled: set[str] = set()
    place = before
    for _ in range(_MOST_ROUNDS):
        runs, following = listed(base, seen, wanted, most=2 * most, before=place, without=handled)
        for run in runs:
            if len(rows) == most:
                return rows, place
            place = Place(run.started, run.job, run.restart)  # started is None if it cannot be read
            array = run.array.partition("_")[0]
            if array in handled:
                continue
            if array:
                handled.add(array)
                row = _array_row(base, seen, wanted, array, run, now)
                rows += [] if row is None else [row]
            else:
                rows.append(run)
        if following is None:
            return rows, None
        place = following
    return rows, place


def _array_row(
    base: Connection, seen: tuple[str, list[str]], wanted: Filter, array: str, run: Run, now: float
) -> Run | ArrayRow | None:
    """The row of an array at one of its tasks; None if an earlier page has the array's row."""
    tasks, _ = listed(base, seen, replace(wanted, array=array), most=2)
    if (tasks[0].job, tasks[0].restart) != (run.job, run.restart):
        return None
    return ArrayRow(array, run, array_sum(base, seen, array, now)) if len(tasks) > 1 else run
