"""No run is charged for another run's use, however late, repeated and shuffled the batches arrive.

One node is simulated: its agent's real ledger gives intervals and slots, each step uses a share of a core
that no other step uses (a power of two), and the batches go through the server's real ingest. So each sample
of a run shows whose it is.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from jobs_scene import START
from test_jobs_clocks import Clocked

from peerway_jobs.agent.ledger import Ledger, Now
from peerway_jobs.agent.records import Record
from peerway_jobs.agent.steps import Step
from peerway_jobs.agent.system import TICK
from peerway_jobs.batch import Batch, Facts, Samples
from peerway_jobs.clock import Sent
from peerway_jobs.series import Series
from peerway_jobs.store.runs import Run

ROUND_S = 10
NODE, CPU = "n1", "step_cpu_user_seconds_total"
LAST = 200  # rounds
BOOTS = [f"{n}0000000-0000-4000-8000-000000000000" for n in range(3)]


@dataclass
class Part:
    """A step in its rounds [first, last), and the cores that it keeps busy."""

    name: str
    first: int
    last: int
    rate: float


@dataclass
class Played:
    """A run of a job in its rounds [first, last)."""

    job: int
    restart: int
    first: int
    last: int
    parts: list[Part]
    cut: bool = False  # ended by a reboot, without an epilog

    def expected(self) -> dict[int, float]:
        """The cores that the run kept busy, by the round at whose end they are measured."""
        found = {}
        for at in range(self.first + 1, self.last):
            found[at] = sum(part.rate for part in self.parts if part.first < at < part.last)
        return found

    def told_by_slurm(self) -> Run:
        started, ended = float(START + self.first * ROUND_S), float(START + self.last * ROUND_S)
        return Run(
            str(self.job), self.restart, user="ann", state="COMPLETED", started=started, ended=ended, nodes=1,
            cores=4, node_list=NODE,
        )  # fmt: skip


@some.composite
def histories(draw: some.DrawFn) -> tuple[list[Played], int]:
    """The runs on the node, and the round of a reboot."""
    reboot = draw(some.integers(20, LAST - 1))
    runs: list[Played] = []
    bit = 0
    for job in range(1, draw(some.integers(1, 4)) + 1):
        at = draw(some.integers(0, 60))
        for restart in range(draw(some.integers(1, 3))):
            last = min(at + draw(some.integers(4, 60)), LAST)
            if last - at < 4:
                break
            cut = at < reboot < last
            run = Played(job, restart, at, reboot if cut else last, [], cut)
            second = draw(some.integers(at + 1, run.last))
            for name, first in (("batch", at), ("0", second)):
                if first < run.last:
                    run.parts.append(Part(name, first, run.last, 2.0**bit / 1024))
                    bit += 1
            runs.append(run)
            at = last + draw(some.integers(4, 30))
            if at >= LAST:
                break
    return runs, reboot


@dataclass
class Node:
    """A simulated node: the batches of its agent, without a kernel."""

    folder: Path
    reboot: int
    ends: frozenset[int]  # rounds before which the agent is killed and started again
    batches: list[Batch] = field(default_factory=list)

    def now(self, at: int) -> Now:
        rebooted = at >= self.reboot
        since = at - self.reboot if rebooted else at
        return Now((START + at * ROUND_S) * 1000, 50_000 + since * ROUND_S * 1000, BOOTS[rebooted])

    def ledger(self, at: int) -> Ledger:
        made = Ledger(self.folder / "ledger.json", list)
        made.load(self.now(at))
        return made

    def play(self, runs: list[Played]) -> None:
        ledger = self.ledger(0)
        for at in range(LAST + 2):
            now = self.now(at)
            if at == self.reboot or at in self.ends:
                ledger = self.ledger(at)
            for run in runs:
                if at == run.last and not run.cut:
                    ledger.record(self.record("epilog", run, now), now)
            for run in runs:
                if at == run.first:
                    ledger.record(self.record("prolog", run, now), now)
            running = {
                self.step(run, part): part
                for run in runs
                for part in run.parts
                if part.first <= at < part.last
            }
            steps = ledger.follow([Step(job, name, 1, start) for job, name, start in running], now)
            used = {
                ledger.slot(step): running[step.key].rate * (at - running[step.key].first) * ROUND_S
                for step in steps
            }
            batch = Batch(NODE, "ab" * 16, at + 1, now.boot, now.wall_ms, now.mono_ms)
            batch.samples = (
                {"step": Samples([str(slot) for slot in used], {CPU: list(used.values())})} if used else {}
            )
            batch.intervals = ledger.changed()
            # So many CPUs that no rate is too high.
            batch.facts = Facts(1 << 20, 1 << 36, ROUND_S * 1000, "v2", "1") if at == 0 else None
            self.batches.append(batch)
            ledger.sent()
            ledger.save(now)

    def step(self, run: Played, part: Part) -> tuple[int, str, int]:
        return run.job, part.name, self.now(part.first).mono_ms * TICK // 1000

    @staticmethod
    def record(event: str, run: Played, now: Now) -> Record:
        restart = run.restart or None  # Slurm does not set it for the first run
        return Record(
            "", event, run.job, now.wall_ms, now.mono_ms, now.boot, 1000, "ann", "p", restart, "", "", False
        )


def test_each_run_gets_all_of_its_own_use_and_nothing_else(pytestconfig: pytest.Config) -> None:
    bounded = settings(
        max_examples=50 if pytestconfig.getoption("--long") else 8,
        deadline=None,
        derandomize=True,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    stories = given(
        history=histories(),
        ends=some.frozensets(some.integers(1, LAST), max_size=3),
        cuts=some.frozensets(some.integers(1, LAST + 1), max_size=8),
        again=some.lists(some.integers(0, 100), max_size=3),
        random=some.randoms(use_true_random=False),
        slurm=some.integers(0, 12),
    )
    bounded(stories(check))()


def check(
    history: tuple[list[Played], int], ends: frozenset[int], cuts: frozenset[int], again: list[int],
    random: object, slurm: int,
) -> None:  # fmt: skip
    runs, reboot = history
    with tempfile.TemporaryDirectory() as name:
        node = Node(Path(name), reboot, ends)
        node.play(runs)
        posts = pieces(node.batches, sorted({*cuts, *range(60, LAST + 2, 60)}))
        posts += [posts[which % len(posts)] for which in again]
        random.shuffle(posts)  # type: ignore[attr-defined]
        server = Clocked(Path(name) / "server")
        now = node.now(LAST + 1)
        for place, post in enumerate(posts):
            if place == slurm:
                server.monitor.jobs.update(run.told_by_slurm() for run in runs)
            later = place * 7_000
            sent = Sent(now.wall_ms + later, now.mono_ms + later, now.boot)
            server.deliver((sent.wall_ms / 1000, sent, post))
        if slurm >= len(posts):
            server.monitor.jobs.update(run.told_by_slurm() for run in runs)
        for run in runs:
            cpu = server.run(run.job, run.restart)["step.cpu"]
            (series,) = cpu or (Series(0, 0, 0, np.empty(0), np.empty(0)),)
            found = {
                round((at - START) / ROUND_S): value
                for at, value in zip(series.times, series.values, strict=True)
            }
            assert found == run.expected(), (run, found)
        server.monitor.close()


def pieces(batches: list[Batch], cuts: list[int]) -> list[list[Batch]]:
    """Groups of consecutive batches, as an agent sends them."""
    return [
        batches[first:last]
        for first, last in zip([0, *cuts], [*cuts, None], strict=True)
        if batches[first:last]
    ]
