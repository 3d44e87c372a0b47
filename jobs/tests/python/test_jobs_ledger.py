"""The agent's ledger: intervals and slots, from what prolog, epilog, processes and Slurm report."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from peerway_jobs.agent import files
from peerway_jobs.agent.ledger import REST_MS, Ledger, Now
from peerway_jobs.agent.records import Record, Records, parse
from peerway_jobs.agent.slurm import Answer
from peerway_jobs.agent.steps import Step
from peerway_jobs.agent.system import TICK
from peerway_jobs.batch import Gpu

BOOT, OTHER = "6f1c2b3a-0000-4000-8000-0123456789ab", "11111111-0000-4000-8000-0123456789ab"
WALL = 1_795_300_000_000
# NVML's index is not the number of the device file.
GPUS = [Gpu("GPU-a", index=0, minor=1), Gpu("GPU-b", index=1, minor=0)]
DIVIDED = [*GPUS, Gpu("MIG-c", parent="GPU-b", minor=0), Gpu("MIG-d", parent="GPU-b", minor=0)]


def at(seconds: float, boot: str = BOOT, wall: int = WALL) -> Now:
    return Now(wall + int(seconds * 1000), 100_000 + int(seconds * 1000), boot)


def record(
    event: str, job: int, seconds: float, *, gpus: str = "", cuda: str = "", boot: str = BOOT
) -> Record:
    now = at(seconds)
    return Record("", event, job, now.wall_ms, now.mono_ms, boot, 1000, "ann", "gpu", None, gpus, cuda, False)


def step(job: int, seconds: float, name: str = "0") -> Step:
    return Step(job, name, 1, at(seconds).mono_ms * TICK // 1000)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.json", lambda: GPUS)


def spans(ledger: Ledger, job: int) -> list[tuple[int, int | None]]:
    """The changed intervals of the job, in seconds."""
    found = [each for each in ledger.changed() if each.job == job and each.step is None]
    return [((each.start_ms - WALL) // 1000, each.end_ms and (each.end_ms - WALL) // 1000) for each in found]


def test_from_prolog_to_epilog(ledger: Ledger) -> None:
    ledger.record(record("prolog", 7, 1, gpus="0"), at(2))
    assert ledger.jobs_of_gpu("GPU-b") == [7]  # /dev/nvidia0
    ledger.record(record("epilog", 7, 5), at(6))
    assert spans(ledger, 7) == [(1, 5)]
    assert ledger.jobs_of_gpu("GPU-b") == []


@pytest.mark.parametrize(
    ("gpus", "cuda", "uuids", "known"),
    [
        ("0,1", "0,1", ["GPU-b", "GPU-a"], True),
        ("1", "GPU-a", ["GPU-a"], True),
        ("", "", [], True),
        ("", "NoDevFiles", [], True),
        ("9", "9", [], False),
        ("", "0", [], False),  # a share of a GPU
    ],
)
def test_gpus_by_device_file_or_by_uuid(
    ledger: Ledger, gpus: str, cuda: str, uuids: list[str], known: bool
) -> None:
    ledger.record(record("prolog", 7, 1, gpus=gpus, cuda=cuda), at(2))
    assert [each.gpus for each in ledger.changed()] == [uuids]
    assert ledger.knows_gpus_of(7) is known


@pytest.mark.parametrize(
    ("gpus", "cuda", "uuids"),
    [("0", "MIG-c", ["MIG-c"]), ("0", "0", []), ("0", "MIG-new", []), ("1", "1", [])],
)
def test_on_a_node_with_instances_numbers_tell_no_gpu(
    tmp_path: Path, gpus: str, cuda: str, uuids: list[str]
) -> None:
    ledger = Ledger(tmp_path / "ledger.json", lambda: DIVIDED)
    ledger.record(record("prolog", 7, 1, gpus=gpus, cuda=cuda), at(2))
    assert [each.gpus for each in ledger.changed()] == [uuids]
    assert ledger.knows_gpus_of(7) is bool(uuids)
    ledger.follow([step(8, 1)], at(2))
    ledger.learn(Answer(8, True, True, 1000, "gpu", 0, [1], 4, 1 << 30))
    found = ledger.of_job(8)
    assert found is not None
    assert found.gpus == []
    ledger.save(at(3))
    after = Ledger(tmp_path / "ledger.json", lambda: DIVIDED)
    after.load(at(5))
    assert not after.knows_gpus_of(8)


def test_a_requeued_job_whose_epilog_was_missed_ends_where_it_was_seen_last(ledger: Ledger) -> None:
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.follow([step(7, 1)], at(10))
    ledger.follow([], at(20))
    ledger.record(record("prolog", 7, 60), at(61))
    assert spans(ledger, 7) == [(1, 10), (60, None)]


def test_an_epilog_without_a_prolog_opens_nothing(ledger: Ledger) -> None:
    ledger.record(record("epilog", 7, 1), at(2))
    assert ledger.changed() == []


def test_a_step_that_nobody_announced_opens_its_job_and_slurm_says_whose_it_is(ledger: Ledger) -> None:
    ledger.follow([step(7, 1)], at(2))
    assert ledger.doubtful(at(2), 60_000) == [7]
    assert not ledger.knows_gpus_of(7)
    ledger.learn(Answer(7, True, True, 1000, "gpu", 2, [1], 4, 1 << 30))
    assert ledger.knows_gpus_of(7)
    found = ledger.of_job(7)
    assert found is not None
    assert (found.source, found.uid, found.restart, found.gpus, found.cpus) == (
        "slurm",
        1000,
        2,
        ["GPU-a"],
        4,
    )
    assert ledger.doubtful(at(3), 60_000) == []


def test_a_job_without_steps_is_asked_for_and_ended_only_by_slurms_word(ledger: Ledger) -> None:
    ledger.record(record("prolog", 7, 1), at(1))
    ledger.follow([step(7, 2)], at(10))
    ledger.follow([], at(20))
    assert ledger.doubtful(at(30), 60_000) == []
    assert ledger.doubtful(at(100), 60_000) == [7]
    ledger.learn(Answer(7, known=True, running=True))
    assert spans(ledger, 7) == [(1, None)]
    ledger.learn(Answer(7, known=False))
    assert spans(ledger, 7) == [(1, 10)]


def test_the_cores_of_a_job_are_those_of_all_its_steps(ledger: Ledger) -> None:
    """Including steps whose first process exists when they are first seen, which is nearly always so."""

    def on_cores(name: str, cores: list[int] | None) -> Step:
        found = step(7, 2, name)
        found.cores = cores
        return found

    ledger.record(record("prolog", 7, 1), at(2))
    batch, later = on_cores("batch", [4, 5]), on_cores("0", None)
    ledger.follow([batch], at(3))
    assert [(each.step, each.cores) for each in ledger.changed()] == [(None, [4, 5]), ("batch", [4, 5])]
    ledger.sent()
    ledger.follow([batch, later], at(4))
    later.cores = [2, 3]
    ledger.follow([batch, later], at(5))
    assert {each.step: each.cores for each in ledger.changed()} == {None: [2, 3, 4, 5], "0": [2, 3]}
    ledger.sent()
    ledger.follow([batch, later], at(6))
    assert ledger.changed() == []


def test_a_slot_rests_after_its_step(ledger: Ledger) -> None:
    first, second, third = step(7, 1), step(8, 1), step(9, 30)
    assert [ledger.slot(each) for each in ledger.follow([first, second], at(2))] == [0, 1]
    assert [ledger.slot(each) for each in ledger.follow([second, third], at(31))] == [1, 2]
    later = step(10, 40 + REST_MS / 1000)
    ledger.follow([second, later], at(41 + REST_MS / 1000))
    assert ledger.slot(later) == 0


def test_a_step_that_was_read_before_its_jobs_epilog_does_not_count(ledger: Ledger) -> None:
    ledger.record(record("prolog", 7, 1), at(3))
    ledger.record(record("epilog", 7, 2), at(3))
    assert ledger.follow([step(7, 1.5)], at(3)) == []
    assert spans(ledger, 7) == [(1, 2)]


def test_the_next_agent_knows_slots_and_intervals(ledger: Ledger, tmp_path: Path) -> None:
    running = step(7, 1)
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.follow([running], at(2))
    ledger.save(at(2))
    after = Ledger(tmp_path / "ledger.json", lambda: GPUS)
    after.load(at(5))
    assert [after.slot(each) for each in after.follow([running], at(6))] == [0]
    assert after.changed() == []
    after.record(record("epilog", 7, 8), at(9))
    assert spans(after, 7) == [(1, 8)]


@pytest.mark.parametrize(("epilog", "end"), [([200], 200), ([], 4)])
def test_a_step_that_ended_while_no_agent_ran_does_not_last_until_the_next_one(
    ledger: Ledger, tmp_path: Path, epilog: list[int], end: int
) -> None:
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.follow([step(7, 1)], at(4))
    ledger.save(at(4))
    after = Ledger(tmp_path / "ledger.json", lambda: GPUS)
    after.load(at(20_000))
    for seconds in epilog:
        after.record(record("epilog", 7, seconds), at(20_000))
    after.follow([step(9, 19_990)], at(20_000))
    (ended,) = [each for each in after.changed() if each.job == 7 and each.step is not None]
    assert ended.end_ms == WALL + end * 1000
    after.follow([], at(20_030))
    (later,) = [each for each in after.changed() if each.job == 9 and each.step is not None]
    assert later.end_ms == WALL + 20_030_000


def test_a_reboot_ends_all_where_it_was_seen_last(ledger: Ledger, tmp_path: Path) -> None:
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.follow([step(7, 1)], at(2))
    ledger.save(at(4))
    after = Ledger(tmp_path / "ledger.json", lambda: GPUS)
    after.load(at(300, boot=OTHER))
    assert spans(after, 7) == [(1, 4)]
    assert after.open == {}


def test_an_epilog_from_before_a_reboot_ends_the_job_that_the_stopped_agent_did_not_see_end(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.record(record("prolog", 8, 1), at(2))
    ledger.save(at(4))
    after = Ledger(tmp_path / "ledger.json", lambda: GPUS)
    after.load(at(300, boot=OTHER))
    after.record(record("epilog", 7, 200), at(300, boot=OTHER))
    assert spans(after, 7) == [(1, 200)]
    assert spans(after, 8) == [(1, 4)]
    assert after.ended_uid(7) == 1000


def test_an_epilog_after_a_reboot_does_not_end_the_previous_run_of_a_job(
    ledger: Ledger, tmp_path: Path
) -> None:
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.save(at(4))
    after = Ledger(tmp_path / "ledger.json", lambda: GPUS)
    after.load(at(300, boot=OTHER))
    for event, seconds in (("prolog", 100), ("epilog", 200)):  # requeued, and its first epilog was missed
        after.record(record(event, 7, seconds), at(300, boot=OTHER))
    assert spans(after, 7) == [(1, 4), (100, 200)]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"boot": 1}', '{"boot": "x", "intervals": [{"id": 1}]}'])
def test_a_torn_state_is_begun_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "ledger.json").write_text(text)
    ledger = Ledger(tmp_path / "ledger.json", lambda: GPUS)
    ledger.load(at(1))
    assert ledger.open == {}


def test_times_follow_a_clock_that_was_set(ledger: Ledger) -> None:
    ledger.record(record("prolog", 7, 1), at(2))
    ledger.shift(3_600_000)
    ledger.record(record("epilog", 7, 5), at(6, wall=WALL + 3_600_000))
    assert spans(ledger, 7) == [(3601, 3605)]


def test_a_record_that_cannot_be_read_now_is_taken_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for event, wall in (("prolog", 100), ("epilog", 200)):
        (tmp_path / f"7.{wall}.{event}").write_text(f"job=7\nwall_ms={wall}\nmono_ms=5\nboot={BOOT}\n")
    records = Records(str(tmp_path))
    read = files.read

    def fails_at_the_second(path: str, most: int) -> bytes:
        if path.endswith("epilog"):
            raise OSError(errno.EMFILE, "Too many open files")
        return read(path, most)

    with monkeypatch.context() as patched:
        patched.setattr(files, "read", fails_at_the_second)
        with pytest.raises(OSError, match="Too many open files"):
            records.take()
    records.taken()
    assert [found.event for found in records.take()] == ["prolog", "epilog"]
    assert records.wrong == []


def test_records_that_are_none_are_told_and_removed(tmp_path: Path) -> None:
    (tmp_path / "7.100.prolog").write_text(
        f"job=7\nwall_ms=100\nmono_ms=5\nboot={BOOT}\nuid=1000\nuser=a\x1bb\n"
    )
    (tmp_path / "8.100.prolog").write_text("job=8; rm -rf /\n")
    (tmp_path / "notes.txt").write_text("hello\n")
    (tmp_path / ".draft").write_text("half")
    records = Records(str(tmp_path))
    (found,) = records.take()
    assert (found.job, found.uid, found.user) == (7, 1000, None)
    assert records.wrong == ["8.100.prolog", "notes.txt"]
    records.taken()
    assert [path.name for path in tmp_path.iterdir()] == [".draft"]
    assert parse("9.1.prolog", "job=0\nwall_ms=1\nmono_ms=1\n") is None
