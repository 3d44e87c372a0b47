"""The table of processes, read from /proc once per round."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

from peerway_jobs.agent import files
from peerway_jobs.agent.system import TICK

PAGE = os.sysconf("SC_PAGE_SIZE")
_STEPD = re.compile(rb"slurmstepd: \[(\d{1,10})\.(\d{1,10}(?:\+\d{1,5})?|batch|extern|interactive)\]")
_JOB = re.compile(rb"(?:^|\0)SLURM_JOB_ID=(\d{1,10})(?:\0|$)")
_MOST_ENVIRONMENT = 128 << 10
_KERNEL_THREADS = 2  # the parent of the kernel's threads


@dataclass(slots=True)
class Process:
    """One process. Times are in seconds; `start` (ticks since boot) and `pid` together identify it."""

    pid: int
    start: int
    parent: int
    name: str
    state: str
    user: float
    system: float
    waited_user: float  # of children that have ended and were waited for
    waited_system: float
    major_faults: int
    threads: int
    resident: int


def parse_stat(line: str) -> Process:
    """Parse /proc/PID/stat, where the name may contain anything, even brackets. Raises ValueError,
    IndexError.
    """
    head, _, tail = line.rpartition(")")
    pid, _, name = head.partition(" (")
    words = tail.split()
    return Process(
        int(pid), int(words[19]), int(words[1]), name, words[0], int(words[11]) / TICK, int(words[12]) / TICK,
        int(words[13]) / TICK, int(words[14]) / TICK, int(words[9]), int(words[17]), int(words[21]) * PAGE,
    )  # fmt: skip


class Processes:
    """The table, with a cache of what is read only once for each program that a process runs."""

    def __init__(self, root: str) -> None:
        self._proc = f"{root.rstrip('/')}/proc"
        self._kernel: set[int] = set()
        self._rounds = 0
        self._stepds: dict[tuple[int, int], tuple[int, str]] = {}
        self._jobs: dict[tuple[int, int, str], int | None] = {}
        self.table: dict[int, Process] = {}
        self.children: dict[int, list[int]] = {}

    def scan(self) -> None:
        """Read the table. Kernel threads are skipped; every sixth round they are looked at again.

        Raises OSError, and keeps the previous table, if no more files can be opened.
        """
        self._rounds += 1
        if self._rounds % 6 == 1:
            self._kernel.clear()
        table: dict[int, Process] = {}
        children: dict[int, list[int]] = {}
        for name in os.listdir(self._proc):  # noqa: PTH208 - no Path for each name
            if not name.isdigit() or int(name) in self._kernel:
                continue
            try:
                process = parse_stat(files.read(f"{self._proc}/{name}/stat", 4096).decode(errors="replace"))
            except OSError as error:
                if error.errno in files.NO_FILES:  # otherwise every process would seem to have ended
                    raise
                continue  # it has just ended
            except (ValueError, IndexError):  # likewise
                continue
            if _KERNEL_THREADS in (process.pid, process.parent) and process.resident == 0:
                self._kernel.add(process.pid)
                continue
            table[process.pid] = process
            children.setdefault(process.parent, []).append(process.pid)
        self.table, self.children = table, children
        known = {(process.pid, process.start) for process in table.values()}
        self._stepds = {key: value for key, value in self._stepds.items() if key in known}
        self._jobs = {key: value for key, value in self._jobs.items() if key[:2] in known}

    def step_daemons(self) -> Iterator[tuple[Process, int, str]]:
        """Each slurmstepd of root with its job and step. A user may give a program that name, so others do
        not count.
        """
        for process in self.table.values():
            if process.name != "slurmstepd" or process.state == "Z":
                continue
            key = (process.pid, process.start)
            step = self._stepds.get(key) or self._step_of(process.pid)
            if step is not None:  # otherwise it may get its title later
                self._stepds[key] = step
                yield process, *step

    def below(self, pid: int) -> list[int]:
        """All descendants of a process."""
        pids: list[int] = []
        todo = list(self.children.get(pid, ()))
        while todo:
            each = todo.pop()
            pids.append(each)
            todo.extend(self.children.get(each, ()))
        return pids

    def uid(self, pid: int) -> int | None:
        """The user id of a process; None if it has ended."""
        try:
            return os.stat(f"{self._proc}/{pid}").st_uid  # noqa: PTH116
        except OSError:
            return None

    def io(self, pid: int) -> tuple[int, int] | None:
        """Bytes read and written through any file or socket; None if they may not be read."""
        content = files.text(f"{self._proc}/{pid}/io", 1024)
        if content is None:
            return None
        numbers = [int(line.rpartition(" ")[2]) for line in content.splitlines()[:2]]
        return (numbers[0], numbers[1]) if len(numbers) == 2 else None

    def cpus_allowed(self, pid: int) -> list[int] | None:
        """The logical CPUs that the process may run on; None if unknown."""
        for line in (files.text(f"{self._proc}/{pid}/status") or "").splitlines():
            if line.startswith("Cpus_allowed_list:"):
                return cpu_list(line.partition(":")[2].strip())
        return None

    def private_and_shared(self, pid: int) -> tuple[int, int]:
        """Bytes of resident anonymous memory and of resident shared memory (shmem)."""
        kib = {"RssAnon": 0, "RssShmem": 0}
        for line in (files.text(f"{self._proc}/{pid}/status") or "").splitlines():
            name, _, value = line.partition(":")
            if name in kib:
                kib[name] = int(value.split()[0])
        return kib["RssAnon"] << 10, kib["RssShmem"] << 10

    def job_in_environment(self, process: Process) -> int | None:
        """SLURM_JOB_ID at the start of its program. The user may have set it: trust it for the user's own
        jobs only.
        """
        key = (process.pid, process.start, process.name)  # exec changes the environment, and with it the name
        if key not in self._jobs:
            try:
                environment = files.read(f"{self._proc}/{process.pid}/environ", _MOST_ENVIRONMENT)
            except OSError:
                return None
            if not environment:  # during exec the environment is empty
                return None
            match = _JOB.search(environment)
            self._jobs[key] = int(match[1]) if match else None
        return self._jobs[key]

    def cgroup(self, pid: int) -> str:
        """The lines of /proc/PID/cgroup."""
        return files.text(f"{self._proc}/{pid}/cgroup") or ""

    def _step_of(self, pid: int) -> tuple[int, str] | None:
        try:
            match = _STEPD.match(files.read(f"{self._proc}/{pid}/cmdline", 4096))
        except OSError:
            return None
        if match is None or self.uid(pid) != 0 or not 0 < int(match[1]) < 1 << 32:
            return None
        return int(match[1]), match[2].decode()


def cpu_list(text: str) -> list[int]:
    """Parse a kernel list of CPUs such as "0-3,8"."""
    cpus: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus.extend(range(int(first), int(last or first) + 1))
    return cpus
