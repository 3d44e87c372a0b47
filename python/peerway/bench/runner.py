"""A whole benchmark: Peerway's ranks, then the peers, into one set of results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from peerway.bench import machine, session
from peerway.bench.plan import Case, Plan
from peerway.bench.results import Results, Step
from peerway.records import Record, now
from peerway.units import size_text

if TYPE_CHECKING:
    from peerway.bench.peers import Peer
    from peerway.bench.peers import Plan as PeerPlan

MEMORY_SHARE = 0.6  # of what is available may be taken by buffers
GIB = 1 << 30


def run_paths(plan: Plan, results: Results, step: Step, environment: Mapping[str, str] | None = None) -> None:
    """Measures every case of the plan. Raises ValueError for a plan that cannot be, SessionFailed when ranks die."""
    if plan.cases:
        results.follow(session.run(plan, environment), step)
    for (source, target, op), infos in results.paths.items():
        names = {name for _, paths in plan.settings for name in paths.split(",")}
        for info in infos:
            if not info.available and (not names or any(info.name.startswith(name) for name in names)):
                results.note(f"{info.name} cannot {op} between {source} and {target}: {info.why_not}")


def run_peers(
    peers: Mapping[Peer, frozenset[str]], plan: Plan, results: Results, step: Step, budget_s: float
) -> None:
    """Measures the same cases with each peer that is installed; the rest is noted with what to do."""
    from peerway.bench.peers import Found

    for peer, variants in peers.items():
        for device in dict.fromkeys(case.source for case in plan.cases):
            asked = _peer_plan(plan, device, variants, budget_s)
            if asked is None:
                continue
            found = peer.find(device)
            if not isinstance(found, Found):
                results.note(f"{peer.name} on {device} was not measured: {found.reason}; {found.remedy}")
                continue
            for record in _peer_records(peer, asked, plan, results, step):
                results.add(record)


def fits_memory(cases: Sequence[Case], ranks: int, results: Results) -> list[Case]:
    """The cases whose buffers fit this host; the rest is noted with the numbers."""
    most = int(_available_memory() * MEMORY_SHARE)
    kept = []
    for case in cases:
        sides = sum(memory.startswith("host") for memory in (case.source, case.target))
        needed = sides * ranks * (1 << (case.shape.extent - 1).bit_length())
        if needed <= most:
            kept.append(case)
        else:
            results.note(
                f"{case.test} {case.shape.label} of {size_text(case.shape.bytes)} was left out: its buffers need "
                f"{needed / GIB:.1f} GiB, {most / GIB:.1f} GiB are free for them"
            )
    return kept


def _peer_plan(plan: Plan, device: str, variants: frozenset[str], budget_s: float) -> PeerPlan | None:
    from peerway.bench.peers import Case as PeerCase
    from peerway.bench.peers import Plan as PeerPlan

    if device not in ("host", "cuda"):
        return None
    cases = tuple(
        PeerCase(case.test, case.shape, case.kind.window(case.shape.bytes))
        for case in plan.cases
        if case.source == case.target == device
    )
    return PeerPlan(device, cases, plan.ranks, variants, budget_s, plan.timeout_s) if cases else None


def _peer_records(peer: Peer, asked: PeerPlan, plan: Plan, results: Results, step: Step) -> Iterator[Record]:
    from peerway.bench.peers import Failed

    def say(via: str, done: int, total: int) -> None:
        step(via, done, total)

    ops = {case.test: case.kind.op for case in plan.cases}
    for _ in range(plan.repeat):
        for outcome in peer.run(asked, say):
            if isinstance(outcome, Failed):
                what = f"{outcome.case.test} {outcome.via} {outcome.case.form.label} of {outcome.case.bytes} bytes"
                results.note(f"{what} was not measured: {outcome.reason}")
                continue
            yield _record_of(dict(outcome), asked.device, ops, plan.known)


def _record_of(found: dict[str, object], device: str, ops: dict[str, str], known: Mapping[str, str]) -> Record:
    host = device == "host"
    extra = {name: found.pop(name) for name in ("window", "batch", "library") if name in found}
    hardware = str(found.pop("device", ""))
    rest = dict(known) | {"device": known["device"] if host else hardware}
    if not host:
        rest["driver"] = machine.cuda_driver()
    return Record(
        **found,  # type: ignore[arg-type]
        **rest,
        op=ops[str(found["test"])],
        source="host" if host else "cuda:0",
        target="host" if host else "cuda:1",
        time=now(),
        extra=extra,
    )


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 * GIB
