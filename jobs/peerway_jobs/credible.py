"""Checks a batch against what is possible, given the server's clock.

A batch with an impossible time of its own is refused. From other batches, intervals and notes that cannot be
true are left out with a reason, so that the rest is kept. `batch_check` has checked the range of each number.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from peerway_jobs.batch import Batch, Interval
from peerway_jobs.untrusted import BadBatch

EARLIEST_MS = 946_684_800_000  # the year 2000; no job of interest began before
AHEAD_MS = 60_000  # by which a time may lie in the future: clocks are corrected to within seconds
MOST_MEMORY = 1 << 50  # bytes of a job on one node; Slurm reports "unlimited" as 2^63 or similar
MOST_CPUS = 1 << 16
MOST_ALLOCATIONS = 16  # of one job in one batch; a requeued job has one for each run


def credible(batch: Batch, shift_ms: int, now_ms: int) -> tuple[Batch, list[str]]:
    """The batch without what cannot be true, and the reasons. Raises BadBatch if the batch's own time is
    impossible.

    `shift_ms` is added to the batch's times before they are compared with `now_ms`.
    """

    def is_time(time_ms: int) -> bool:
        return EARLIEST_MS <= time_ms + shift_ms <= now_ms + AHEAD_MS

    if not is_time(batch.wall_ms):
        raise BadBatch(
            f"the batch was made at {batch.wall_ms + shift_ms:,} ms since 1970, the server's clock says "
            f"{now_ms:,}: set the node's clock"
        )
    reasons: list[str] = []
    kept: list[Interval] = []
    allocations: Counter[int] = Counter()
    for each in batch.intervals:
        if wrong := [t for t in (each.start_ms, each.end_ms) if t is not None and not is_time(t)]:
            reasons.append(
                f"job {each.job}: an interval was left out: it begins or ends at {wrong[0] + shift_ms:,} ms "
                f"since 1970, before the year 2000 or more than a minute after the server's {now_ms:,}"
            )
            continue
        allocations[each.job] += each.step is None
        if each.step is None and allocations[each.job] > MOST_ALLOCATIONS:
            reasons.append(
                f"job {each.job}: an interval was left out: a batch may have {MOST_ALLOCATIONS} allocations "
                "of a job"
            )
            continue
        kept.append(_within_sizes(each, reasons))
    notes = [each for each in batch.notes if is_time(each.time_ms)]
    if len(notes) < len(batch.notes):
        reasons.append(
            f"{len(batch.notes) - len(notes)} notes were left out: their times are before the year 2000, or "
            f"more than a minute after the server's {now_ms:,} ms since 1970"
        )
    if not reasons:
        return batch, []
    return replace(batch, intervals=kept, notes=notes), reasons


def _within_sizes(of: Interval, reasons: list[str]) -> Interval:
    if of.memory_bytes is not None and of.memory_bytes > MOST_MEMORY:
        reasons.append(
            f"job {of.job}: its memory was left out: {of.memory_bytes:,} bytes on one node, possible are "
            f"{MOST_MEMORY:,}"
        )
        of = replace(of, memory_bytes=None)
    if of.cpus is not None and of.cpus > MOST_CPUS:
        reasons.append(
            f"job {of.job}: its CPUs were left out: {of.cpus:,} on one node, possible are {MOST_CPUS:,}"
        )
        of = replace(of, cpus=None)
    return of
