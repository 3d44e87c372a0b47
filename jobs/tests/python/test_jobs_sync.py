"""Runs whose end Slurm did not report (the server was down, or the job was requeued); types of nodes."""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jobs_scene import BOOT, filed

from peerway_jobs import slurm_json, sync
from peerway_jobs.accounting import Accounts
from peerway_jobs.batch import Batch, Interval
from peerway_jobs.rules.hours import Hours
from peerway_jobs.rules.judging import Verdict
from peerway_jobs.scripts import Scripts
from peerway_jobs.slurm_json import SlurmFailed, answer_of
from peerway_jobs.store.alarms import alarms
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.pending import HOLD, due
from peerway_jobs.verdicts import verdict_of

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
    """File an agent's report of the job's allocation."""
    interval = Interval(f"{number}.{start:g}", number, int(start * 1000), int(end * 1000) if end else None)
    wall = int((end or start) * 1000)
    store.file([filed(Batch("n1", "a" * 32, seq, BOOT, wall, 1000, intervals=[interval]))])


def asked_all(
    store: JobStore,
    jobs: list[dict[str, Any]],
    now: float,
    accounts: Accounts | None = None,
    scripts: Scripts | None = None,
) -> None:
    """One round of all questions to Slurm; squeue reports `jobs`."""
    runs = sync.take(store, jobs, NODES, now)
    if scripts:
        scripts.fetch(store, runs, now)
    if accounts:
        told = {(run.job, run.restart) for run in runs}
        sync.file(store, accounts.missed(store, told, now), NODES)


def state_of(store: JobStore, number: int, restart: int = 0) -> tuple[str, float | None]:
    run = store.run(str(number), restart)
    assert run is not None
    return run.state, run.ended


def test_a_job_that_slurm_has_forgotten_ended_when_its_agent_says(store: JobStore) -> None:
    sync.take(store, [job(7), job(8), job(9)], NODES, 1100)
    held(store, 7, 1000, None)
    held(store, 9, 1000, None, 2)
    sync.take(store, [job(9)], NODES, 5000)
    assert state_of(store, 7) == ("RUNNING", None)  # the agent's report may still arrive
    assert state_of(store, 8) == ("ENDED", 5000)  # nobody will report its end
    held(store, 7, 1000, 1500, 3)
    sync.take(store, [job(9)], NODES, 5030)
    assert state_of(store, 7) == ("ENDED", 1500)
    assert state_of(store, 9) == ("RUNNING", None)


def test_a_job_of_which_only_agents_have_told_is_not_judged_before_slurm_was_asked(store: JobStore) -> None:
    held(store, 7, 1000, 1500)
    assert [run.job for run in due(store, 2000)] == ["7"]  # the server does not ask Slurm
    store.slurm_answered = 0.0
    assert due(store, 2000) == []
    sync.take(store, [], NODES, 1400)  # before the end
    assert due(store, 2000) == []
    assert [run.job for run in due(store, 1500 + HOLD)] == ["7"]  # Slurm has been silent for long
    sync.take(store, [], NODES, 2010)  # and does not know the run
    assert [run.job for run in due(store, 2020)] == ["7"]


def test_what_slurm_tells_after_all_is_taken(store: JobStore) -> None:
    sync.take(store, [job(7)], NODES, 1100)
    sync.take(store, [], NODES, 1200)  # the controller has just started
    sync.take(store, [job(7)], NODES, 1300)
    assert state_of(store, 7) == ("RUNNING", None)


def test_a_job_keeps_its_nodes_while_their_epilogs_end(store: JobStore) -> None:
    whole = job(7, nodes="n[1-2]", node_count=2)
    sync.take(store, [whole], NODES, 1100)
    left = {"nodes": "n2", "node_count": 1, "end_time": 1200}
    for told in (
        {**left, "job_state": "COMPLETING"},  # older Slurm; the next line is newer
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


def test_a_requeue_that_goes_on_is_told_as_a_run_that_is_none(store: JobStore) -> None:
    """Slurm 22.05, observed many times a second: the entry has the next run's number,
    and the requeue as start.
    """
    held(store, 7, 1000.6, 1001.2)
    sync.take(store, [job(7, "COMPLETING", 1, start_time=1001, end_time=1001 + 86_400)], NODES, 1001)
    assert store.restarts("7") == [0]
    sync.take(store, [job(7, "RUNNING", 1, start_time=1002)], NODES, 1003)
    assert state_of(store, 7) == ("REQUEUED", 1001.2)
    assert state_of(store, 7, 1) == ("RUNNING", None)


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


@pytest.mark.parametrize(
    ("gres", "used", "gpus", "busy", "type_"),
    [
        ("gpu:4", "gpu:0", 4, 0, ""),
        ("gpu:a100:4(S:0-1)", "gpu:a100:3(IDX:0-2)", 4, 3, "a100"),
        ("gpu:2080ti:8(S:0-1)", "gpu:2080ti:2(IDX:0,3)", 8, 2, "2080ti"),
        ("gpu:3090:4", "gpu:3090:1(IDX:2)", 4, 1, "3090"),
        ("gpu:1g.10gb:7,gpu:h100:3(S:0)", "gpu:1g.10gb:5(IDX:0-4),gpu:h100:0(IDX:N/A)", 10, 5, "1g.10gb"),
        ("nic:2,gpu:h100:8,shard:h100:32", "gpu:h100:8(IDX:0-7),shard:h100:0", 8, 8, "h100"),
        ("craynetwork:4", "craynetwork:0", 0, 0, ""),
        ("", "", 0, 0, ""),
    ],
)
def test_the_gpus_of_a_node(gres: str, used: str, gpus: int, busy: int, type_: str) -> None:
    node = {"name": "n", "state": ["IDLE"], "cpus": 8, "gres": gres, "gres_used": used}
    found = sync.node_of(node)
    assert (found["gpus"], found["gpus_busy"], found["gpu_type"]) == (gpus, busy, type_)


def test_a_jobs_node_type_is_of_its_nodes(store: JobStore) -> None:
    nodes: list[dict[str, Any]] = [*NODES, {"name": "g1", "gres": "gpu:h100:8"}]
    sync.take(store, [job(7, nodes="n1,g[1-2]")], nodes, 1100)
    run = store.run("7")
    assert run is not None
    assert run.node_type == "h100,milan"


@pytest.mark.parametrize(
    ("reported", "tasks"),
    [("1-500%3", 500), ("1-20:2,30%5", 11), ("4", 1), ("0-3,9,11-12", 7), ("", 1), (None, 1), ("x" * 99, 1)],
)
def test_the_tasks_of_an_array_wait_each(reported: str | None, tasks: int) -> None:
    waiting = job(
        7,
        "PENDING",
        array_task_string=reported,
        tres_req_str="cpu=4,mem=1G,gres/gpu=1",
        state_reason="Priority",
    )
    found = sync.cluster_of([waiting, job(8, "PENDING", state_reason="Resources")], NODES, 1100)
    assert (found["waiting"], found["waiting_cores"], found["waiting_gpus"]) == (
        tasks + 1,
        4 * tasks + 8,
        tasks,
    )
    assert dict(found["reasons"]) == {"Priority": tasks, "Resources": 1}


SUSPENDED_AT = {"suspend_time": 1040, "pre_sus_time": 40}


@pytest.mark.parametrize(
    ("reported", "suspended"),
    [
        ({}, 0),
        ({"suspend_time": 0, "pre_sus_time": 0}, 0),
        ({"job_state": "SUSPENDED", **SUSPENDED_AT}, 60),  # it ran for 40 s
        ({"job_state": "SUSPENDED", "suspend_time": {"set": True, "number": 1040}, "pre_sus_time": 40}, 60),
        ({"suspend_time": 1070, "pre_sus_time": 40}, 30),  # it was resumed at 1070
        ({"job_state": "COMPLETED", "suspend_time": 1070, "pre_sus_time": 40, "end_time": 1090}, 30),
        ({"job_state": "CANCELLED", **SUSPENDED_AT, "end_time": 1040}, 0),  # Slurm ends it at its suspension
        ({"job_state": "PENDING", **SUSPENDED_AT}, 0),
    ],
)
def test_how_long_slurm_has_suspended_a_job(reported: dict[str, Any], suspended: float) -> None:
    run = sync.run_of(job(1) | reported, 1100)
    assert run is not None
    assert run.suspended == (0 if run.started is None else suspended)


def test_components_of_a_heterogeneous_job_know_each_other(store: JobStore) -> None:
    parts = [job(40 + n, het_job_id=40, het_job_offset=n) for n in range(11)]
    others = [job(60, het_job_id=400, het_job_offset=0), job(61), job(4, het_job_id=4, het_job_offset=0)]
    asked_all(store, parts + others, 1100)
    second = store.run("41")
    assert second is not None
    assert second.component == "40+1"
    assert [each.job for each in store.siblings(second)] == ["40", *(str(n) for n in range(42, 51))]
    alone = store.run("61")
    assert alone is not None
    assert store.siblings(alone) == []


NO_VAL, INFINITE = (1 << 32) - 2, (1 << 32) - 1


@pytest.mark.parametrize("value", [
    NO_VAL, INFINITE, (1 << 64) - 2, (1 << 64) - 1, -1, float("nan"), float("inf"), 1 << 63, True, "7", None,
    {"set": False, "number": 7}, {"set": True, "infinite": True, "number": 7}, {"number": NO_VAL},
])  # fmt: skip
def test_what_slurm_tells_for_no_number_is_none(value: Any) -> None:
    assert slurm_json.number(value) is None
    run = sync.run_of(job(1, time_limit=value, start_time=value), 1100)
    assert run is not None
    assert (run.time_limit, run.started) == (None, None)


@pytest.mark.parametrize("flag", ["INVALID_REG", "REBOOT_ISSUED", "DRAIN", "NOT_RESPONDING"])
def test_a_node_that_gets_no_jobs_is_not_free(flag: str) -> None:
    assert sync.node_of({"name": "n", "state": ["IDLE", flag], "cpus": 8})["state"] in ("off", "blocked")


def test_a_suspended_job_waits_for_nothing_and_keeps_its_start(store: JobStore) -> None:
    sync.take(store, [job(7, "SUSPENDED")], NODES, 1100)
    assert state_of(store, 7) == ("SUSPENDED", None)
    found = sync.cluster_of([job(7, "SUSPENDED")], NODES, 1100)
    assert (found["waiting"], found["running"], found["users"]) == (0, 0, 0)


def test_a_command_of_slurm_that_fails_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmFailed, match=r"^squeue: No such file or directory$"):
        answer_of("squeue")
    (tmp_path / "squeue").write_text("#!/bin/sh\necho 'error: a' >&2\necho 'fatal: b' >&2\nexit 1\n")
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(SlurmFailed, match=r"^squeue ended with 1: error: a; fatal: b$"):
        answer_of("squeue")


@pytest.mark.parametrize("begun", ["sleep 1000", "sleep 1000 | cat", "sleep 1000 & wait"])
def test_a_command_of_slurm_that_hangs_is_ended_with_all_that_it_began(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: str
) -> None:
    """A site's wrapper script has the real command as its child, which holds the pipe."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(slurm_json, "TIMEOUT_S", 0.2)
    (tmp_path / "squeue").write_text(f"#!/bin/sh\n{begun}\n")
    (tmp_path / "squeue").chmod(0o755)
    with pytest.raises(SlurmFailed, match=r"^squeue gave no answer in 0\.2 s$"):
        answer_of("squeue")


def test_an_answer_with_errors_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While slurmctld is down, squeue 22.05 lists no jobs and exits with 0; so does sacct if it finds
    none.
    """
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    def says(errors: object) -> None:
        text = json.dumps({"errors": errors, "jobs": []})
        (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '{text}'\n")
        (tmp_path / "squeue").chmod(0o755)

    said = {"description": "Failed while looking for jobs", "error_number": -1, "error": "Unspecified error"}
    says([{**said, "source": "slurm_load_jobs"}])
    with pytest.raises(SlurmFailed, match=r"^squeue: slurm_load_jobs: Failed while .*: Unspecified error$"):
        answer_of("squeue")
    for none in ([], None, [{"error_number": 9003, "error": "Nothing found with query"}]):
        says(none)
        assert answer_of("squeue")["jobs"] == []


def test_scripts_wait_for_a_controller_that_gives_no_answer(
    store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """scontrol exits with 0 then. It is asked about one job, and that does not count as a try."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    scontrol, log = tmp_path / "scontrol", tmp_path / "asked"
    why = "job script retrieval failed: Socket timed out on send/recv operation"
    scontrol.write_text(f"#!/bin/sh\necho $3 >> {shlex.quote(str(log))}\necho '{why}' >&2\n")
    scontrol.chmod(0o755)
    scripts = Scripts()
    runs = sync.take(store, [job(7), job(8)], NODES, 1100)
    for now in range(1100, 1110):
        with pytest.raises(SlurmFailed, match="Socket timed out"):
            scripts.fetch(store, runs, now)
    assert log.read_text().split() == ["7"] * 10
    scontrol.write_text(f"#!/bin/sh\necho $3 >> {shlex.quote(str(log))}\necho '#!/bin/sh'\n")
    scripts.fetch(store, runs, 1110)
    assert [run.script for each in "78" if (run := store.run(each))] == ["#!/bin/sh\n"] * 2


def test_a_script_that_could_not_be_had_is_asked_for_again_and_not_for_ever(
    store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    scontrol, log = tmp_path / "scontrol", tmp_path / "asked"
    answer = f"[ $3 = 7 ] && [ -e {shlex.quote(str(tmp_path))}/up ] && echo '#!/bin/sh'"
    scontrol.write_text(f"#!/bin/sh\necho $3 >> {shlex.quote(str(log))}\n{answer}\n")
    scontrol.chmod(0o755)
    scripts = Scripts()
    for now in (1100, 1104, 1106):
        asked_all(store, [job(7), job(8)], now, scripts=scripts)
    assert log.read_text().split() == ["7", "8"] * 2
    (tmp_path / "up").touch()
    for now in (1167, 1300, 1_000_000):
        asked_all(store, [job(7), job(8)], now, scripts=scripts)
    run = store.run("7")
    assert run is not None
    assert run.script == "#!/bin/sh\n"
    asked_for = log.read_text().split()
    assert (asked_for.count("7"), asked_for.count("8")) == (3, 3)  # a job that salloc began has no script


# -- one number for several jobs, several numbers for one run


def test_a_number_that_slurm_gives_again_is_another_job(store: JobStore, tmp_path: Path) -> None:
    """As after `slurmctld -c`, after a lost state, or after MaxJobId jobs."""
    old = job(7, "CANCELLED", submit_time=995, start_time=1000, end_time=1200, name="old")
    sync.take(store, [old], NODES, 1210)
    store.write("UPDATE jobs SET script = '#!/bin/old', verdict = 'inefficient', judged = 1300")
    verdict = Verdict("inefficient", "abc", Hours(1, 0, 1, 0, 0.1, None, None, 1, None), ())
    body = json.dumps(verdict.body())
    store.write("INSERT INTO verdicts VALUES ('7', 0, 'abc', 1300, ?)", (body,))
    held(store, 7, 5000.4, None)  # an agent may report it first
    for state, more in (("PENDING", {"start_time": 0}), ("RUNNING", {}), ("COMPLETED", {"end_time": 5100})):
        told = job(7, state, **{"submit_time": 4990, "start_time": 5000, "name": "new", **more})
        sync.take(store, [told], NODES, 5110)
    (run, older) = (store.run("7"), store.run("7", -1))
    assert run is not None
    assert older is not None
    assert (run.restart, run.name, run.state, run.started) == (0, "new", "COMPLETED", 5000)
    assert (run.script, run.verdict, verdict_of(store, run)) == ("", "waiting", None)
    assert (older.name, older.state, older.started, older.ended) == ("old", "CANCELLED", 1000, 1200)
    assert (older.script, older.verdict, older.judged) == ("#!/bin/old", "inefficient", 1300)
    assert verdict_of(store, older) is not None
    assert store.restarts("7") == [-1, 0]
    store.update([dataclasses.replace(older, restart=0)])  # a late answer to an earlier question to sacct
    assert store.run("7") == run
    again = job(7, submit_time=8000, start_time=8000, name="third")
    sync.take(store, [again], NODES, 8010)
    assert [found.name for each in (-2, -1, 0) if (found := store.run("7", each))] == ["new", "old", "third"]


def test_a_run_that_an_agent_counted_otherwise_than_slurm_is_one(store: JobStore) -> None:
    held(store, 7, 1001.5, None)  # nobody has said yet which run of the job it is
    assert store.restarts("7") == [0]
    sync.take(store, [job(7, restart=2)], NODES, 1100)
    assert store.restarts("7") == [2]
    held(store, 7, 1001.5, 1400, 2)
    sync.take(store, [job(7, "COMPLETED", restart=2, end_time=1400)], NODES, 1410)
    assert store.restarts("7") == [2]
    held(store, 7, 1402, None, 3)  # a new run; Slurm reports the run before it for the last time
    sync.take(store, [job(7, "COMPLETED", restart=2, end_time=1400)], NODES, 1420)
    assert store.restarts("7") == [2]  # Slurm has not reported the next run, so nobody is shown it
    following = store.run("7", 3, provisional=True)
    assert following is not None
    assert following.started == 1402


@pytest.mark.parametrize("end", [None, 1000.8])
@pytest.mark.parametrize("following", [1001, 1002])
def test_a_run_that_only_its_agent_told_of_stays_when_the_next_begins_at_once(
    store: JobStore, end: float | None, following: float
) -> None:
    held(store, 7, 1000.1, end)
    sync.take(store, [job(7, restart=1, start_time=following)], NODES, 1010)
    assert store.restarts("7") == [0, 1]


# -- what sacct knows of runs that squeue has forgotten


def entry(number: int, start: int, end: int, state: Any = "COMPLETED", **more: Any) -> dict[str, Any]:
    return {
        "job_id": number, "state": {"current": state, "reason": "None"}, "user": "ann", "account": "phys",
        "name": "deep", "partition": "gpu", "qos": "normal", "nodes": "n1", "allocation_nodes": 1,
        "time": {"start": start, "end": end, "submission": start - 5, "limit": 60},
        "tres": {"allocated": [
            {"type": "cpu", "name": None, "count": 8}, {"type": "mem", "name": None, "count": 2048},
            {"type": "gres", "name": "gpu", "count": 2}, {"type": "gres", "name": "gpu:h100", "count": 2},
        ]},
        "array": {"job_id": 0, "task_id": None}, "wckey": {"wckey": "*lattice"}, **more,
    }  # fmt: skip


@pytest.fixture
def sacct(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Make sacct print this; returns a function that lists the jobs it was asked about, in order."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    script, log = tmp_path / "sacct", tmp_path / "asked"

    def says(*entries: dict[str, Any], fails: str = "") -> list[str]:
        (tmp_path / "says").write_text(json.dumps({"jobs": entries}))
        end = f"echo '{fails}' >&2; exit 1" if fails else f"cat {shlex.quote(str(tmp_path))}/says"
        script.write_text(f'#!/bin/sh\necho "$4" >> {shlex.quote(str(log))}\n{end}\n')
        script.chmod(0o755)
        return log.read_text().split() if log.exists() else []

    return says


def test_a_job_that_ended_while_nobody_looked_has_its_real_end(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    killed = {"status": "SIGNALED", "return_code": 3, "signal": {"signal_id": 9, "name": "Killed"}}
    sacct(entry(7, 1000, 1500, "FAILED", exit_code=killed))
    sync.take(store, [job(7), job(9)], NODES, 1100)
    held(store, 7, 1000, None)  # its agent is down, too
    asked_all(store, [job(9)], 5000, Accounts())
    run = store.run("7")
    assert run is not None
    assert (run.state, run.started, run.ended, run.exit_code, run.signal) == ("FAILED", 1000, 1500, 3, 9)
    assert run.name == ""  # as squeue reported it
    assert state_of(store, 9) == ("RUNNING", None)
    assert sacct() == ["7"]


def test_the_accounts_tell_the_memory_of_a_job_that_was_killed_for_it(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    steps = [
        {"tres": {"requested": {"max": [{"type": "cpu", "count": 9 << 40}, {"type": "mem", "count": count}]}}}
        for count in (1 << 20, 3 << 30)
    ]
    killed = entry(7, 1000, 1003, "OUT_OF_MEMORY", steps=[*steps, {}, {"tres": None}])
    killed["time"] |= {"suspended": 2}
    sacct(killed)
    sync.take(store, [job(7)], NODES, 1100)
    asked_all(store, [job(7, "OUT_OF_MEMORY", end_time=1003)], 1101, Accounts())  # squeue still knows it
    asked_all(store, [], 1102, Accounts())
    asked_all(store, [job(7, "OUT_OF_MEMORY", end_time=1003)], 1103)  # a later report does not remove it
    run = store.run("7")
    assert run is not None
    assert run.max_rss == 3 << 30


def test_a_job_that_began_and_ended_while_the_server_was_away_has_all_that_slurm_knows(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    held(store, 7, 1002, 1499)
    sacct(entry(7, 1000, 1500, ["TIMEOUT"], exit_code=0))  # states as in newer Slurm
    asked_all(store, [], 5000, Accounts())
    run = store.run("7")
    assert run is not None
    assert (run.state, run.started, run.ended, run.submitted) == ("TIMEOUT", 1000, 1500, 995)
    assert (run.user, run.account, run.name, run.project) == ("ann", "phys", "deep", "lattice")
    assert (run.cores, run.gpus, run.gpu_type, run.memory) == (8, 2, "h100", 2 << 30)
    assert (run.node_type, run.time_limit) == ("milan", 3600)
    held(store, 7, 1002, 1498, 2)  # a later report of an agent does not change it
    assert state_of(store, 7) == ("TIMEOUT", 1500)


def test_a_job_that_neither_squeue_nor_the_accounts_know_is_an_alarm(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    store.slurm_answered = 0.0  # Slurm is asked
    held(store, 7, 1002, 1499)
    held(store, 8, 1003, None, 2)
    held(store, 9, 1003, None, 3)
    accounts = Accounts()
    sacct(fails="slurmdbd: connection refused")
    asked_all(store, [job(9)], 5000, accounts)
    assert alarms(store.reader) == []  # no answer raises no alarm
    sacct(entry(8, 1003, 1400))
    asked_all(store, [job(9)], 5100, accounts)
    (alarm,) = alarms(store.reader)
    assert (alarm["kind"], alarm["node"], alarm["job"]) == ("unconfirmed", "n1", "7")
    assert "n1 names job 7 of nobody, which Slurm does not know" in alarm["text"]


def test_runs_of_a_requeued_job_have_ends_of_their_own(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    held(store, 7, 1001, 1099)
    held(store, 7, 1201, 1300, 2)
    first, second = entry(7, 1000, 1100, "NODE_FAIL"), entry(7, 1200, 1301, "CANCELLED")
    sacct(second, first, entry(7, 1400, 0, "RUNNING"), {"job_id": 7}, {"job_id": "x"})
    asked_all(store, [], 5000, Accounts())
    assert state_of(store, 7, 0) == ("NODE_FAIL", 1100)
    assert state_of(store, 7, 1) == ("CANCELLED", 1301)


def test_a_run_that_ended_within_the_second_of_its_start_has_its_end(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    """Slurm reports whole seconds, agents the time at which they noticed."""
    held(store, 7, 1000.63, 1000.84)
    sacct(entry(7, 1000, 1000, "CANCELLED"))
    asked_all(store, [], 5000, Accounts())
    assert state_of(store, 7) == ("CANCELLED", 1000)


def test_a_run_has_no_end_from_the_accounts_of_the_one_before(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    held(store, 7, 1000.2, 1040.9)
    held(store, 7, 1041.1, 1050, 2)
    for latest in ([], [entry(7, 1041, 0, "RUNNING")]):  # the accounts lag behind
        sacct(entry(7, 1000, 1040, "NODE_FAIL"), *latest)
        asked_all(store, [], 5000, Accounts())
        assert state_of(store, 7, 0) == ("NODE_FAIL", 1040)
        assert state_of(store, 7, 1) == ("ENDED", 1050)


def test_accounts_that_lag_are_asked_again_and_those_that_are_none_are_not_missed(
    store: JobStore, sacct: Callable[..., list[str]]
) -> None:
    accounts = Accounts()
    sacct()
    held(store, 7, 1000, 1500)
    for now in (2000, 2001, 2003, 2012, 2014):
        asked_all(store, [], now, accounts)
    assert sacct(fails="sacct: error: Slurm accounting storage is disabled") == ["7"] * 3
    asked_all(store, [], 2080, accounts)
    assert (state_of(store, 7), accounts.refused) == (("ENDED", 1500), "")
    sacct(fails="sacct: error: slurmdbd: Connection refused")
    asked_all(store, [], 2400, accounts)
    assert "Connection refused" in accounts.refused
    asked_all(store, [], 2401, accounts)  # it is not asked again for a while
    sacct(entry(7, 1000, 1490))
    asked_all(store, [], 5000, accounts)
    assert (state_of(store, 7), accounts.refused) == (("COMPLETED", 1490), "")
    asked_all(store, [], 90_000, accounts)
    assert len(sacct()) == 6


@pytest.mark.parametrize(
    "value", [4294967294, 4294967295, (1 << 64) - 2, (1 << 64) - 1, float("nan"), 1e300, -1]
)
def test_numbers_that_stand_for_none_are_none(value: Any) -> None:
    """Slurm 22.05 has plain integers for NO_VAL and INFINITE, in 32 and 64 bits."""
    fields = (
        "time_limit",
        "submit_time",
        "end_time",
        "restart_cnt",
        "node_count",
        "cpus",
        "exit_code",
        "array_task_id",
    )
    for each in (value, {"set": True, "infinite": False, "number": value}):
        run = sync.run_of(job(7, "COMPLETED", array_job_id=7, **dict.fromkeys(fields, each)), 1100)
        assert run is not None
        assert (run.time_limit, run.submitted, run.ended, run.exit_code, run.array) == (
            None,
            None,
            None,
            None,
            "",
        )
        assert (run.restart, run.nodes, run.cores) == (0, 0, 0)


def test_a_limit_just_below_is_a_limit() -> None:
    run = sync.run_of(job(7, time_limit=65535), 1100)
    assert run is not None
    assert run.time_limit == 65535 * 60


@pytest.mark.parametrize(
    ("state", "shown"),
    [
        (["IDLE", "INVALID_REG"], "blocked"), (["MIXED", "INVALID_REG"], "blocked"), (["INVALID"], "off"),
        (["IDLE", "DRAIN"], "blocked"), (["IDLE"], "free"), (["IDLE", "CLOUD", "POWERED_DOWN"], "off"),
    ],
)  # fmt: skip
def test_a_node_that_takes_no_jobs_is_not_free(state: list[str], shown: str) -> None:
    found = sync.node_of({"name": "n", "state": state, "cpus": 8, "gres": "gpu:4"})
    assert found["state"] == shown
    assert found["gpus_blocked"] == (0 if shown == "free" else 4)


def test_a_name_of_any_bytes_holds_up_no_other_job(
    store: JobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    told = json.dumps({"jobs": [job(7, name="NAME"), job(8, name="\ud800")]}).encode()
    squeue.write_bytes(b"#!/bin/sh\ncat <<'X'\n" + told.replace(b"NAME", b"\xff\xfe") + b"\nX\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sync.take(store, slurm_json.answer_of("squeue")["jobs"], NODES, 1100)
    names = [run.name for number in ("7", "8") if (run := store.run(number))]
    assert names == ["\ufffd\ufffd", "?"]
