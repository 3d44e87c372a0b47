"""The server's parallel questions to Slurm: commands that hang, fail and recover."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from jobs_scene import BOOT, filed

from peerway_jobs import slurm_watch
from peerway_jobs.batch import Batch, Interval
from peerway_jobs.slurm_watch import Watch
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.pending import due
from peerway_jobs.store.queue import queue

BEGAN = int(time.time()) - 5000  # recent, because the accounts are not asked about runs that ended long ago
ANSWERS = {
    "squeue": {"jobs": [{
        "job_id": 7, "job_state": "RUNNING", "user_name": "ann", "start_time": BEGAN, "nodes": "n1",
        "node_count": 1, "cpus": 8,
    }, {"job_id": 9, "job_state": "PENDING", "user_name": "bob", "state_reason": "Priority"}]},
    "sinfo": {"nodes": [{"name": "n1", "state": "mixed", "cpus": 64, "features": ["milan"]}]},
    "sacct": {"jobs": [{
        "job_id": 8, "state": {"current": "COMPLETED"}, "time": {"start": BEGAN, "end": BEGAN + 500},
    }]},
}  # fmt: skip


class Slurm:
    """Slurm commands that answer, hang while a file exists, or print something unusable."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("squeue", "sinfo", "sacct", "scontrol"):
            hang = 'while [ -e "$0.hangs" ]; do sleep 0.05; done'
            (folder / name).write_text(f'#!/bin/sh\n{hang}\ncat "$0.says"\n')
            (folder / name).chmod(0o755)
            self.says(name)

    def hangs(self, name: str) -> None:
        (self.folder / f"{name}.hangs").touch()

    def goes_on(self, name: str) -> None:
        (self.folder / f"{name}.hangs").unlink()

    def says(self, name: str, text: str | None = None) -> None:
        draft = self.folder / "draft"
        usual = json.dumps(ANSWERS[name]) if name in ANSWERS else "#!/bin/sh\n"
        draft.write_text(usual if text is None else text)
        draft.replace(self.folder / f"{name}.says")


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, value in (("EVERY", 0.0), ("_LEAST_S", 0.05), ("_FIRST_S", 0.2), ("_AFTER_FAILURE_S", 0.05)):
        monkeypatch.setattr(slurm_watch, name, value)
    return Slurm(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    """A store in which an agent has reported job 8, which squeue does not know."""
    made = JobStore(tmp_path / "jobs.db")
    interval = Interval("8.1", 8, BEGAN * 1000, BEGAN * 1000 + 499_000)
    made.file([filed(Batch("n1", "a" * 32, 1, BOOT, BEGAN * 1000 + 500_000, 1000, intervals=[interval]))])
    yield made
    made.close()


def until(ready: Callable[[], bool]) -> None:
    while not ready():
        time.sleep(0.01)


def to_judge(store: JobStore) -> list[str]:
    return [run.job for run in due(store, BEGAN + 1000) if run.ended]


def state(store: JobStore, job: str) -> str:
    run = store.run(job)
    return run.state if run else ""


def script(store: JobStore, job: str) -> str:
    run = store.run(job)
    return run.script if run else ""


def waiting(store: JobStore) -> list[tuple[str, str, str]]:
    return [(line.job, line.user, line.reason) for line in queue(store.reader).lines]


ALL = {
    "squeue": lambda store: state(store, "7") == "RUNNING" and waiting(store) == [("9", "bob", "Priority")],
    "sinfo": lambda store: (run := store.run("7")) is not None and run.node_type == "milan",
    "sacct": lambda store: state(store, "8") == "COMPLETED",
    "scontrol": lambda store: script(store, "7") == "#!/bin/sh\n",
}
NEEDS = {"squeue": {"sinfo", "scontrol"}}  # jobs have nodes, and scripts


@pytest.mark.parametrize("name", [*ALL])
def test_a_command_that_hangs_holds_up_no_other(slurm: Slurm, store: JobStore, name: str) -> None:
    slurm.hangs(name)
    said: list[str] = []
    watch = Watch(store, said.append, lambda task, error: said.append(f"{task}: {error}"))
    watch.start()
    try:
        for other in {*ALL} - {name} - NEEDS.get(name, set()):
            until(lambda other=other: ALL[other](store))  # type: ignore[misc]
        assert not ALL[name](store)
        slurm.goes_on(name)
        for each in ALL:
            until(lambda each=each: ALL[each](store))  # type: ignore[misc]
    finally:
        watch.stop()
    assert said == []


@pytest.mark.parametrize("name", ["squeue", "sinfo", "sacct"])
@pytest.mark.parametrize(
    "answer", ["", "[]", '{"errors": [{"error": "no"}], "jobs": []}', '{"jobs": 5, "nodes": 5}']
)
def test_an_answer_that_is_none_holds_up_no_other_and_is_told_once(
    slurm: Slurm, store: JobStore, name: str, answer: str
) -> None:
    slurm.says(name, answer)
    said: list[str] = []
    watch = Watch(store, said.append, lambda task, error: said.append(f"{task}: {error}"))
    watch.start()
    try:
        until(lambda: bool(said))
        for other in {*ALL} - {name} - NEEDS.get(name, set()):
            until(lambda other=other: ALL[other](store))  # type: ignore[misc]
    finally:
        watch.stop()
    assert not ALL[name](store)
    assert len({*said}) == 1
    if answer != '{"jobs": 5, "nodes": 5}':  # an unexpected failure is logged by the caller, less often
        assert len(said) == 1


def test_no_run_ends_because_no_controller_answers(slurm: Slurm, store: JobStore) -> None:
    said: list[str] = []
    watch = Watch(store, said.append, lambda task, error: said.append(f"{task}: {error}"))
    watch.start()
    try:
        until(lambda: ALL["squeue"](store))
        slurm.says("squeue", '{"errors": [{"error": "Unspecified error"}], "jobs": []}')
        until(lambda: bool(said))
        told = store.slurm_answered
        assert state(store, "7") == "RUNNING"
        slurm.says("squeue", '{"jobs": []}')
        until(lambda: state(store, "7") == "ENDED")
        assert store.slurm_answered != told
    finally:
        watch.stop()
    assert len(said) == 1
    assert said[0].endswith(
        "; it is asked again; on a host that has no Slurm start the server with --no-slurm"
    )


def test_verdicts_wait_for_the_first_word_of_the_accounts_and_not_while_they_have_none(
    slurm: Slurm, store: JobStore
) -> None:
    slurm.hangs("sacct")
    watch = Watch(store, lambda _: None, lambda *_: None)
    assert to_judge(store) == []
    watch.start()
    try:
        until(lambda: store.slurm_answered != 0)
        assert to_judge(store) == []
        slurm.says("sacct", "")
        slurm.goes_on("sacct")
        until(lambda: to_judge(store) == ["8"])
    finally:
        watch.stop()
