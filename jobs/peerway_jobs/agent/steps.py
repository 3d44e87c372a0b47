"""The steps that run on the node now, with their processes, cgroups and figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from peerway_jobs.agent.cgroups import Cgroup, Cgroups
from peerway_jobs.agent.processes import Process, Processes
from peerway_jobs.agent.system import Figures

_STOPPED = frozenset("TtZX")
_CPU = ("step_cpu_user_seconds_total", "step_cpu_system_seconds_total")


@dataclass(slots=True)
class Step:
    """One step on this node. `start` (ticks since boot) is that of its slurmstepd and tells two runs
    apart.
    """

    job: int
    step: str
    daemon: int
    start: int
    cgroup: Cgroup | None = None
    begun: bool = False  # one of its tasks has been seen
    pids: list[int] = field(default_factory=list)
    cores: list[int] | None = None
    figures: Figures = field(default_factory=dict)
    _io: dict[tuple[int, int], tuple[int, int, int]] = field(default_factory=dict)
    _total: list[int] = field(default_factory=lambda: [0, 0, 0])  # read, written, major faults
    _cpu: tuple[float, float] = (0.0, 0.0)
    _peak: int = 0

    @property
    def key(self) -> tuple[int, str, int]:
        """Identifies the step among all steps since the boot."""
        return self.job, self.step, self.start


class Steps:
    """Follows the node's steps from round to round."""

    def __init__(self, processes: Processes, cgroups: Cgroups) -> None:
        self._processes = processes
        self._cgroups = cgroups
        self._known: dict[tuple[int, str, int], Step] = {}

    def sample(self) -> list[Step]:
        """The steps that run now, with their figures. Call it just after `Processes.scan`."""
        steps: dict[tuple[int, str, int], Step] = {}
        for daemon, job, name in self._processes.step_daemons():
            if self._is_fork(daemon, job, name):
                continue
            step = self._known.get((job, name, daemon.start)) or Step(job, name, daemon.pid, daemon.start)
            # The daemon makes its cgroups one after another; they are complete once the step's first task
            # runs.
            if step.cgroup is None or not step.begun:
                step.begun = bool(self._tasks(step, self._processes.below(daemon.pid)))
                step.cgroup = self._cgroups.find(job, name, self._processes.cgroup(daemon.pid))
            steps[step.key] = step
        self._known = steps
        for step in steps.values():
            self._measure(step)
        return list(steps.values())

    def _is_fork(self, daemon: Process, job: int, name: str) -> bool:
        """Whether this slurmstepd is a task before its exec, that is, a child of the step's own
        slurmstepd.
        """
        parent = self._processes.table.get(daemon.parent)
        return parent is not None and parent.name == "slurmstepd"

    def _tasks(self, step: Step, pids: Iterable[int]) -> list[int]:
        """The pids that are the step's own programs. A task before its exec is still called slurmstepd."""
        table = self._processes.table
        return sorted(
            pid for pid in pids if pid in table and pid != step.daemon and table[pid].name != "slurmstepd"
        )

    def _measure(self, step: Step) -> None:
        table = self._processes.table
        pids = set(self._processes.below(step.daemon))
        if step.cgroup is not None:
            pids.update(step.cgroup.pids())
        step.pids = self._tasks(step, pids)
        inside = [table[pid] for pid in step.pids]
        if step.cores is None and inside:
            step.cores = self._processes.cpus_allowed(inside[0].pid)
        figures: Figures = {} if step.cgroup is None else step.cgroup.figures()
        if _CPU[0] not in figures:
            figures |= self._cpu_of_tree(step, inside)
        if "step_memory_bytes" not in figures:
            figures["step_memory_bytes"] = self._memory_of(inside)
        step._peak = max(step._peak, int(figures["step_memory_bytes"]), self._killed_at(step, figures))
        figures["step_memory_peak_bytes"] = step._peak
        figures |= self._io_of(step, inside)
        figures["step_processes"] = len(inside)
        figures["step_threads"] = sum(process.threads for process in inside)
        figures["step_running_processes"] = sum(process.state == "R" for process in inside)
        frozen = step.cgroup is not None and step.cgroup.frozen()
        suspended = frozen or (bool(inside) and all(process.state in _STOPPED for process in inside))
        figures["step_suspended_ratio"] = int(suspended)
        # Processes that version 1 has frozen are in state D, like those that wait for a disk.
        figures["step_blocked_processes"] = 0 if frozen else sum(each.state == "D" for each in inside)
        step.figures = figures

    @staticmethod
    def _killed_at(step: Step, figures: Figures) -> int:
        """The step's memory when the kernel killed a process for lack of memory; 0 if none was killed.

        Before a kill, the kernel has reclaimed the file cache, so the cgroup's own peak is the programs'. If
        a step is killed within one round, its samples show little of that memory.
        """
        if not figures.get("step_oom_kills_total") or step.cgroup is None:
            return 0
        limit = figures.get("step_memory_limit_bytes")
        peak = step.cgroup.peak() or limit or 0
        return int(min(peak, limit or peak))

    def _cpu_of_tree(self, step: Step, inside: list[Process]) -> Figures:
        """CPU time of all processes and their ended children; the daemon has that of tasks that ended."""
        daemon = self._processes.table[step.daemon]
        user = daemon.waited_user + sum(each.user + each.waited_user for each in inside)
        system = daemon.waited_system + sum(each.system + each.waited_system for each in inside)
        # When a process ends and its parent does not wait for it, its time is lost. The counter then stands
        # still.
        step._cpu = (max(step._cpu[0], user), max(step._cpu[1], system))
        return dict(zip(_CPU, step._cpu, strict=True))

    def _memory_of(self, inside: list[Process]) -> int:
        """Bytes in memory: the sum of private memory, and the largest shared memory,
        since most map one segment.
        """
        parts = [self._processes.private_and_shared(process.pid) for process in inside]
        return sum(private for private, _ in parts) + max((shared for _, shared in parts), default=0)

    def _io_of(self, step: Step, inside: list[Process]) -> Figures:
        seen: dict[tuple[int, int], tuple[int, int, int]] = {}
        readable = False
        for process in inside:
            moved = self._processes.io(process.pid)
            key = (process.pid, process.start)
            before = step._io.get(key, (0, 0, 0))
            now = (*(moved or before[:2]), process.major_faults)
            readable = readable or moved is not None
            for place in range(3):
                step._total[place] += max(0, now[place] - before[place])
            seen[key] = now
        step._io = seen
        figures: Figures = {"step_major_faults_total": step._total[2]}
        if readable or any(step._total[:2]):
            figures |= {"step_read_bytes_total": step._total[0], "step_written_bytes_total": step._total[1]}
        return figures
