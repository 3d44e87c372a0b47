"""Runs a complete benchmark: Peerway's ranks, then the other libraries, into one set of results."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from peerway.paths import covers
from peerway_common.units import about_text, size_text
from peerway_measure.bench import machine, resume, session
from peerway_measure.bench.plan import Case, Plan
from peerway_measure.bench.results import Results, Step
from peerway_measure.bench.time_budget import within

if TYPE_CHECKING:
    from peerway_measure.bench.peers import Case as PeerCase
    from peerway_measure.bench.peers import Peer, PeerSelection
    from peerway_measure.bench.peers import Plan as PeerPlan
    from peerway_measure.records import Record

MEMORY_SHARE = 0.6  # the share of the available memory that buffers may take
GIB = 1 << 30
WAIT_SETTING = "PEERWAY_WAIT"


def run_paths(plan: Plan, results: Results, step: Step, environment: Mapping[str, str] | None = None) -> None:
    """Measure every case of the plan. Raises PlanRefused, or SessionFailed if ranks die."""
    starts = list(starts_of(plan))
    for number, (each, settings) in enumerate(starts):
        cases = sum(len(later.cases) for later, _ in starts[number:])
        part = replace(each, ends=within(plan.ends, len(each.cases) / max(1, cases)))
        with session.started(part, {**(environment or {}), **settings}) as messages:
            results.follow(messages, step)
    _note_unavailable(plan, results)


def starts_of(plan: Plan) -> Iterator[tuple[Plan, dict[str, str]]]:
    """What each start of the ranks measures, and with which settings. Each wait policy needs a start of its
    own.
    """
    for policies in dict.fromkeys(case.kind.policies for case in plan.cases):
        cases = [case for case in plan.cases if case.kind.policies == policies]
        for policy in policies or ("",):
            yield replace(plan, cases=cases, policy=policy), {WAIT_SETTING: policy} if policy else {}


def _note_unavailable(plan: Plan, results: Results) -> None:
    """Keep one note for each reason, with all paths and memories to which it applies.

    A path is noted only if the user named it, or if it suits such memories. A setting with paths that it
    needs was noted before.
    """
    named = [name for setting in plan.settings for name in setting.paths.split(",") if not setting.needs]
    reasons: dict[str, dict[str, None]] = {}
    for (source, target, _), infos in results.paths.items():
        for info in (info for info in infos if not info.available):
            wanted = not plan.settings or any(covers(name, info.name) for name in named)
            if info.name in named or (wanted and info.suited):
                reasons.setdefault(info.why_not, {})[f"{info.name} ({source} to {target})"] = None
    for why, names in reasons.items():
        results.note(f"not measured: {', '.join(names)}: {why}")


def run_peers(peers: Sequence[PeerSelection], plan: Plan, results: Results, step: Step) -> None:
    """Measure the same cases with each installed peer. For the others a note says what to do."""
    from peerway_measure.bench.peers import Installation

    devices = list(dict.fromkeys(case.source for case in plan.cases if case.source == case.target))
    for number, request in enumerate(peers):
        peer = request.peer
        ends = within(plan.ends, 1 / (len(peers) - number))
        able = [device for device in devices if device in peer.devices]
        wanted = able or (devices if request.by_name else [])
        for place, device in enumerate(wanted):
            until = within(ends, 1 / (len(wanted) - place))
            part = _peer_plan(replace(plan, ends=until), device, request.variants)
            if device in peer.devices and not _does_any(request, part):
                if request.by_name:
                    results.note(f"{peer.name} on {device} was not measured: it does none of these tests")
                continue
            installation = peer.find(device)
            if not isinstance(installation, Installation):
                results.note(
                    f"{peer.name} on {device} was not measured: {installation.reason}; {installation.remedy}"
                )
                continue
            with closing(_peer_records(peer, part, plan, results, step)) as peer_records:
                for record in peer_records:
                    results.add(record)


def _does_any(request: PeerSelection, part: PeerPlan) -> bool:
    able = frozenset().union(*(request.peer.ability(via, part.device) for via in request.variants))
    return any((case.test, case.kind) in able for case in part.cases)


def fits_memory(cases: Sequence[Case], ranks: int, results: Results) -> list[Case]:
    """The cases whose buffers fit into this host's memory. A note with the figures says which do not."""
    most = int(_available_memory() * MEMORY_SHARE)
    kept = []
    for case in cases:
        sides = sum(memory.startswith("host") for memory in (case.source, case.target))
        needed = sides * ranks * (1 << (case.shape.extent - 1).bit_length())
        if needed <= most:
            kept.append(case)
        else:
            results.note(
                f"{case.test} {case.shape.label} of {size_text(case.shape.bytes)} was left out: its buffers "
                f"need {about_text(needed)}, {about_text(most)} are free for them"
            )
    return kept


def _peer_plan(plan: Plan, device: str, variants: frozenset[str]) -> PeerPlan:
    from peerway_measure.bench.peers import Case as PeerCase
    from peerway_measure.bench.peers import Plan as PeerPlan

    cases = tuple(
        PeerCase(case.test, case.shape, case.kind.window(case.shape.bytes))
        for case in plan.cases
        if case.source == case.target == device
    )
    return PeerPlan(device, cases, plan.ranks, variants, plan.budget_s, plan.timeout_s, ends=plan.ends)


def _peer_records(
    peer: Peer, part: PeerPlan, plan: Plan, results: Results, step: Step
) -> Generator[Record, None, None]:
    from peerway_measure.bench.peers import Failed, NoTime
    from peerway_measure.bench.peers.record import as_record

    known: dict[str, str] = {name: text for name, text in plan.known.items() if name != "version"}
    if part.device != "host":
        known = known | {"driver": machine.gpu_driver(part.device)}
    lacking = replace(part, done=_measured(part, plan, plan.run))
    with closing(peer.run(lacking, step)) as outcomes:
        for outcome in outcomes:
            if isinstance(outcome, NoTime):
                case = outcome.case
                results.add_unmeasured(f"{case.test} {outcome.via}", case.bytes)
                continue
            if isinstance(outcome, Failed):
                case = outcome.case
                case_text = f"{case.test} {outcome.via} {case.form.label} of {case.bytes} bytes"
                results.note(f"{case_text} was not measured: {outcome.reason}")
                continue
            yield as_record(outcome, part, known)


def _measured(part: PeerPlan, plan: Plan, most: int) -> frozenset[tuple[str, PeerCase]]:
    """The pairs of case and variant of which a continued file has more than `most` records."""
    from peerway_measure.bench.peers.base import OF_ALL_RANKS

    def point(via: str, case: PeerCase) -> str:
        ranks = part.ranks if case.test in OF_ALL_RANKS else 2
        return resume.point(case.test, via, case.form.label, case.bytes, ranks, part.device, part.device)

    variants = part.variants or ()
    return frozenset((v, c) for v in variants for c in part.cases if plan.recorded.get(point(v, c), 0) > most)


def _available_memory() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 * GIB
