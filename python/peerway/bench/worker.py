"""What each rank of a benchmark runs: `python -m peerway.bench.worker FOLDER`.

The folder has the plan (plan.json), the socket to which rank 0 reports, one line of JSON a message, and a
file for the flag ping-pong.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from peerway import _core
from peerway.bench import limits, machine, session
from peerway.bench.kinds import FLAG, MEMCPY, PLAN_WAYS, ROUTE, STARTS
from peerway.bench.links import CaseFailed, Links
from peerway.bench.plan import Case, Plan, Setting
from peerway.bench.plan_probes import plan_probe
from peerway.bench.sampling import LinkProbe, Outcome, Sampler
from peerway.context import Context
from peerway.errors import Error, InvalidArgument, PeerLost
from peerway.paths import PathInfo, covers
from peerway.records import FIXED, Record


@dataclass(frozen=True, slots=True)
class Job:
    """One case over one way: a label for the records, and the paths it may take."""

    case: Case
    via: str
    paths: str
    chunk: int = 0  # of `staged`, in bytes; 0: its own
    plans: str = ""  # one of the kind's ways over plans


class Reporter:
    """The line to the session, on rank 0; on other ranks it says nothing."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._socket: socket.socket | None = None
        if rank == 0:
            self._socket = socket.socket(socket.AF_UNIX)
            with session.address(folder) as name:
                self._socket.connect(name)

    def say(self, kind: str, **values: Any) -> None:
        """Sends one message."""
        if self._socket is not None:
            self._socket.sendall((json.dumps({"kind": kind, **values}) + "\n").encode())


def main(folder: Path) -> None:
    """Runs the plan of the folder."""
    plan = Plan.from_json((folder / "plan.json").read_text())
    try:
        context = Context()
    except PeerLost:
        raise
    except Error as error:  # a setting or a route table that cannot be used: no rank can report yet
        session.refuse(folder, str(error))
        sys.exit(1)
    with context:
        reporter = Reporter(folder, context.rank)
        try:
            _carry_out(plan, context, reporter, folder)
        except (InvalidArgument, CaseFailed) as error:
            reporter.say("error", message=str(error))
        reporter.say("done")


def _carry_out(plan: Plan, context: Context, reporter: Reporter, folder: Path) -> None:
    links = Links(context)
    if plan.explain:
        _explain(plan, links, reporter)
    jobs = [] if plan.explain else list(_jobs(plan, links, reporter))
    reporter.say("plan", jobs=len(jobs))
    sampler = Sampler(context, plan)
    for job in jobs:
        _run(job, plan, context, links, sampler, reporter, folder)
    links.drop()


def _run(
    job: Job, plan: Plan, context: Context, links: Links, sampler: Sampler, reporter: Reporter, folder: Path
) -> None:
    reporter.say(
        "begin", test=job.case.test, via=job.via, shape=job.case.shape.label, bytes=job.case.shape.bytes
    )
    outcomes: list[Outcome] = []
    try:
        if job.via == FLAG:
            outcomes = limits.run_flag(context, plan, folder / "flag")
        elif job.via == MEMCPY:
            outcomes = limits.run_memcpy(job.case, plan) if context.rank == 0 else []
            context.team.barrier(plan.timeout_s + 60)
        else:
            context.use(job.paths)
            if job.chunk:
                _core.set_staging_chunk_bytes(context._core, job.chunk)
            outcomes = _sample(job, plan, context, links, sampler)
    except CaseFailed as failure:
        links.drop()  # signals may be out of step
        reporter.say("refused", via=job.via, test=job.case.test, bytes=job.case.shape.bytes, why=str(failure))
    for outcome in outcomes if context.rank == 0 else []:
        reporter.say("record", record=asdict(_record(job, plan, context, outcome)))


def _sample(job: Job, plan: Plan, context: Context, links: Links, sampler: Sampler) -> list[Outcome]:
    if not job.plans:
        return sampler.run(job.case, LinkProbe(context, links, job.case, plan.timeout_s))
    probe = plan_probe(context, links, job.case, job.plans, plan.timeout_s)
    try:
        return sampler.run(job.case, probe)
    finally:
        probe.close()
        links.drop()  # plans raised the signals that others count


def _record(job: Job, plan: Plan, context: Context, outcome: Outcome) -> Record:
    case, kind = job.case, job.case.kind
    window, alone = outcome.batch or kind.window(case.shape.bytes), job.via == MEMCPY
    low, median, high = np.percentile(outcome.samples_ns, (25, 50, 75))
    extra: dict[str, Any] = {
        "spread": float(f"{(high - low) / (2 * max(median, 1)):.3g}")
    }  # half the quartile distance
    if kind.windowed:
        extra["window"] = window
    if outcome.batch:
        extra["batch"] = outcome.batch
    if kind.tells_latency and outcome.cpu_percents:
        if context.wait_policy != "performance":
            extra["wait"] = context.wait_policy
        extra["cpu_percents"] = [round(percent, 1) for percent in outcome.cpu_percents]
    if case.samples:
        extra[FIXED] = True
    if job.chunk:
        extra["chunk"] = job.chunk
    if kind.all_pairs:
        extra["pairs"] = len(case.pairs)
    if outcome.target_at is not None:
        extra["target_at"] = outcome.target_at
    if outcome.chosen:
        extra["chosen"] = outcome.chosen
    return Record.from_samples(
        outcome.samples_ns,
        ways=1 if alone else kind.ways,
        messages=window,
        streams=1 if alone else kind.streams_a_pair * max(1, len(case.pairs)),
        test=case.test,
        via=job.via,
        op=kind.op,
        shape=case.shape.label,
        bytes=case.shape.bytes,
        ranks=context.size,
        source=outcome.source,
        target=outcome.target,
        validated=outcome.validated,
        cpu_percent=round(outcome.cpu_percent, 1),
        **_hardware(plan.known, outcome),
        extra=extra,
    )


def _hardware(known: dict[str, str], outcome: Outcome) -> dict[str, str]:
    """The fields of the plan, with the GPU in place of the processor where one is involved."""
    gpus = [name for name in (outcome.source, outcome.target) if name.startswith("cuda")]
    if not gpus:
        return known
    return known | {"device": machine.device_name(gpus[0]), "driver": machine.cuda_driver()}


def _jobs(plan: Plan, links: Links, reporter: Reporter) -> Iterator[Job]:
    """Every case over every way it can go, in the order of the plan. Collective: the same on all ranks."""
    found: dict[tuple[Any, ...], list[PathInfo]] = {}
    limits_done: set[tuple[str, int, str]] = set()
    for case in plan.cases:
        if case.kind.by_paths:
            yield from _path_jobs(plan, case, links, reporter, found, limits_done)
        yield from _plan_jobs(plan, case, reporter)


def _path_jobs(
    plan: Plan,
    case: Case,
    links: Links,
    reporter: Reporter,
    found: dict[tuple[Any, ...], list[PathInfo]],
    limits_done: set[tuple[str, int, str]],
) -> Iterator[Job]:
    op = "get" if case.kind.op == "get" else "put"
    key = (case.source, case.target, case.pairs, op)
    if key not in found:
        found[key] = _paths(case, op, links, reporter)
    mark = (case.test, case.shape.bytes, case.shape.label)
    limit = limits.limit_of(case)
    if plan.limits and limit and mark not in limits_done:
        limits_done.add(mark)
        yield Job(case, limit, limit)
    for via, paths in _settings(plan, case, found[key], reporter):
        for chunk in plan.staging_chunks or [0]:
            yield Job(case, via, paths, chunk)


def _plan_jobs(plan: Plan, case: Case, reporter: Reporter) -> Iterator[Job]:
    """The case over plans, in all ways or in those that the settings name; where they name paths, the first
    way over these.
    """
    ways = case.kind.plan_ways(case.source) if case.source == case.target else ()
    via = {way: f"{way}/{plan.policy}" if case.kind.policies else way for way in ways}
    asked = [setting.paths for setting in plan.settings]
    jobs = [
        Job(case, via[way], ROUTE, plans=way)
        for way in ways
        if not asked or any(covers(name, via[way]) for name in asked)
    ]
    if STARTS[0] in ways and not case.kind.by_paths:
        over = [setting for setting in plan.settings if setting.paths not in PLAN_WAYS]
        jobs += [Job(case, setting.label, setting.paths, plans=STARTS[0]) for setting in over]
    if not jobs and not case.kind.by_paths:
        there = f"it goes over {', '.join(ways)}" if ways else "there is no such plan for this memory"
        why = f"{case.source} to {case.target}: {there}"
        reporter.say("refused", via="", test=case.test, bytes=0, why=why)
    yield from jobs


def _explain(plan: Plan, links: Links, reporter: Reporter) -> None:
    for case in plan.cases:
        links.reserve(case.source, case.target, 1)
        link = links.link(case.source, case.target, case.pairs)
        for shape in plan.explain:
            ends = (link.got_source, link.got_target) if case.kind.op == "get" else (link.source, link.target)
            reporter.say(
                "explained", source=ends[0], target=ends[1], decision=links.decision(case, link, shape)
            )


def _paths(case: Case, op: str, links: Links, reporter: Reporter) -> list[PathInfo]:
    try:
        links.reserve(case.source, case.target, 1)
        infos = links.paths(case.source, case.target, case.pairs, op)
    except CaseFailed as failure:
        reporter.say(
            "refused", via="", test=case.test, bytes=0, why=f"{case.source} to {case.target}: {failure}"
        )
        return []
    link = links.link(case.source, case.target, case.pairs)
    ends = (link.got_source, link.got_target) if op == "get" else (link.source, link.target)
    reporter.say(
        "paths",
        source=ends[0],
        target=ends[1],
        op=op,
        paths=infos,
        pair=links.explained(case, link).get("pair", ""),
    )
    return infos


def _settings(plan: Plan, case: Case, infos: list[PathInfo], reporter: Reporter) -> Iterator[tuple[str, str]]:
    """The ways of the plan that can be used, or else all available paths and the route."""
    available = [info.name for info in infos if info.available]
    if not available:
        return
    if case.kind.via:
        yield case.kind.via, ROUTE
    elif not plan.settings:
        yield from ((name, name) for name in available)
        if plan.route:
            yield ROUTE, ROUTE
    else:
        for setting in plan.settings:
            if setting.label == setting.paths:
                _check_known(setting.paths, infos)
            elif setting.label == setting.paths.replace(",", "+"):
                for name in _names(setting.paths):
                    _check_known(name, infos)
            usable = _usable(setting.paths, available)
            if setting.paths == ROUTE:
                yield setting.label, ROUTE
            elif not plan.route and setting.label == setting.paths:
                yield from ((name, name) for name in available if covers(setting.paths, name))
            elif usable and len(_usable(setting.needs, available)) == len(_names(setting.needs)):
                yield setting.label, ",".join(usable)
            elif setting.label != setting.paths:
                why = f"{case.source} to {case.target}: {_why_none(setting, infos)}"
                reporter.say("refused", via=setting.label, test="", bytes=0, why=why)


def _names(paths: str) -> list[str]:
    return [name for name in paths.split(",") if name]


def _usable(paths: str, available: list[str]) -> list[str]:
    return [want for want in _names(paths) if any(covers(want, name) for name in available)]


def _check_known(want: str, infos: list[PathInfo]) -> None:
    """Refuse a path that is none, and a card that this context does not have with what to set."""
    if want != ROUTE and want not in PLAN_WAYS and not any(covers(want, info.name) for info in infos):
        if want.startswith("nic:"):
            _core.check_paths(want, [info.name for info in infos])
        names = ", ".join(info.name for info in infos)
        raise InvalidArgument(
            f"peerway: there is no path '{want}'; there are {names}, and route for the choice."
        )


def _why_none(setting: Setting, infos: list[PathInfo]) -> str:
    """What keeps each path off that a setting cannot do without."""
    reasons = []
    for want in _names(setting.needs or setting.paths):
        found = [info for info in infos if covers(want, info.name)]
        reasons += [f"{info.name}: {info.why_not}" for info in found if not info.available]
        if not found:
            reasons.append(f"{want} is not in this build")
    return "; ".join(reasons)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except Error as failure:  # the session shows what a rank said last
        sys.exit(str(failure))
