"""Runs whose end Slurm did not tell, as after the server was away or for a requeued job; types of nodes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs_scene import BOOT, filed

from peerway.jobs import sync
from peerway.jobs.batch import Batch, Interval
from peerway.jobs.store.jobs import JobStore
from peerway.jobs.store.pending import HOLD, due

NODES = [{"name": "n1", "state": "mixed", "cpus": 64, "alloc_cpus": 8, "features": ["milan", "ib"]}]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "jobs.db")
    yield made
    made.close()


def job(number: int, state: str = "RUNNING", restart: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "job_id": number, "job_state": state, "user_name": "ann", "start_time": 1000, "restart_cnt": restart,
        "nodes": "n1", "cpus": 8, "node_count": 1, **more,
    }  # fmt: skip


def held(store: JobStore, number: int, start: float, end: float | None, seq: int = 1) -> None:
    """An agent tells of the job's allocation."""
    interval = Interval(f"{number}.{start:g}", number, int(start * 1000), int(end * 1000) if end else None)
    wall = int((end or start) * 1000)
    store.file([filed(Batch("n1", "a" * 32, seq, BOOT, wall, 1000, intervals=[interval]))])


def state_of(store: JobStore, number: int, restart: int = 0) -> tuple[str, float | None]:
    run = store.run(str(number), restart)
    assert run is not None
    return run.state, run.ended


def test_a_job_that_slurm_has_forgotten_ended_when_its_agent_says(store: JobStore) -> None:
    sync.take(store, [job(7), job(8), job(9)], NODES, 1100)
    held(store, 7, 1000, None)
    held(store, 9, 1000, None, 2)
    sync.take(store, [job(9)], NODES, 5000)
    assert state_of(store, 7) == ("RUNNING", None)  # the agent's word is on its way
    assert state_of(store, 8) == ("ENDED", 5000)  # nobody will tell more
    held(store, 7, 1000, 1500, 3)
    sync.take(store, [job(9)], NODES, 5030)
    assert state_of(store, 7) == ("ENDED", 1500)
    assert state_of(store, 9) == ("RUNNING", None)


def test_a_job_of_which_only_agents_have_told_is_not_judged_before_slurm_was_asked(store: JobStore) -> None:
    held(store, 7, 1000, 1500)
    assert [run.job for run in due(store, 2000)] == ["7"]  # a server that asks no Slurm
    store.slurm_told = 0.0
    assert due(store, 2000) == []
    sync.take(store, [], NODES, 1400)  # before it ended
    assert due(store, 2000) == []
    assert [run.job for run in due(store, 1500 + HOLD)] == ["7"]  # Slurm is silent for long
    sync.take(store, [], NODES, 2010)  # and has nothing to say of it
    assert [run.job for run in due(store, 2020)] == ["7"]


def test_what_slurm_tells_after_all_is_taken(store: JobStore) -> None:
    sync.take(store, [job(7)], NODES, 1100)
    sync.take(store, [], NODES, 1200)  # a controller that has just begun
    sync.take(store, [job(7)], NODES, 1300)
    assert state_of(store, 7) == ("RUNNING", None)


def test_a_job_keeps_its_nodes_while_their_epilogs_end(store: JobStore) -> None:
    whole = job(7, nodes="n[1-2]", node_count=2)
    sync.take(store, [whole], NODES, 1100)
    left = {"nodes": "n2", "node_count": 1, "end_time": 1200}
    for told in (
        {**left, "job_state": "COMPLETING"},  # as older Slurm has it, and newer:
        {**left, "job_state": ["CANCELLED", "COMPLETING"]},
        {"end_time": 1200, "job_state": "CANCELLED"},
    ):
        sync.take(store, [{**whole, **told}], NODES, 1210)
        run = store.run("7")
        assert run is not None
        assert (run.nodes, run.node_list) == (2, "n[1-2]")


def test_a_job_of_which_more_nodes_are_told_after_its_verdict_is_judged_anew(store: JobStore) -> None:
    ended = job(7, "CANCELLED", end_time=1200)
    for nodes, judged in ((1, 0), (1, 1500), (2, 0)):
        sync.take(store, [{**ended, "node_count": nodes}], NODES, 1210)
        run = store.run("7")
        assert run is not None
        assert (run.nodes, max(run.judged, 0)) == (nodes, judged)
        store.write("UPDATE jobs SET judged = 1500")


def test_the_run_before_a_requeue_has_ended(store: JobStore) -> None:
    sync.take(store, [job(7)], NODES, 1100)
    held(store, 7, 1000, 1400)
    sync.take(store, [job(7, "PENDING", 1)], NODES, 1410)
    assert state_of(store, 7) == ("REQUEUED", 1400)
    sync.take(store, [job(7, "RUNNING", 1, start_time=2000)], NODES, 2010)
    assert state_of(store, 7) == ("REQUEUED", 1400)
    assert state_of(store, 7, 1) == ("RUNNING", None)


def test_a_run_that_only_its_agent_told_of_was_requeued_when_slurm_tells_of_the_next(store: JobStore) -> None:
    held(store, 7, 1000, 1400)
    assert state_of(store, 7) == ("ENDED", 1400)
    sync.take(store, [job(7, "PENDING", 1)], NODES, 1410)
    assert state_of(store, 7) == ("REQUEUED", 1400)


@pytest.mark.parametrize(
    ("node", "type_"),
    [
        ({"features": ["milan", "ib"]}, "milan"),
        ({"features": "milan,ib", "gres": "gpu:a100:4"}, "milan"),
        ({"gres": "gpu:a100:4(S:0-1)"}, "a100"),
        ({"gres": "gpu:4"}, ""),
        ({}, ""),
    ],
)
def test_a_nodes_type(node: dict[str, Any], type_: str) -> None:
    assert sync.type_of(node) == type_


def test_a_jobs_node_type_is_of_its_nodes(store: JobStore) -> None:
    nodes: list[dict[str, Any]] = [*NODES, {"name": "g1", "gres": "gpu:h100:8"}]
    sync.take(store, [job(7, nodes="n1,g[1-2]")], nodes, 1100)
    run = store.run("7")
    assert run is not None
    assert run.node_type == "h100,milan"


@pytest.mark.parametrize(
    ("told", "tasks"),
    [("1-500%3", 500), ("1-20:2,30%5", 11), ("4", 1), ("0-3,9,11-12", 7), ("", 1), (None, 1), ("x" * 99, 1)],
)
def test_the_tasks_of_an_array_wait_each(told: str | None, tasks: int) -> None:
    waiting = job(
        7, "PENDING", array_task_string=told, tres_req_str="cpu=4,mem=1G,gres/gpu=1", state_reason="Priority"
    )
    found = sync.cluster_of([waiting, job(8, "PENDING", state_reason="Resources")], NODES)
    assert (found["waiting"], found["waiting_cores"], found["waiting_gpus"]) == (
        tasks + 1,
        4 * tasks + 8,
        tasks,
    )
    assert dict(found["reasons"]) == {"Priority": tasks, "Resources": 1}


def test_a_suspended_job_waits_for_nothing_and_keeps_its_start(store: JobStore) -> None:
    sync.take(store, [job(7, "SUSPENDED")], NODES, 1100)
    assert state_of(store, 7) == ("SUSPENDED", None)
    found = sync.cluster_of([job(7, "SUSPENDED")], NODES)
    assert (found["waiting"], found["running"], found["users"]) == (0, 0, 0)


def test_a_command_of_slurm_that_fails_is_told_in_one_line_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(sync.SlurmFailed, match=r"^squeue: No such file or directory; .* --no-slurm$"):
        sync.asked("squeue")
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 'error: a' >&2\necho 'fatal: b' >&2\nexit 1\n")
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(sync.SlurmFailed, match=r"^squeue ended with 1: fatal: b; .* --no-slurm$"):
        sync.asked("squeue")
