"""Decides which cases are measured over which paths and plans. The ranks find this out together."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from peerway import _core
from peerway.errors import InvalidArgument
from peerway.paths import PathInfo, covers
from peerway_common.suggestion import did_you_mean
from peerway_measure.bench import limits, resume
from peerway_measure.bench.kinds import FLAG, LIMITS, PLAN_WAYS, ROUTE, STARTS
from peerway_measure.bench.links import CaseFailed, Links
from peerway_measure.bench.plan import Case, Plan, Setting
from peerway_measure.bench.reporter import Reporter
from peerway_measure.memories import is_gpu


@dataclass(frozen=True, slots=True)
class Job:
    """One case over one way: its label in records, and the paths that it may take."""

    case: Case
    via: str
    paths: str
    chunk: int = 0  # the chunk size of `staged` in bytes; 0: its default
    plans: str = ""  # one of the kind's variants over plans; "" if no plan is used

    @property
    def allowed(self) -> str:
        """The paths among which the route may choose; "" if it may choose any, and for a path that is
        measured alone.
        """
        return os.environ.get("PEERWAY_PATHS", "") if self.paths == ROUTE else ""

    def point(self, ranks: int) -> str:
        """The name of this job's measurement for resume.py."""
        return resume.of_case(self.case, self.via, ranks, self.via in LIMITS, self.allowed)


def jobs_of(plan: Plan, links: Links, reporter: Reporter, ranks: int) -> list[Job]:
    """The jobs whose records are not complete yet. Collective: the same on all ranks."""
    jobs = list(_all_jobs(plan, links, reporter))
    a_run = Counter(job.point(ranks) for job in jobs)
    recorded = Counter(
        {point: max(0, count - plan.run * a_run[point]) for point, count in plan.recorded.items()}
    )
    return [job for job in jobs if resume.lacks(recorded, job.point(ranks))]


def _all_jobs(plan: Plan, links: Links, reporter: Reporter) -> Iterator[Job]:
    """Every case in every available variant, in the order of the plan. Collective: the same on all ranks."""
    known_paths: dict[tuple[Any, ...], list[PathInfo]] = {}
    limits_done: set[tuple[str, int, str]] = set()
    for case in plan.cases:
        if case.kind.by_paths:
            yield from _path_jobs(plan, case, links, reporter, known_paths, limits_done)
        yield from _plan_jobs(plan, case, reporter)


def _path_jobs(
    plan: Plan,
    case: Case,
    links: Links,
    reporter: Reporter,
    known_paths: dict[tuple[Any, ...], list[PathInfo]],
    limits_done: set[tuple[str, int, str]],
) -> Iterator[Job]:
    op = case.kind.routed_op
    key = (case.source, case.target, case.pairs, op)
    if key not in known_paths:
        known_paths[key] = _paths(case, op, links, reporter)
    mark = (case.test, case.shape.bytes, case.shape.label)
    limit = limits.limit_of(case)
    if limit == FLAG and plan.launch:
        limit = None  # hosts share no page
    if plan.limits and limit and mark not in limits_done:
        limits_done.add(mark)
        yield Job(case, limit, limit)
    for via, paths in _settings(plan, case, known_paths[key], reporter):
        for chunk in plan.staging_chunks or [0]:
            yield Job(case, via, paths, chunk, plans=_sends(case))


def _sends(case: Case) -> str:
    """The variant over plans that measures sends. On GPUs it is in stream order, as programs start them."""
    if not case.kind.by_methods:
        return ""
    return "sendrecv/stream" if is_gpu(case.source) else "sendrecv"


def _plan_jobs(plan: Plan, case: Case, reporter: Reporter) -> Iterator[Job]:
    """The case over plans: in all variants, or in those that the settings name. If the settings name paths,
    the first variant over these paths.
    """
    variants = case.kind.plan_variants(case.source) if case.source == case.target else ()
    via = {variant: f"{variant}/{plan.policy}" if case.kind.policies else variant for variant in variants}
    names = [setting.paths for setting in plan.settings]
    jobs = [
        Job(case, via[variant], ROUTE, plans=variant)
        for variant in variants
        if not names or any(covers(name, via[variant]) for name in names)
    ]
    if STARTS[0] in variants and not case.kind.by_paths:
        over = [setting for setting in plan.settings if setting.paths not in PLAN_WAYS]
        jobs += [Job(case, setting.label, setting.paths, plans=STARTS[0]) for setting in over]
    if not jobs and not case.kind.by_paths:
        reason = (
            f"it goes over {', '.join(variants)}" if variants else "there is no such plan for this memory"
        )
        why = f"{case.source} to {case.target}: {reason}"
        reporter.say("refused", via="", test=case.test, bytes=0, why=why)
    yield from jobs


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
    """The usable settings of the plan. If the plan has none, all available paths and the route."""
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
            if _is_of_wrong_kind(setting, case):
                continue
            if setting.label == setting.paths:
                _check_known(setting.paths, infos)
            elif setting.label == setting.paths.replace(",", "+"):
                for name in _path_names(setting.paths):
                    _check_known(name, infos)
            usable = _available_of(setting.paths, available)
            if setting.paths == ROUTE:
                yield setting.label, ROUTE
            elif not plan.route and setting.label == setting.paths:
                yield from ((name, name) for name in available if covers(setting.paths, name))
            elif usable and len(_available_of(setting.needs, available)) == len(_path_names(setting.needs)):
                yield setting.label, ",".join(usable)
            elif setting.label != setting.paths:
                why = f"{case.source} to {case.target}: {_why_none(setting, infos)}"
                reporter.say("refused", via=setting.label, test="", bytes=0, why=why)


def _is_of_wrong_kind(setting: Setting, case: Case) -> bool:
    """Whether the setting is of the wrong kind for the case: it names paths although methods of plans are
    measured, or methods although paths are.
    """
    methods = setting.paths.startswith("plan")
    return setting.paths != ROUTE and methods != case.kind.by_methods


def _path_names(paths: str) -> list[str]:
    return [name for name in paths.split(",") if name]


def _available_of(paths: str, available: list[str]) -> list[str]:
    return [want for want in _path_names(paths) if any(covers(want, name) for name in available)]


def _check_known(want: str, infos: list[PathInfo]) -> None:
    """Refuse a path that does not exist. For a NIC that this context does not use, the error says what to
    set.
    """
    if want != ROUTE and want not in PLAN_WAYS and not any(covers(want, info.name) for info in infos):
        if want.startswith("nic:"):
            _core.check_paths(want, [info.name for info in infos])
        names = [*(info.name for info in infos), ROUTE]
        near = did_you_mean(want, [*names, *(name.partition("/")[0] for name in names)]) or "."
        raise InvalidArgument(
            f"peerway: there is no path '{want}'{near} There are {', '.join(names[:-1])}, and route for the "
            "choice; peer is all that begin with peer/."
        )


def _why_none(setting: Setting, infos: list[PathInfo]) -> str:
    """For each path that a setting needs, why it is unavailable."""
    reasons = []
    for want in _path_names(setting.needs or setting.paths):
        matches = [info for info in infos if covers(want, info.name)]
        reasons += [f"{info.name}: {info.why_not}" for info in matches if not info.available]
        if not matches:
            reasons.append(f"{want} is not in this build")
    return "; ".join(reasons)
