"""What every peer has in common: whether it is here, what it can do, and how its program is run over a plan."""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from peerway.bench.peers import launch
from peerway.bench.peers.plan import Case, Failed, Plan, Result

_log = logging.getLogger(__name__)

Progress = Callable[[str, int, int], None]
"""Called with what is measured now, how many cases are done, and how many there are."""

Ability = frozenset[tuple[str, str]]
"""Pairs of a test and a kind of shape, "contiguous" or "block"."""

MOST_DEATHS = 3  # of one variant in a row, before the rest of its cases is given up


@dataclass(frozen=True, slots=True)
class Found:
    """The peer is here and its program is built. `environment` is set on top of this process's."""

    version: str
    program: Path
    environment: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Missing:
    """The peer cannot be measured here: why, and what to do about it."""

    reason: str
    remedy: str


def pairs(tests: str, kinds: str) -> Ability:
    """All tests (names with spaces between) with all kinds of shapes."""
    return frozenset((test, kind) for test in tests.split() for kind in kinds.split())


class Peer(ABC):
    """One library. `variants` are its ways of doing a test, each a `via` of the records."""

    name: ClassVar[str]
    variants: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._found: dict[str, Found | Missing] = {}

    def find(self, device: str) -> Found | Missing:
        """Look for the library and build the program for "host" or "cuda"; remembered after the first call."""
        if device not in self._found:
            self._found[device] = self._find(device)
        return self._found[device]

    @abstractmethod
    def _find(self, device: str) -> Found | Missing: ...

    @abstractmethod
    def ability(self, via: str, device: str) -> Ability:
        """What one variant can do."""

    @abstractmethod
    def job(self, found: Found, arguments: list[str], ranks: int) -> launch.Job:
        """The processes to start, with the arguments that all ranks get."""

    def tests(self, device: str) -> Ability:
        """What any of the variants can do."""
        return frozenset().union(*(self.ability(via, device) for via in self.variants))

    def run(self, plan: Plan, progress: Progress) -> Iterator[Result | Failed]:
        """Measure each case over every variant that can do it.

        Raises RuntimeError where find() says Missing. A case that crashes or falls silent comes back as Failed, and the
        rest goes on.
        """
        found = self.find(plan.device)
        if isinstance(found, Missing):
            raise RuntimeError(f"{self.name}: {found.reason}; {found.remedy}")
        groups = self._groups(plan)
        total, done = sum(len(cases) for _, _, cases in groups), 0
        for via, ranks, cases in groups:
            for outcome in self._run_group(found, plan, via, ranks, cases):
                done += 1
                progress(via, done, total)
                yield outcome

    def _groups(self, plan: Plan) -> list[tuple[str, int, list[Case]]]:
        """One start of the program each: a variant, a number of ranks, and its cases."""
        groups = []
        for via in self.variants:
            if plan.variants is not None and via not in plan.variants:
                continue
            able = self.ability(via, plan.device)
            cases = [case for case in plan.cases if (case.test, case.kind) in able]
            many = [case for case in cases if case.test == "put_mbw_mr" and plan.ranks > 2]
            groups += [(via, 2, [case for case in cases if case not in many]), (via, plan.ranks, many)]
        return [group for group in groups if group[2]]

    def _run_group(
        self, found: Found, plan: Plan, via: str, ranks: int, cases: list[Case]
    ) -> Iterator[Result | Failed]:
        deaths = 0
        while cases:
            job = self.job(found, self._arguments(found, plan, via, ranks, cases), ranks)
            watched = launch.Outcomes(job, plan.timeout_s)
            answered = 0
            for outcome in watched:
                yield Failed(via, cases[answered], outcome) if isinstance(outcome, str) else outcome
                answered += 1
            cases = cases[answered:]
            deaths = 1 if answered else deaths + 1
            why = watched.failure or "ended without a result"
            if cases and watched.began and deaths < MOST_DEATHS:
                yield Failed(via, cases.pop(0), why)
                continue
            if not cases and watched.failure:
                _log.warning("%s: all cases were measured, but then the program %s", via, why)
            yield from (Failed(via, case, why) for case in cases)
            return

    def _arguments(self, found: Found, plan: Plan, via: str, ranks: int, cases: list[Case]) -> list[str]:
        devices = "host" if plan.device == "host" else ",".join(map(str, plan.ordinals(ranks)))
        arguments = ["--devices", devices, "--budget-us", str(plan.budget_s * 1e6), *found.options]
        for case in cases:
            arguments += ["--case", case.argument(via)]
        return arguments
