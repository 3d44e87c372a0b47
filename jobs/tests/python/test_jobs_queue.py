"""The jobs that wait: why, for how long, and who may see which."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from peerway_jobs import slurm_queue, sync
from peerway_jobs.serve.cluster_pages import visible
from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.reasons import REASONS, explained
from peerway_jobs.serve.recorder import waiting_of
from peerway_jobs.store import queue as stored
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.queue import queue
from peerway_jobs.store.queue_history import queue_history, record


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "jobs.db")
    yield made
    made.close()


def waits(number: int, **changes: Any) -> dict[str, Any]:
    """An entry of `squeue --json`."""
    return {
        "job_id": number, "job_state": ["PENDING"], "user_name": "ann", "account": "phys", "name": "train",
        "partition": "gpu", "state_reason": "Priority", "priority": {"set": True, "number": number},
        "submit_time": {"set": True, "number": 1000 + number}, "start_time": {"set": True, "number": 0},
        "node_count": 2, "cpus": 16, "tres_req_str": "cpu=16,mem=8G,gres/gpu=4", **changes,
    }  # fmt: skip


def test_waiting_jobs_are_summed_by_reason_and_listed_by_priority(store: JobStore) -> None:
    entries = [
        waits(7, state_reason="Resources", start_time={"set": True, "number": 5000}),
        waits(3),
        waits(9, array_job_id=9, array_task_string="0-9%2", user_name="bob"),
        waits(8, job_state=["RUNNING"], start_time=1, nodes="n1"),
    ]
    sync.take(store, entries, [], 2000)
    report = queue(store.reader)
    assert [(each.reason, each.jobs, each.cores, each.gpus, each.since) for each in report.reasons] == [
        ("Priority", 11, 176, 44, 1003),
        ("Resources", 1, 16, 4, 1007),
    ]
    assert [(each.job, each.tasks, each.starts) for each in report.lines] == [
        ("9_[0-9%2]", 10, None), ("7", 1, 5000), ("3", 1, None),
    ]  # fmt: skip
    assert (report.at, report.left_out, report.unreadable) == (2000, 0, [])
    sync.take(store, [], [], 2030)  # all have begun or gone
    report = queue(store.reader)
    assert (report.at, report.reasons, report.lines) == (2030, [], [])


def test_lines_of_the_lowest_priority_are_left_out_and_counted(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slurm_queue, "MOST_LINES", 2)
    sync.take(store, [waits(number) for number in range(1, 6)], [], 2000)
    report = queue(store.reader)
    assert ([each.job for each in report.lines], report.left_out) == (["5", "4"], 3)
    assert report.reasons[0].jobs == 5


@pytest.mark.parametrize(
    ("viewer", "users"),
    [
        (Viewer("ann"), ["ann"]),
        (Viewer("eve"), []),
        (Viewer("eve", accounts=frozenset(["chem"])), ["bob"]),
        (Viewer("root", "admin"), ["bob", "ann"]),
        (Viewer("root", "admin", scopes=frozenset(["cluster:read"])), []),
        (Viewer("ann", scopes=frozenset(["cluster:read"])), []),
    ],
)
def test_everybody_sees_the_same_waiting_jobs_as_running_ones(
    store: JobStore, viewer: Viewer, users: list[str]
) -> None:
    sync.take(store, [waits(1), waits(2, user_name="bob", account="chem")], [], 2000)
    assert [line.user for line in visible(queue(store.reader), viewer)] == users
    assert visible(queue(store.reader), viewer, "nobody") == []


@pytest.mark.parametrize(
    "entry", [None, {}, [], ["Priority"], ["Priority", -1, 0, 0, None], [7, 1, 0, 0, None]]
)
def test_an_entry_that_cannot_be_read_is_left_out_and_named(store: JobStore, entry: Any) -> None:
    good = ["Resources", 1, 2, 3, None]
    body = json.dumps({"reasons": [entry, good], "lines": [entry], "left_out": 0})
    store.write("INSERT INTO queue VALUES (1, 2000, ?)", (body,))
    report = queue(store.reader)
    assert [each.reason for each in report.reasons] == ["Resources"]
    assert report.unreadable == ["queue.reasons[0]", "queue.lines[0]"]
    store.write("UPDATE queue SET body = '[]'")
    assert queue(store.reader).unreadable == ["queue.body"]
    assert stored.queue(store.reader).lines == []


@pytest.mark.parametrize(
    ("reason", "part"),
    [
        ("Priority", "higher priority"),
        ("QOSMaxGRESPerUser", "limit of the account"),
        ("AssocGrpCpuLimit", "limit of the account"),
        ("QOSMaxCpuPerJobLimit", "never start"),
        ("AssocMaxWallDurationPerJobLimit", "never start"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", "down, drained or reserved"),
        ("SomethingNew", ""),
    ],
)
def test_a_reason_is_explained_in_plain_words(reason: str, part: str) -> None:
    assert part in explained(reason, "en")
    assert bool(explained(reason, "ru")) is bool(part)
    assert all(all(texts) for texts in REASONS.values())


def test_the_queue_over_time_is_the_mean_of_each_steps_minutes(store: JobStore) -> None:
    first = 1_790_000_000 // 14_400 * 14_400
    for place, jobs in enumerate((10, 20, 60)):
        record(store, first + 60 * place, {"jobs": jobs, "cores": 8 * jobs, "gpus": 0})
    for length, known in (("hour", [10, 20, 60]), ("day", [30]), ("month", [30])):
        history = queue_history(store.reader, first + 125, length)  # type: ignore[arg-type]
        curve = history.curves["jobs"]
        assert curve[-len(known) :] == known
        assert set(curve[: -len(known)]) == {None}
        assert history.curves["cores"][-1] == 8 * known[-1]
        assert history.curves["gpus"][-1] == 0
    record(store, first + 400 * 86_400, {"jobs": 1, "cores": 1, "gpus": 1})
    rows = store.reader.execute("SELECT step, jobs FROM queue_history ORDER BY step")
    assert [tuple(row) for row in rows] == [(60, 1), (900, 1), (14_400, 1)]


@pytest.mark.sqlite
def test_a_minute_of_the_queue_that_cannot_be_read_is_left_out_and_named(store: JobStore) -> None:
    record(store, 6000, {"jobs": 1, "cores": 1, "gpus": 1})
    record(store, 6060, {"jobs": 2, "cores": 1, "gpus": 1})
    store.write("UPDATE queue_history SET gpus = 'x' WHERE step = 60 AND at = 6060")
    history = queue_history(store.reader, 6070, "hour")
    assert history.curves["jobs"][-2:] == [1, None]
    assert history.unreadable == ["queue_history.gpus"]


@pytest.mark.parametrize(("at", "known"), [(None, False), (879, False), (881, True)])
def test_the_queue_is_recorded_only_while_slurm_answers(at: float | None, known: bool) -> None:
    cluster = {"at": at, "waiting": 5, "waiting_cores": 40, "waiting_gpus": 3}
    assert waiting_of(cluster, 1000) == ({"jobs": 5, "cores": 40, "gpus": 3} if known else {})
