"""Decides which runs are due to be judged."""

from __future__ import annotations

import json
from collections.abc import Mapping

from peerway_jobs.hosts import expand_hosts
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import Run, of_row

EVERY = 30  # sampling periods between two verdicts on a running run
SETTLE = 6  # sampling periods from a run's end to its verdict
# Each verdict on a running run reads all its samples. So the next one is made only after the run has become
# longer by this share: five minutes change little in a long run. All verdicts on a run together then cost a
# few times as much as the last.
LONGER = 1 / 20
# The longest time in seconds that a verdict waits for late agents (all are late after the server was away),
# or for Slurm.
HOLD = 3600
_ALIVE_MS = 2 * 3_600_000  # an agent sends its node's facts at least once an hour
OLDEST_S = 14 * 86_400  # runs that ended earlier are no longer judged
_MOST = 200  # runs at once


def due(store: JobStore, now: float) -> list[Run]:
    """Runs to judge: first ended runs whose agents have sent everything, then running ones,
    oldest verdict first.
    """
    period = store.period()
    store.read_arrivals()
    rows = store.reader.execute(
        "SELECT * FROM (SELECT * FROM jobs WHERE ended > :oldest AND ended <= :settled AND NOT provisional "
        "AND judged < ended + :settle ORDER BY ended) AS finished "
        "UNION ALL SELECT * FROM (SELECT * FROM jobs WHERE ended IS NULL AND started IS NOT NULL "
        "AND NOT provisional AND judged < :now - max(:every, (:now - started) * :longer) ORDER BY judged) "
        "AS running",
        {
            "now": now,
            "every": EVERY * period,
            "longer": LONGER,
            "settle": SETTLE * period,
            "settled": now - SETTLE * period,
            "oldest": now - OLDEST_S,
        },
    )
    runs: list[Run] = []
    for row in rows:
        run = of_row(row)
        if not run.has_key:
            continue
        complete = not behind(store, run, store.newest) and not _only_agents_told(store, run)
        if run.ended is None or now >= run.ended + HOLD or complete:
            runs.append(run)
            if len(runs) == _MOST:
                break
    return runs


def is_final(store: JobStore, run: Run) -> bool:
    """Whether a run has ended and its verdict covers all of it. Late samples may still change the verdict."""
    return run.ended is not None and run.judged >= run.ended + SETTLE * store.period()


def behind(store: JobStore, run: Run, newest: Mapping[str, int]) -> bool:
    """Whether an agent of an ended run has not yet sent its last samples.

    An agent that has reported nothing of the run counts too, if it was alive not long before the end.
    """
    ended = int((run.ended or 0) * 1000)
    rows = store.reader.execute(
        "SELECT node FROM nodes WHERE told > ? AND node IN (SELECT value FROM json_each(?))",
        (ended - _ALIVE_MS, json.dumps(sorted(expand_hosts(run.node_list)))),
    )
    nodes = {part["node"] for part in store.intervals(run)} | {row["node"] for row in rows}
    return any(newest.get(node, 0) < ended for node in nodes)


def _only_agents_told(store: JobStore, run: Run) -> bool:
    """Whether Slurm has not been asked about an ended run yet: it knows the job's name and what the job
    had.
    """
    answers = [each for each in (store.slurm_answered, store.accounts_answered) if each is not None]
    return run.state == "ENDED" and any(each < (run.ended or 0) for each in answers)
