"""The program of each rank of a benchmark: `python -m peerway_measure.bench.worker`.

Rank 0 reads the plan from its standard input and reports on its standard output, one line of JSON for each
message.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from peerway import _core
from peerway.context import Context
from peerway.errors import Error, InvalidArgument, PeerLost
from peerway.team import Team
from peerway_measure.bench import limits, machine
from peerway_measure.bench.jobs import Job, jobs_of
from peerway_measure.bench.kinds import FLAG, MEMCPY
from peerway_measure.bench.links import EXCHANGE_S, CaseFailed, Links
from peerway_measure.bench.plan import Plan
from peerway_measure.bench.plan_probes import plan_probe
from peerway_measure.bench.reporter import Reporter
from peerway_measure.bench.sampling import LinkProbe, Outcome, Sampler
from peerway_measure.bench.time_budget import TimeBudget, spread
from peerway_measure.memories import is_gpu
from peerway_measure.records import ALLOWED, FIXED, Record


def main() -> None:
    """Run the plan."""
    reporter = Reporter()
    try:
        team = Team.from_launcher()
        plan = _plan(team)
        context = Context(team)
    except PeerLost:
        raise
    except Error as error:  # a setting or a route table that cannot be used
        reporter.say("cannot start", message=str(error))
        sys.exit(1)
    reporter.speaks = context.rank == 0
    with team, context:
        try:
            _carry_out(plan, context, reporter)
        except (InvalidArgument, CaseFailed) as error:
            reporter.say("error", message=str(error))
        reporter.say("done")


def _plan(team: Team) -> Plan:
    """The plan that rank 0 received, on all ranks. Its files are written where the settings expect them.
    Collective.
    """
    text = sys.stdin.buffer.read() if team.rank == 0 else b""
    plan = Plan.from_json(team.all_gather(text, EXCHANGE_S)[0].decode())
    for setting, content in plan.files.items():
        file = os.memfd_create(setting)
        os.write(file, content.encode())
        os.environ[setting] = f"/proc/self/fd/{file}"
    return plan


def _carry_out(plan: Plan, context: Context, reporter: Reporter) -> None:
    links = Links(context)
    if plan.explain:
        _explain(plan, links, reporter)
    jobs = [] if plan.explain else jobs_of(plan, links, reporter, context.size)
    reporter.say("plan", jobs=len(jobs))
    sampler = Sampler(context, plan)
    for job, seconds in _shares(plan, jobs, sampler):
        sampler.budget_s = seconds
        if seconds:
            _run(job, plan, context, links, sampler, reporter)
        else:
            case = job.case
            reporter.say("no time", test=case.test, via=job.via, bytes=case.shape.bytes)
    links.drop()
    # Until all ranks are here: a context that closes takes paths away from ranks that still ask for routes.
    context.team.barrier(EXCHANGE_S)


def _shares(plan: Plan, jobs: Sequence[Job], sampler: Sampler) -> Iterator[tuple[Job, float]]:
    """Each job, and how many seconds it may sample. Collective."""
    if not plan.ends:
        yield from ((job, plan.budget_s) for job in jobs)
        return
    ordered = list(spread(jobs, _group, _case))
    for job, share in TimeBudget(plan.ends).shares(ordered, _group, _case):
        yield job, sampler.first_ranks(share)


def _group(job: Job) -> object:
    """The test with its memories and ranks. Each such group gets a share of the time."""
    case = job.case
    return case.test, case.source, case.target, case.pairs


def _case(job: Job) -> object:
    """The case of a job. Several jobs may measure variants of one case."""
    return job.case


def _run(job: Job, plan: Plan, context: Context, links: Links, sampler: Sampler, reporter: Reporter) -> None:
    reporter.say(
        "begin", test=job.case.test, via=job.via, shape=job.case.shape.label, bytes=job.case.shape.bytes
    )
    try:
        outcome = _outcome(job, plan, context, links, sampler)
        if outcome is not None and context.rank == 0:
            reporter.say("record", record=asdict(_record(job, plan, context, outcome)))
    except CaseFailed as failure:
        links.drop()  # the signals of the links may be out of step
        reporter.say("refused", via=job.via, test=job.case.test, bytes=job.case.shape.bytes, why=str(failure))


def _outcome(job: Job, plan: Plan, context: Context, links: Links, sampler: Sampler) -> Outcome | None:
    """The outcome of a job; None on a rank that measured nothing. Collective."""
    if job.via == FLAG:
        return limits.run_flag(context, plan, sampler.budget_s)
    if job.via == MEMCPY:
        outcome = limits.run_memcpy(job.case, sampler.budget_s) if context.rank == 0 else None
        context.team.barrier(plan.timeout_s + 60)
        return outcome
    context.use(job.allowed or job.paths)
    if job.chunk:
        _core.set_staging_chunk_bytes(context._core, job.chunk)
    return _sample(job, plan, context, links, sampler)


def _sample(job: Job, plan: Plan, context: Context, links: Links, sampler: Sampler) -> Outcome:
    if not job.plans:
        return sampler.run(job.case, LinkProbe(context, links, job.case, plan.timeout_s))
    probe = plan_probe(context, links, job.case, job.plans, plan.timeout_s)
    try:
        return sampler.run(job.case, probe)
    finally:
        probe.close()
        links.drop()  # plans notified the signals that loops count on


def _record(job: Job, plan: Plan, context: Context, outcome: Outcome) -> Record:
    case, kind = job.case, job.case.kind
    window, alone = outcome.batch or kind.window(case.shape.bytes), job.via == MEMCPY
    low, median, high = np.percentile(outcome.samples_ns, (25, 50, 75))
    extra: dict[str, Any] = {
        "spread": float(f"{(high - low) / (2 * max(median, 1)):.3g}")
    }  # half the interquartile range
    if kind.windowed:
        extra["window"] = window
    if outcome.batch:
        extra["batch"] = outcome.batch
    if kind.tells_latency and outcome.cpu_percents:
        if context.wait_policy != "busy-poll":
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
    if job.allowed:
        extra[ALLOWED] = job.allowed
    if outcome.chosen:
        extra["chosen"] = outcome.chosen
    return Record.from_samples(
        outcome.samples_ns,
        one_way_trips=1 if alone else kind.one_way_trips,
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
    """The known fields of the plan, with the GPU in place of the CPU if one is involved."""
    gpus = [name for name in (outcome.source, outcome.target) if is_gpu(name)]
    if not gpus:
        return known
    return known | {"device": machine.device_name(gpus[0]), "driver": machine.gpu_driver(gpus[0])}


def _explain(plan: Plan, links: Links, reporter: Reporter) -> None:
    for case in plan.cases:
        links.reserve(case.source, case.target, 1)
        link = links.link(case.source, case.target, case.pairs)
        for shape in plan.explain:
            ends = (link.got_source, link.got_target) if case.kind.op == "get" else (link.source, link.target)
            decision = (
                links.collective_decision(case, link, plan.collective)
                if plan.collective
                else links.decision(case, link, shape)
            )
            reporter.say("explained", source=ends[0], target=ends[1], decision=decision)


if __name__ == "__main__":
    try:
        main()
    except Error as failure:  # the session shows the last output of a rank
        sys.exit(str(failure))
