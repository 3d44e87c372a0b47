"""Makes all runs of a benchmark within the given time. Each run measures Peerway first and then the other
libraries.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from peerway_measure.bench import host_state, runner
from peerway_measure.bench.time_budget import START_S, within

if TYPE_CHECKING:
    from peerway_measure.bench.peers import PeerSelection
    from peerway_measure.bench.plan import Plan
    from peerway_measure.bench.results import Results, Step


class Shown(Protocol):
    """Shows progress: `title` while the block runs, with the time until `ends`."""

    def __call__(self, title: str, ends: float = 0) -> AbstractContextManager[Step]: ...


def needed_s(plan: Plan, repeat: int, peers: Sequence[PeerSelection]) -> float:
    """The least time that all runs take: starting the ranks, and the peers that support such memory."""
    memories = {case.source for case in plan.cases if case.source == case.target}
    able = sum(not memories.isdisjoint(request.peer.devices) for request in peers)
    return START_S * repeat * (len(list(runner.starts_of(plan))) + able)


def measure(
    plan: Plan,
    repeat: int,
    peers: Sequence[PeerSelection],
    results: Results,
    environment: Mapping[str, str],
    shown: Shown,
) -> None:
    """Measure everything `repeat` times. Raises PlanRefused, and SessionFailed when ranks die."""
    for number, part in enumerate(_parts(plan, repeat, results), start=1):
        suffix = f", run {number} of {repeat}" if repeat > 1 else ""
        with shown(f"measuring{suffix}", plan.ends) as step:
            ends = within(part.ends, 1 / (1 + len(peers)))
            runner.run_paths(replace(part, ends=ends), results, step, environment)
        if peers:
            with shown(f"peers{suffix}", plan.ends) as step:
                runner.run_peers(peers, part, results, step)


def _parts(plan: Plan, repeat: int, results: Results) -> Iterator[Plan]:
    """The plan of each run, with its share of the remaining time. Runs for which no time remains are left
    out.
    """
    for number, run in enumerate(host_state.runs(plan, repeat, results), start=1):
        if number > 1 and 0 < plan.ends < time.time():
            runs = f"run {number}" if number == repeat else f"runs {number} to {repeat}"
            results.note(f"no time was left for {runs} of {repeat}")
            return
        yield replace(run, ends=within(plan.ends, 1 / (repeat - number + 1)))
