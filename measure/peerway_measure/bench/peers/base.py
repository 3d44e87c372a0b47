"""The base class of all peers: checks whether a peer is installed, says what it can do, and runs
its cases.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from itertools import count
from typing import TYPE_CHECKING, ClassVar

from peerway_measure.bench.peers import launch
from peerway_measure.bench.peers.plan import Case, Failed, NoTime, Plan, Result
from peerway_measure.bench.time_budget import LEAST_S, OVERHEAD, spread, within

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""Called with what is measured now, how many cases are done, and how many there are."""

Ability = frozenset[tuple[str, str]]
"""Pairs of a test and a kind of shape: "contiguous", "block" or "halo"."""

OF_ALL_RANKS = ("put_mbw_mr", "halo")  # tests of all ranks; every other test is between two
MOST_DEATHS = 3  # after so many deaths in a row, the other cases of a variant are given up


@dataclass(frozen=True, slots=True)
class Installation:
    """An installed peer, whose program is built.

    `environment` is added to this process's environment, `options` go to the program, and `launcher` is the
    command that starts it ("" if none is needed).
    """

    version: str
    program: Path
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    launcher: str = ""


@dataclass(frozen=True, slots=True)
class Missing:
    """The peer cannot be measured here: the reason, and what to do about it."""

    reason: str
    remedy: str


def pairs(tests: str, kinds: str) -> Ability:
    """Combine all tests (names with spaces between) with all kinds of shapes."""
    return frozenset((test, kind) for test in tests.split() for kind in kinds.split())


class Peer(ABC):
    """One library. `variants` are its ways of doing a test, each a `via` in records. `devices` are the kinds
    of memory that it moves.
    """

    name: ClassVar[str]
    variants: ClassVar[tuple[str, ...]]
    devices: ClassVar[tuple[str, ...]] = ("host", "cuda")

    def __init__(self) -> None:
        self._installations: dict[str, Installation | Missing] = {}

    def find(self, device: str) -> Installation | Missing:
        """Look for the library and build the program for "host" or "cuda". The result is remembered."""
        if device not in self.devices:
            if device == "host":
                return Missing(f"{self.name} moves GPU memory only", "use --device cuda")
            return Missing(f"{self.name} is not measured on {device}", f"use --device {self.devices[-1]}")
        if device not in self._installations:
            self._installations[device] = self._find(device)
        return self._installations[device]

    @abstractmethod
    def _find(self, device: str) -> Installation | Missing: ...

    @abstractmethod
    def ability(self, via: str, device: str) -> Ability:
        """The tests and shapes that one variant can do."""

    def job(self, installation: Installation, arguments: list[str], ranks: int) -> launch.Job:
        """The processes to start, each with these arguments. By default there is one process for each rank,
        connected by sockets.
        """
        return launch.Job(
            [[str(installation.program), *arguments]] * ranks, installation.environment, linked=True
        )

    def tests(self, device: str) -> Ability:
        """The tests and shapes that any of the variants can do."""
        return frozenset().union(*(self.ability(via, device) for via in self.variants))

    def run(self, plan: Plan, progress: Progress) -> Generator[Result | Failed | NoTime, None, None]:
        """Measure each case over every variant that can do it.

        Raises RuntimeError where find() says Missing. A case that crashes or falls silent comes back as
        Failed, and the rest goes on. Of a time that was given each group has its part, by its number of
        cases; those that do not fit come back as NoTime, except for the first of each test.
        """
        installation = self.find(plan.device)
        if isinstance(installation, Missing):
            raise RuntimeError(f"{self.name}: {installation.reason}; {installation.remedy}")
        groups = self._groups(plan)
        total, done = sum(len(cases) for _, _, cases in groups), 0
        for via, ranks, cases in groups:
            part = _timed(plan, len(cases) / (total - done), len(cases))
            for outcome in self._run_group(installation, part, via, ranks, cases):
                done += 1
                progress(via, done, total)
                yield outcome

    def _groups(self, plan: Plan) -> list[tuple[str, int, list[Case]]]:
        """The cases of each start of the program, which has one variant and one number of ranks.

        On GPUs, cases that probably fail together are in a group of their own, so that a crash takes no
        others with it.
        """
        groups: dict[tuple[str, int, str], list[Case]] = {}
        for via in self.variants:
            if plan.variants is not None and via not in plan.variants:
                continue
            able = self.ability(via, plan.device)
            able_cases = [case for case in plan.cases if (case.test, case.kind) in able]
            for case in (case for case in able_cases if (via, case) not in plan.done):
                ranks = plan.ranks if case.test in OF_ALL_RANKS else 2
                like = "" if plan.device == "host" else f"{case.kind} {case.test.startswith('get')}"
                groups.setdefault((via, ranks, like), []).append(case)
        ordered = _in_turns if plan.ends else list
        return [(via, ranks, ordered(cases)) for (via, ranks, _), cases in groups.items()]

    def _run_group(
        self, installation: Installation, plan: Plan, via: str, ranks: int, cases: list[Case]
    ) -> Iterator[Result | Failed | NoTime]:
        deaths = done = 0
        first = len({case.test for case in cases})  # one case of each test comes first, and is always done
        while cases and not (done >= first and _is_over(plan)):
            job = self.job(installation, self._arguments(installation, plan, via, ranks, cases), ranks)
            watched = launch.Outcomes(job, plan.timeout_s)
            answered = 0
            for outcome in watched:
                yield Failed(via, cases[answered], outcome) if isinstance(outcome, str) else outcome
                answered += 1
                if answered < len(cases) and done + answered >= first and _is_over(plan):
                    break
            cases, done = cases[answered:], done + answered
            if cases and not watched.failure and _is_over(plan):
                break
            deaths = 1 if answered else deaths + 1
            why = watched.failure or "ended without a result"
            if cases and watched.began and deaths < MOST_DEATHS:
                yield Failed(via, cases.pop(0), why)
                continue
            if not cases and watched.failure:
                _log.warning("%s: all cases were measured, but then the program %s", via, why)
            yield from (Failed(via, case, why) for case in cases)
            return
        yield from (NoTime(via, case) for case in cases)

    def _arguments(
        self, installation: Installation, plan: Plan, via: str, ranks: int, cases: list[Case]
    ) -> list[str]:
        devices = "host" if plan.device == "host" else ",".join(map(str, plan.ordinals(ranks)))
        arguments = ["--devices", devices, "--budget-us", str(plan.budget_s * 1e6), *installation.options]
        for case in cases:
            arguments += ["--case", case.argument(via)]
        return arguments


def _timed(plan: Plan, part: float, cases: int) -> Plan:
    """The plan of one group, with the end of its part of the time. Its cases divide this part."""
    if not plan.ends:
        return plan
    ends = within(plan.ends, part)
    return replace(plan, ends=ends, budget_s=max(LEAST_S, (ends - time.time()) / cases / OVERHEAD))


def _is_over(plan: Plan) -> bool:
    return 0 < plan.ends < time.time()


def _in_turns(cases: list[Case]) -> list[Case]:
    """The first case of each test, then the second of each, and so on. So if the time is too short, some
    cases of every test are measured.
    """
    turns: defaultdict[str, count[int]] = defaultdict(count)
    return sorted(spread(cases, lambda case: case.test), key=lambda case: next(turns[case.test]))
