"""Keeps the open intervals of this node's jobs and the slots of their steps, across restarts of the agent.

Each round passes it the records of prolog and epilog and the running steps; `changed` returns the intervals
that the server does not have yet. Call `save` after the batch is in the spool: if the agent ends before that,
its next run finds the same changes again, with the same ids.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from peerway_common import atomic_file
from peerway_jobs.agent.records import Record
from peerway_jobs.agent.slurm import Answer
from peerway_jobs.agent.slurm_gpus import gpus_by_number, gpus_of_record
from peerway_jobs.agent.steps import Step
from peerway_jobs.agent.system import TICK
from peerway_jobs.batch import Gpu, Interval
from peerway_jobs.batch_check import MOST_DEVICES

REST_MS = 600_000  # a slot is not reused for this long after its step ended
_MOST_STATE = 16 << 20


@dataclass(frozen=True, slots=True)
class Now:
    """The time of a round, by three clocks: wall clock, time since boot, and the boot's id."""

    wall_ms: int
    mono_ms: int
    boot: str

    def wall_of(self, mono_ms: int) -> int:
        """The wall-clock time (ms) of a moment given in ms since boot, by the wall clock as it is set now."""
        return max(0, self.wall_ms - (self.mono_ms - mono_ms))


class Ledger:
    """The intervals of the node, by id."""

    def __init__(self, file: Path, gpus: Callable[[], list[Gpu]]) -> None:
        self._file = file
        self._gpus = gpus
        self.open: dict[str, Interval] = {}
        self._steps: dict[tuple[int, str, int], str] = {}
        self._resting: dict[int, int] = {}
        self._seen_ms: dict[int, int] = {}  # job -> when one of its steps was last seen
        self._gpus_unknown: set[int] = set()  # jobs that have GPUs, but which ones is not known
        self._ended: dict[int, tuple[int | None, int]] = {}  # job -> (uid, end); to find left-overs
        self._cut_off: dict[int, Interval] = {}  # job -> its interval that `load` ended because of a reboot
        self._unwatched_from_ms: int | None = None  # the last `save` of an earlier agent, until `follow`
        self._changed: dict[str, Interval] = {}

    def load(self, now: Now) -> None:
        """Load what `save` wrote.

        An interval open from an earlier boot ends at the time of that `save`. If an epilog ran after it,
        while no agent ran, `record` will correct the end.
        """
        try:
            state = json.loads(atomic_file.read(self._file, _MOST_STATE))
            intervals = [_interval(each) for each in state["intervals"]]
            self.open = {each.id: each for each in intervals}
            if state["boot"] == now.boot:
                self._unwatched_from_ms = min(state["wall_ms"], now.wall_ms)
                self._steps = {(job, step, start): id_ for job, step, start, id_ in state["steps"]}
                self._resting = {int(slot): until for slot, until in state["resting"].items()}
                self._seen_ms = {int(job): at for job, at in state["seen"].items()}
                self._ended = {int(job): (uid, at) for job, (uid, at) in state["ended"].items()}
                self._gpus_unknown = {int(job) for job in state.get("unplaced", ())}  # older files have none
            else:
                for each in intervals:
                    self._close(each, max(each.start_ms, min(state["wall_ms"], now.wall_ms)))
                self._cut_off = {each.job: each for each in intervals if each.step is None}
        except (OSError, ValueError, KeyError, TypeError):  # no file yet, or a loss of power cut it off
            self.open = {}

    def save(self, now: Now) -> None:
        """Save the state for the agent's next run. Raises OSError."""
        state = {
            "boot": now.boot, "wall_ms": now.wall_ms,
            "intervals": [asdict(each) for each in self.open.values()],
            "steps": [[*key, id_] for key, id_ in self._steps.items()], "resting": self._resting,
            "seen": self._seen_ms, "ended": self._ended, "unplaced": sorted(self._gpus_unknown),
        }  # fmt: skip
        atomic_file.replace(self._file, json.dumps(state))

    def changed(self) -> list[Interval]:
        """The intervals that began, changed or ended since the last `sent`, oldest first."""
        return sorted(self._changed.values(), key=lambda each: (each.start_ms, each.id))

    def sent(self) -> None:
        """Call it once the changed intervals are in the spool."""
        self._changed.clear()

    def shift(self, by_ms: int) -> None:
        """Move all open times by `by_ms`, because somebody set the wall clock."""
        for each in self.open.values():
            each.start_ms = max(0, each.start_ms + by_ms)
            self._changed[each.id] = each
        self._seen_ms = {job: at + by_ms for job, at in self._seen_ms.items()}
        self._ended = {job: (uid, at + by_ms) for job, (uid, at) in self._ended.items()}

    # records of prolog and epilog

    def record(self, record: Record, now: Now) -> None:
        """Open or close a job's interval."""
        at = now.wall_of(record.mono_ms) if record.boot == now.boot else record.wall_ms
        before = self.of_job(record.job)
        cut_off = self._cut_off.pop(record.job, None)
        if record.event == "epilog":
            if before is not None:
                self._close(before, max(before.start_ms, at))
            elif cut_off is not None and cut_off.end_ms is not None and record.boot != now.boot:
                self._close(cut_off, max(cut_off.end_ms, min(at, now.wall_ms)))
            return
        id_ = f"{record.job}.{record.wall_ms}"
        cores = None
        if before is not None:
            if before.id == id_ or before.source == "processes":  # a second record, or seen running before
                id_, cores = before.id, before.cores
            else:  # requeued, and the epilog of its last run was missed
                self._close(before, max(before.start_ms, min(at, self._seen_ms.get(record.job, at))))
        gpus, all_known = gpus_of_record(record, self._gpus())
        self._set_gpus_known(record.job, all_known)
        self._put(Interval(
            id=id_, job=record.job, start_ms=at, restart=record.restart, uid=record.uid, user=record.user,
            partition=record.partition, cores=cores, gpus=gpus, source="prolog",
        ))  # fmt: skip

    # running steps

    def follow(self, steps: list[Step], now: Now) -> list[Step]:
        """Open an interval for each new step, close the intervals of steps that ended; return the steps that
        count.

        Processes are read before records. So a new step does not count if its job has ended since.
        """
        steps = [step for step in steps if step.key in self._steps or not self._is_over(step, now)]
        running = {step.key for step in steps}
        for key, id_ in list(self._steps.items()):
            if key not in running:
                del self._steps[key]
                self._end_step(self.open.get(id_), now)
        self._unwatched_from_ms = None
        for step in steps:
            if step.key not in self._steps:
                self._begin_step(step, now)
            self._seen_ms[step.job] = now.wall_ms
            self._learn_cores(step)
        day = now.wall_ms - 86_400_000
        self._ended = {job: (uid, at) for job, (uid, at) in self._ended.items() if at > day}
        return steps

    def slot(self, step: Step) -> int:
        """The slot of a running step."""
        slot = self.open[self._steps[step.key]].slot
        assert slot is not None
        return slot

    def of_job(self, job: int) -> Interval | None:
        """The open interval of a job on this node, or None."""
        return next((each for each in self.open.values() if each.job == job and each.step is None), None)

    def jobs_of_gpu(self, uuid: str) -> list[int]:
        """The jobs that have this GPU: several if they share it."""
        return [each.job for each in self.open.values() if each.step is None and uuid in each.gpus]

    def knows_gpus_of(self, job: int) -> bool:
        """Whether all GPUs of a job are known. For a job without a prolog record they are not, until Slurm
        answers.
        """
        interval = self.of_job(job)
        return interval is None or (interval.source != "processes" and job not in self._gpus_unknown)

    def ended_uid(self, job: int) -> int | None:
        """The user id of a job that ended here in the last day and is not back; None for any other job."""
        return None if self.of_job(job) else self._ended.get(job, (None, 0))[0]

    # questions to Slurm

    def doubtful(self, now: Now, after_ms: int) -> list[int]:
        """Jobs to ask Slurm about: those without a prolog record, and those without a step for `after_ms`."""
        jobs = []
        for each in self.open.values():
            if each.step is not None:
                continue
            quiet = now.wall_ms - max(each.start_ms, self._seen_ms.get(each.job, 0))
            if each.source == "processes" or quiet > after_ms:
                jobs.append(each.job)
        return jobs

    def learn(self, answer: Answer) -> None:
        """Correct a job's interval by Slurm's answer."""
        interval = self.of_job(answer.job)
        if interval is None:
            return
        if not answer.running:
            self._close(interval, max(interval.start_ms, self._seen_ms.get(answer.job, interval.start_ms)))
        elif interval.source == "processes":
            interval.source = "slurm"
            interval.uid, interval.partition, interval.restart = answer.uid, answer.partition, answer.restart
            interval.cpus, interval.memory_bytes = answer.cpus, answer.memory_bytes
            interval.gpus = gpus_by_number(answer.gpus, self._gpus())
            self._set_gpus_known(answer.job, not answer.shares and len(interval.gpus) == len(answer.gpus))
            self._put(interval)

    # internals

    def _is_over(self, step: Step, now: Now) -> bool:
        ended = self._ended.get(step.job)
        return ended is not None and self.of_job(step.job) is None and ended[1] >= _start(step, now)

    def _begin_step(self, step: Step, now: Now) -> None:
        start = _start(step, now)
        mark = f"{step.start}-{now.boot[:8]}"
        if self.of_job(step.job) is None:
            self._put(Interval(f"{step.job}.p{mark}", step.job, start, source="processes"))
        slot = self._free_slot(now)
        id_ = f"{step.job}.{step.step}.{mark}"
        self._steps[step.key] = id_
        self._put(Interval(id_, step.job, start, step=step.step, slot=slot, source="processes"))

    def _free_slot(self, now: Now) -> int:
        """The lowest slot that is neither taken nor resting; if there is none, the slot that has rested
        longest.
        """
        taken = {each.slot for each in self.open.values()}
        resting = {slot for slot, until in self._resting.items() if until > now.mono_ms}
        for slot in range(MOST_DEVICES):
            if slot not in taken and slot not in resting:
                break
        else:
            slot = min(resting, key=lambda each: self._resting[each])
        self._resting.pop(slot, None)
        return slot

    def _end_step(self, interval: Interval | None, now: Now) -> None:
        if interval is not None and interval.slot is not None:
            self._resting[interval.slot] = now.mono_ms + REST_MS
            self._close(interval, max(interval.start_ms, self._end_of_step(interval.job, now)))

    def _end_of_step(self, job: int, now: Now) -> int:
        """When (ms) a step ended that is first missed now: no later than its job. A step that ended while no
        agent ran, in a job that goes on, ends where it was seen last.
        """
        if self.of_job(job) is None and job in self._ended:
            return min(now.wall_ms, self._ended[job][1])
        return now.wall_ms if self._unwatched_from_ms is None else self._unwatched_from_ms

    def _learn_cores(self, step: Step) -> None:
        """Note the cores of a step, known from its first process on; a job's cores are the union of its
        steps'.
        """
        interval = self.open[self._steps[step.key]]
        if step.cores is None or interval.cores == step.cores:
            return
        interval.cores = step.cores
        self._put(interval)
        job = self.of_job(step.job)
        if job is not None:
            job.cores = sorted({*(job.cores or ()), *step.cores})
            self._put(job)

    def _put(self, interval: Interval) -> None:
        self.open[interval.id] = self._changed[interval.id] = interval

    def _close(self, interval: Interval, end_ms: int) -> None:
        interval.end_ms = end_ms
        self._changed[interval.id] = interval
        self.open.pop(interval.id, None)
        if interval.step is None:
            self._ended[interval.job] = (interval.uid, end_ms)
            self._seen_ms.pop(interval.job, None)
            self._gpus_unknown.discard(interval.job)

    def _set_gpus_known(self, job: int, known: bool) -> None:
        """Remember whether all GPUs of the job are known."""
        (self._gpus_unknown.discard if known else self._gpus_unknown.add)(job)


def _start(step: Step, now: Now) -> int:
    """The wall-clock time (ms) at which the step's slurmstepd started."""
    return min(now.wall_ms, now.wall_of(step.start * 1000 // TICK))


def _interval(value: dict[str, Any]) -> Interval:
    return Interval(**{each.name: value[each.name] for each in fields(Interval)})
