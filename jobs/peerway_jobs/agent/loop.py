"""The agent's main loop: each round measures, spools a batch, wakes the sender and updates the page."""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import TypeVar

from peerway_common.printable import shortened
from peerway_jobs import plausible
from peerway_jobs.agent import files
from peerway_jobs.agent.cgroups import Cgroups
from peerway_jobs.agent.fabric import Fabric
from peerway_jobs.agent.ledger import Ledger, Now
from peerway_jobs.agent.node_gpus import NodeGpus
from peerway_jobs.agent.page import Page
from peerway_jobs.agent.processes import PAGE, Processes
from peerway_jobs.agent.records import Record, Records
from peerway_jobs.agent.sender import Sender
from peerway_jobs.agent.settings import Settings
from peerway_jobs.agent.slurm import Slurm
from peerway_jobs.agent.spool import Spool
from peerway_jobs.agent.steps import Step, Steps
from peerway_jobs.agent.strangers import Strangers
from peerway_jobs.agent.system import System
from peerway_jobs.batch import Batch, Facts, Note, Samples, encode
from peerway_jobs.batch_check import MOST_NOTES
from peerway_jobs.clock import Sent

_STEPPED_MS = 1000  # a change of the wall clock against the time since boot that means: somebody set it
_REFRESH_ROUNDS = 30  # rounds between two searches for GPUs
_FACTS_MS = 3_600_000
_T = TypeVar("_T")


class Agent:
    """The agent of one node. `run` calls `round` once per interval until `stop`."""

    def __init__(self, settings: Settings, tell: Callable[[str], None]) -> None:
        self._settings = settings
        self._tell = tell
        self._end = threading.Event()
        self._reported: set[str] = set()
        self._failures = self._rounds = 0
        self._tick_s = 0.0
        self._notes: list[Note] = []
        self._dropped_told = 0
        self._facts: Facts | None = None
        self._facts_ms = 0
        self._offset_ms: int | None = None
        state = Path(settings.state)
        self._system = System(settings.root)
        self._fabric = Fabric(settings.root)
        self._processes = Processes(settings.root)
        self._cgroups = Cgroups(settings.root)
        self._steps = Steps(self._processes, self._cgroups)
        self._gpus = NodeGpus(settings.nvml, settings.root)
        self._boot = self._system.boot()
        self._spool = Spool(state / "spool", int(settings.spool_mb * (1 << 20)))
        self._records = Records(str(state / "events"))
        self._ledger = Ledger(state / "ledger.json", self._gpus.facts)
        self._ledger.load(self._now())
        self._strangers = Strangers(self._processes, self._ledger)
        self._slurm = Slurm(settings.node)
        self._asked_ms: dict[int, int] = {}
        self._sender = Sender(settings, self._spool, self._sent, tell) if settings.server else None
        address = settings.page_address()
        try:
            self._page = None if address is None else Page(*address)
        except OSError as error:
            why = getattr(error, "strerror", None) or str(error)
            raise OSError(error.errno, why, f"page = {settings.page}") from None

    def run(self) -> None:
        """Measure until `stop`. Rounds keep their rhythm however long one takes; late ones are skipped."""
        if self._sender is not None:
            self._sender.start()
        begin = time.monotonic()
        while not self._end.is_set():
            self.round()
            passed = time.monotonic() - begin
            following = (passed // self._settings.interval_s + 1) * self._settings.interval_s
            self._end.wait(following - passed)
        self.close()

    def stop(self) -> None:
        """End after the current round; a signal handler may call it."""
        self._end.set()

    def close(self) -> None:
        """Stop the page and the sender, and close the spool."""
        self._slurm.close()
        if self._sender is not None:
            self._sender.stop()
        if self._page is not None:
            self._page.close()
        self._spool.close()

    def round(self) -> Batch:
        """Measure once, and spool the batch."""
        began = time.monotonic()
        now = self._now()
        self._watch_clock(now)
        batch = Batch(
            self._settings.node, self._spool.stream, self._spool.next_seq, now.boot, now.wall_ms, now.mono_ms
        )
        if self._rounds % _REFRESH_ROUNDS == 0 and self._rounds:
            self._try("GPUs", self._gpus.refresh, None)
        if self._rounds == 0:
            self._note("agent_started", now)
        steps = self._follow_jobs(now)
        batch.samples = self._measure(steps, now)
        batch.facts = self._new_facts(batch.samples, now)
        if self._spool.dropped > self._dropped_told:
            self._note("dropped", now, count=self._spool.dropped - self._dropped_told)
            self._dropped_told = self._spool.dropped
        batch.intervals = self._ledger.changed()
        batch.notes = self._notes[:MOST_NOTES]
        self._keep(batch, now)
        if self._page is not None:
            self._page.show(batch.samples)
        self._rounds += 1
        self._tick_s = time.monotonic() - began
        return batch

    # parts of a round

    def _follow_jobs(self, now: Now) -> list[Step]:
        self._try("processes", self._processes.scan, None)
        steps: list[Step] | None = self._try("steps", self._steps.sample, None)
        records: list[Record] = self._try("events", self._records.take, [])
        for name in self._records.wrong:
            self._unreadable("events", f"{name} is not a record of a prolog or epilog")
        for record in records:
            self._ledger.record(record, now)
            if record.out_of_memory and record.event == "epilog":
                self._note("oom_kill", now, job=record.job, uid=record.uid)
        # Steps that cannot be read in this round have not ended.
        counted = [] if steps is None else self._ledger.follow(steps, now)
        self._repair(now)
        return counted

    def _measure(self, steps: list[Step], now: Now) -> dict[str, Samples]:
        samples = self._try("system", self._system.sample, {"node": Samples(), "nic": Samples()})
        self._try("infiniband", lambda: self._fabric.add_ports(samples["nic"]), None)
        samples["filesystem"] = self._try("lustre", self._fabric.filesystems, Samples())
        nothing: tuple[Samples, dict[str, list[int]]] = (Samples(), {})
        gpus, users = self._try("GPUs", self._gpus.sample, nothing)
        self._notes += self._strangers.on_gpus(users, steps, gpus, now)
        samples["gpu"] = gpus
        samples["step"] = Samples()
        for step in steps:
            samples["step"].add(str(self._ledger.slot(step)), step.figures)
        leftover, notes = self._strangers.left_over(steps, now)
        self._notes += notes
        self._add_own(samples["node"], leftover)
        self._drop_implausible(samples)
        return {kind: part for kind, part in samples.items() if part.devices}

    def _drop_implausible(self, samples: dict[str, Samples]) -> None:
        """Remove values that no driver can mean; the reason is noted once for each device and metric."""
        for kind, part in samples.items():
            for device, metric, why in plausible.sift(part.devices, part.values):
                self._unreadable(f"{kind} {device}", why, of=metric)
        for reasons in (self._fabric.reasons, self._gpus.reasons):
            for (device, of), why in reasons.items():
                self._unreadable(device, why, of)
            reasons.clear()

    def _add_own(self, node: Samples, leftover: int) -> None:
        if not node.devices:
            node.add("node", {})
        used = resource.getrusage(resource.RUSAGE_SELF)
        resident = files.text("/proc/self/statm") or "0 0"
        for name, value in {
            "node_leftover_processes": leftover,
            "agent_cpu_seconds_total": round(used.ru_utime + used.ru_stime, 3),
            "agent_resident_bytes": int(resident.split()[1]) * PAGE,
            "agent_tick_seconds": round(self._tick_s, 4),
            "agent_spooled_batches": self._spool.waiting(),
            "agent_dropped_batches_total": self._spool.dropped,
            "agent_failures_total": self._failures,
        }.items():
            node.values[name] = [value]

    def _keep(self, batch: Batch, now: Now) -> None:
        """Spool the batch, then forget its sources. If spooling fails, its samples are lost; the next batch
        has its intervals, notes and facts.
        """
        try:
            self._spool.append(encode(batch))
            self._notes = self._notes[MOST_NOTES:]
            self._ledger.sent()
            self._ledger.save(now)
            self._records.taken()
        except (OSError, ValueError, TypeError) as error:
            self._failures += 1
            if batch.facts is not None:
                self._facts = None  # so that the next batch has them
            why = getattr(error, "strerror", None) or error
            self._unreadable("spool", f"a batch is lost: {why}")
        if self._sender is not None:
            self._sender.wake()

    def _new_facts(self, samples: dict[str, Samples], now: Now) -> Facts | None:
        facts = Facts(
            cpus=len(samples["core"].devices) if "core" in samples else (os.cpu_count() or 1),
            memory_bytes=self._system.memory_bytes(), interval_ms=round(self._settings.interval_s * 1000),
            cgroup=self._cgroups.version(), agent=_version(), kernel=self._system.kernel(),
            gpus=self._gpus.facts(),
            nics=samples["nic"].devices if "nic" in samples else [],
            filesystems=samples["filesystem"].devices if "filesystem" in samples else [],
        )  # fmt: skip
        if facts == self._facts and now.mono_ms - self._facts_ms < _FACTS_MS:
            return None
        self._facts, self._facts_ms = facts, now.mono_ms
        return facts

    def _repair(self, now: Now) -> None:
        """Ask Slurm about jobs without records, one at a time; the same job at most every six rounds."""
        answer = self._slurm.answer()
        if isinstance(answer, str):
            self._unreadable("slurm", answer)
        elif answer is not None:
            self._ledger.learn(answer)
        if self._slurm.busy:
            return
        quiet_ms = round(6000 * self._settings.interval_s)
        doubtful = self._ledger.doubtful(now, quiet_ms)
        self._asked_ms = {job: at for job, at in self._asked_ms.items() if job in doubtful}
        due = [job for job in doubtful if now.mono_ms - self._asked_ms.get(job, -quiet_ms) >= quiet_ms]
        if due:
            job = min(due, key=lambda each: self._asked_ms.get(each, 0))
            self._asked_ms[job] = now.mono_ms
            if why := self._slurm.ask(job):
                self._unreadable("slurm", why)

    def _watch_clock(self, now: Now) -> None:
        offset = now.wall_ms - now.mono_ms
        if self._offset_ms is not None and abs(offset - self._offset_ms) > _STEPPED_MS:
            by = offset - self._offset_ms
            self._ledger.shift(by)
            self._note("clock_stepped", now, count=abs(by), text="forwards" if by > 0 else "backwards")
        self._offset_ms = offset

    # internals

    def _now(self) -> Now:
        return Now(int(time.time() * 1000), int(time.clock_gettime(time.CLOCK_BOOTTIME) * 1000), self._boot)

    def _sent(self) -> Sent:
        now = self._now()
        return Sent(now.wall_ms, now.mono_ms, now.boot)

    def _try(self, source: str, measure: Callable[[], _T], otherwise: _T) -> _T:
        """Call `measure`; if it raises, return `otherwise`: a failing source must not stop the others."""
        try:
            return measure()
        except Exception as error:
            self._failures += 1
            self._unreadable(source, f"{error.__class__.__name__}: {error}")
            return otherwise

    def _unreadable(self, source: str, why: str, of: str = "") -> None:
        """Log and note a problem once. `of` names its subject, for reasons whose text changes (figures)."""
        text = shortened(f"{source}: {why}", 128)
        key = f"{source}: {of}" if of else text
        if key in self._reported or len(self._reported) > 1000:
            return
        self._reported.add(key)
        self._tell(text)
        self._note("unreadable", self._now(), text=text)

    def _note(self, kind: str, now: Now, **more: object) -> None:
        if len(self._notes) < 4 * MOST_NOTES:
            self._notes.append(Note(kind, now.wall_ms, **more))  # type: ignore[arg-type]


def _version() -> str:
    try:
        return metadata.version("peerway")
    except metadata.PackageNotFoundError:
        return ""
