"""Finds processes that use a GPU allocated to another job, and processes left over after their job's end.

Each process is noted once; the gauges give the number of such processes at any moment.
"""

from __future__ import annotations

from peerway_common.printable import shortened
from peerway_jobs.agent.ledger import Ledger, Now
from peerway_jobs.agent.processes import Processes
from peerway_jobs.agent.steps import Step
from peerway_jobs.batch import Note, Samples

_FIRST_USER = 1000  # smaller user ids are the system's: DCGM and similar services watch all GPUs
_MOST_PIDS = 64  # in one note


class Strangers:
    """Compares processes with intervals from round to round."""

    def __init__(self, processes: Processes, ledger: Ledger) -> None:
        self._processes = processes
        self._ledger = ledger
        self._noted: set[tuple[object, ...]] = set()

    def on_gpus(self, users: dict[str, list[int]], steps: list[Step], gpus: Samples, now: Now) -> list[Note]:
        """Add the gauge of foreign processes to the GPUs' samples; returns a note for each new one."""
        job_of = {pid: step.job for step in steps for pid in step.pids}
        notes: list[Note] = []
        column: list[float | int | None] = []
        for uuid in gpus.devices:
            if uuid not in users:
                column.append(None)
                continue
            owners = self._ledger.jobs_of_gpu(uuid)
            foreign = [pid for pid in users[uuid] if self._is_foreign(pid, job_of.get(pid), owners)]
            column.append(len(foreign))
            owner = owners[0] if len(owners) == 1 else None
            for pid in foreign:
                notes += self._once("foreign_process", pid, now, job=job_of.get(pid), owner=owner, gpu=uuid)
        if any(value is not None for value in column):
            gpus.values["gpu_foreign_processes"] = column
        return notes

    def left_over(self, steps: list[Step], now: Now) -> tuple[int, list[Note]]:
        """The number of processes here whose jobs have ended, and a note for each new one."""
        inside = {pid for step in steps for pid in step.pids}
        running = {step.job for step in steps}
        count = 0
        notes: list[Note] = []
        for process in self._processes.table.values():
            if process.pid in inside or process.state == "Z":
                continue
            uid = self._processes.uid(process.pid)
            if uid is None or uid < _FIRST_USER:
                continue
            job = self._processes.job_in_environment(process)
            # The user controls the environment, so only a job of the same user counts.
            if job is None or job in running or self._ledger.ended_uid(job) != uid:
                continue
            count += 1
            notes += self._once("leftover", process.pid, now, job=job)
        return count, notes

    def _is_foreign(self, pid: int, job: int | None, owners: list[int]) -> bool:
        if job is not None:
            return job not in owners and self._ledger.knows_gpus_of(job)
        uid = self._processes.uid(pid)
        return uid is not None and uid >= _FIRST_USER

    def _once(
        self,
        kind: str,
        pid: int,
        now: Now,
        *,
        job: int | None,
        owner: int | None = None,
        gpu: str | None = None,
    ) -> list[Note]:
        process = self._processes.table.get(pid)
        key = (kind, gpu, pid, process.start if process else 0)
        if key in self._noted:
            return []
        if len(self._noted) > 100_000:
            self._noted.clear()
        self._noted.add(key)
        return [Note(
            kind, now.wall_ms, job=job, owner=owner, gpu=gpu, uid=self._processes.uid(pid), pids=[pid],
            text=shortened(process.name) if process else "",
        )]  # fmt: skip
