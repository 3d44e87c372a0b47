"""How the server dates batches of nodes whose clocks are wrong or are set, and of nodes that reboot.

A job keeps 3 cores busy for half an hour; whatever the node's clock says, its samples must be in its time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from jobs_scene import START, Job

from peerway_jobs.batch import Batch, encode
from peerway_jobs.clock import Sent
from peerway_jobs.frames import frame
from peerway_jobs.measured import Measured
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.ingest import Ingest
from peerway_jobs.serve.live import Live

CPU = "step_cpu_user_seconds_total"
MINUTES, USED = 30, 3.0
BOOTS = [f"{n}0000000-0000-4000-8000-000000000000" for n in range(3)]


@dataclass
class Clocked:
    """A monitor whose clock the test sets."""

    folder: Path
    now: float = 0.0

    def __post_init__(self) -> None:
        self.monitor = Monitor(self.folder, clock=lambda: self.now)

    def deliver(self, *posts: tuple[float, Sent, list[Batch]]) -> None:
        """Deliver POSTs as agents make them: time, the node's clocks at that time, and the batches."""

        async def run() -> None:
            def failed(task: str, error: Exception) -> None:
                raise AssertionError(task) from error

            ingest = Ingest(self.monitor, Live(lambda node: {}), failed)
            writer = asyncio.create_task(ingest.write())
            for self.now, sent, batches in posts:
                body = b"".join(frame(encode(each)) for each in batches)
                answer = await ingest.post(batches[0].node, body, sent.header())
                assert answer["acknowledged"] == batches[-1].seq
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer

        asyncio.run(run())

    def run(self, job: int, restart: int = 0) -> Measured:
        found = self.monitor.jobs.run(str(job), restart)
        assert found is not None
        return self.monitor.measured(found)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Clocked]:
    made = Clocked(tmp_path)
    yield made
    made.monitor.close()


def at_minutes(job: Job) -> list[tuple[float, Batch]]:
    """The job's batches, each with the true time at which it was made."""
    batches = [each.batch for each in job.batches()]
    whole, step = batches[0].intervals
    batches[0].intervals = [replace(whole, end_ms=None), replace(step, end_ms=None)]
    batches[-1].intervals = [whole, step]
    return [(each.wall_ms / 1000, each) for each in batches]


def shifted(batch: Batch, by_s: float) -> Batch:
    """The batch as a node sends it whose clock is wrong by `by_s` seconds."""
    by = int(by_s * 1000)
    intervals = [
        replace(each, start_ms=each.start_ms + by, end_ms=None if each.end_ms is None else each.end_ms + by)
        for each in batch.intervals
    ]
    return replace(batch, wall_ms=batch.wall_ms + by, intervals=intervals)


def right(measured: Measured, minutes: int = MINUTES, used: float = USED, start: float = START) -> None:
    """Check that the run has its own time, no gap in it, and no use but its own."""
    assert measured.run.started == pytest.approx(start, abs=1)
    assert measured.run.ended == pytest.approx(start + minutes * 60, abs=1)
    (cpu,) = measured["step.cpu"] or ()
    assert cpu.mean() == pytest.approx(used)
    assert cpu.covered > 0.9 * cpu.seconds


CLOCKS: dict[str, Callable[[float], float]] = {  # minute -> error of the clock
    "right": lambda minute: 0.0,
    "an hour fast": lambda minute: 3600.0,
    "two days slow": lambda minute: -172_800.0,
    "set forwards": lambda minute: 3600.0 if minute >= 10 else 0.0,
    "set backwards": lambda minute: -3600.0 if minute >= 10 else 0.0,
    "set twice": lambda minute: 3600.0 if 10 <= minute < 20 else -900.0 if minute >= 20 else 0.0,
    "put right": lambda minute: 86_400.0 if minute < 10 else 0.0,
}


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=list(CLOCKS))
def test_a_clock_that_is_wrong_or_set_moves_no_sample(
    server: Clocked, clock: Callable[[float], float]
) -> None:
    for at, batch in at_minutes(Job(7, {CPU: USED}, minutes=MINUTES)):
        wrong = clock((at - START) / 60)
        sent = Sent(int((at + wrong) * 1000), batch.mono_ms, batch.boot)
        server.deliver((at, sent, [shifted(batch, wrong)]))
    server.now = START + 7200.0
    right(server.run(7))


@pytest.mark.parametrize("clock", CLOCKS.values(), ids=list(CLOCKS))
def test_and_none_of_a_spool_that_is_sent_an_hour_later(
    server: Clocked, clock: Callable[[float], float]
) -> None:
    made = at_minutes(Job(7, {CPU: USED}, minutes=MINUTES))
    batches = [shifted(batch, clock((at - START) / 60)) for at, batch in made]
    later, wrong = made[-1][0] + 3600, clock(MINUTES + 60)
    sent = Sent(int((later + wrong) * 1000), made[-1][1].mono_ms + 3_600_000, made[-1][1].boot)
    server.deliver((later, sent, batches))
    server.deliver((later + 5, sent, batches))  # because its answer was lost
    right(server.run(7))


def test_a_node_that_reboots_counts_from_zero_and_charges_nobody(server: Clocked) -> None:
    """A reboot ends the first run, which is reported after it; the job runs again with the same id and
    slot.
    """
    first = at_minutes(Job(7, {CPU: USED}, minutes=MINUTES))
    again = START + 40 * 60
    second = [
        (at + 40 * 60, replace(shifted(batch, 40 * 60), seq=batch.seq + 100, boot=BOOTS[1]))
        for at, batch in at_minutes(Job(7, {CPU: 1.0}, minutes=MINUTES))
    ]
    for _, batch in first:
        batch.boot = BOOTS[0]
    for _, batch in second:  # batches of the new boot
        batch.intervals = [replace(each, id=f"{each.id}b", restart=1) for each in batch.intervals]
    told_after = Sent(int(again * 1000), 30_000, BOOTS[1])
    server.deliver((again, told_after, [batch for _, batch in first]))
    for at, batch in second:
        server.deliver((at, Sent(int(at * 1000), batch.mono_ms, batch.boot), [batch]))
    server.now = START + 2 * 7200.0
    assert server.monitor.jobs.restarts("7") == [0, 1]
    right(server.run(7, 0))
    right(server.run(7, 1), used=1.0, start=again)


def test_a_counter_that_begins_anew_within_a_run_goes_on_from_zero(server: Clocked) -> None:
    def counter(_: int, minute: int) -> float:
        return USED * 60 * (minute if minute < 14 else minute - 12)

    for at, batch in at_minutes(Job(7, {CPU: counter}, minutes=MINUTES)):
        server.deliver((at, Sent(int(at * 1000), batch.mono_ms, batch.boot), [batch]))
    server.now = START + 7200.0
    right(server.run(7))


@pytest.mark.parametrize("wrong", [0.0, -3600.0], ids=["right", "an hour slow"])
def test_posts_that_are_long_on_their_way_move_no_sample(server: Clocked, wrong: float) -> None:
    """A loaded server reads some POSTs a minute late; the other POSTs show the node's clock."""
    made = at_minutes(Job(7, {CPU: USED}, minutes=MINUTES))
    posts = [
        (
            at + (60.0 if number % 4 == 3 else 0.0),
            Sent(int((at + wrong) * 1000), batch.mono_ms, batch.boot),
            [shifted(batch, wrong)],
        )
        for number, (at, batch) in enumerate(made)
    ]
    server.deliver(*posts)
    server.now = START + 7200.0
    (cpu,) = server.run(7)["step.cpu"] or ()
    assert set(cpu.times) <= {at for at, _ in made}
    right(server.run(7))


@pytest.mark.parametrize("wrong", [0.0, -3600.0], ids=["right", "an hour slow"])
def test_nor_does_the_first_one_after_a_restart_of_the_server(server: Clocked, wrong: float) -> None:
    """Each delivery goes to a newly started server, which has nothing of its own to compare with."""
    for number, (at, batch) in enumerate(at_minutes(Job(7, {CPU: USED}, minutes=MINUTES))):
        sent = Sent(int((at + wrong) * 1000), batch.mono_ms, batch.boot)
        server.deliver((at + (60.0 if number else 0.0), sent, [shifted(batch, wrong)]))
    server.now = START + 7200.0
    right(server.run(7))


def test_what_was_kept_of_clocks_goes_when_the_servers_own_was_set(server: Clocked) -> None:
    """It was an hour slow, and was corrected while the server was down: now the nodes' clocks agree with
    it.
    """
    made = at_minutes(Job(7, {CPU: USED}, minutes=MINUTES))
    for number, (at, batch) in enumerate(made):
        sent = Sent(int(at * 1000), batch.mono_ms, batch.boot)
        server.deliver((at - (3600.0 if number == 0 else 0.0), sent, [batch]))
    server.now = START + 7200.0
    (cpu,) = server.run(7)["step.cpu"] or ()
    assert set(cpu.times) <= {at for at, _ in made[1:]}
    assert cpu.mean() == pytest.approx(USED)
