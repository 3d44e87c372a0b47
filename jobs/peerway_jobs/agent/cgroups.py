"""Finds the cgroups of a step, version 1 or 2, and reads their figures.

Slurm has named these cgroups in three ways: slurm[_NODE]/uid_U/job_J/step_S in version 1, .../job_J/step_S
below a scope in version 2, and .../SLUID/step_S from 26.05 on. In version 2 the step's slurmstepd is always a
member of the step's cgroup, so the search starts at that daemon. In version 1 the daemon may be outside;
there the path is composed from the numbers of job and step.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from peerway_jobs.agent import files
from peerway_jobs.agent.system import TICK, Figures, pressure_seconds

_TOP = "sys/fs/cgroup"
_CONTROLLERS = ("memory", "cpuacct", "cpu,cpuacct", "freezer")
_STEP = re.compile(r"^(/.*?/step_[A-Za-z0-9+]+)(?:/.*)?$", re.ASCII)
_FROZEN = ("FROZEN", "FREEZING")
_NO_LIMIT = 1 << 60  # version 1 reports "no limit" as 2^63 minus one page


@dataclass(slots=True)
class Cgroup:
    """The folders with a step's figures: version 1 has one for each controller, version 2 one for all."""

    version: int
    folders: dict[str, str] = field(default_factory=dict)

    def pids(self) -> list[int]:
        """All processes in this cgroup and below it; empty if the cgroup no longer exists."""
        folder = self.folders.get("all") or self.folders.get("freezer") or self.folders.get("cpuacct")
        return _pids_below(folder) if folder else []

    def frozen(self) -> bool:
        """Whether its processes are frozen: Slurm freezes a job that it suspends."""
        if self.version == 1:
            folder = self.folders.get("freezer")
            return folder is not None and (files.text(f"{folder}/freezer.state") or "").strip() in _FROZEN
        folder = self.folders["all"]
        events = (files.keyed(f"{each}/cgroup.events") for each in (folder, f"{folder}/user"))
        return any(each.get("frozen") == 1 for each in events)

    def peak(self) -> int | None:
        """The largest memory use so far in bytes, including file cache; None if the kernel does not report
        it.
        """
        if self.version == 1:
            folder = self.folders.get("memory")
            return None if folder is None else files.number(f"{folder}/memory.max_usage_in_bytes")
        return files.number(f"{self.folders['all']}/memory.peak")

    def figures(self) -> Figures:
        """CPU time, memory, its limit and OOM kills; a figure that the kernel does not report is absent."""
        return _figures_2(self.folders["all"]) if self.version == 2 else _figures_1(self.folders)


class Cgroups:
    """Finds cgroups below `root`, which is / except in tests."""

    def __init__(self, root: str) -> None:
        self._top = f"{root.rstrip('/')}/{_TOP}"

    def version(self) -> str:
        """The node's cgroup version: "v2", "v1" or "none". A node with both counts as v1, as for Slurm."""
        if any(files.names(f"{self._top}/{each}") for each in _CONTROLLERS):
            return "v1"
        return "v2" if files.text(f"{self._top}/cgroup.controllers") is not None else "none"

    def find(self, job: int, step: str, membership: str) -> Cgroup | None:
        """The cgroup of a step, or None. `membership` is /proc/PID/cgroup of the step's slurmstepd."""
        for line in membership.splitlines():
            _, controllers, path = line.split(":", 2)
            match = _STEP.match(path)
            if controllers == "" and match:
                for top in (self._top, f"{self._top}/unified"):
                    if files.text(f"{top}{match[1]}/cpu.stat") is not None:
                        return Cgroup(2, {"all": f"{top}{match[1]}"})
        folders = {}
        for controller in _CONTROLLERS:
            folder = self._version_1(controller, job, step)
            if folder:
                folders[controller.rpartition(",")[2]] = folder
        return Cgroup(1, folders) if folders else None

    def _version_1(self, controller: str, job: int, step: str) -> str | None:
        top = f"{self._top}/{controller}"
        for slurm in files.names(top):
            if not slurm.startswith("slurm"):
                continue
            for user in files.names(f"{top}/{slurm}"):
                folder = f"{top}/{slurm}/{user}/job_{job}/step_{step}"
                if user.startswith("uid_") and files.names(folder):
                    return folder
        return None


def _pids_below(folder: str, depth: int = 6) -> list[int]:
    pids = [int(word) for word in (files.text(f"{folder}/cgroup.procs") or "").split()]
    if depth > 0:
        for name in files.names(folder):
            if "." not in name and name not in ("tasks", "notify_on_release"):
                pids.extend(_pids_below(f"{folder}/{name}", depth - 1))
    return pids


def _figures_1(folders: dict[str, str]) -> Figures:
    figures: Figures = {}
    if cpu := folders.get("cpuacct"):
        user, system = (files.number(f"{cpu}/cpuacct.usage_{which}") for which in ("user", "sys"))
        if user is not None and system is not None:
            figures |= {
                "step_cpu_user_seconds_total": user / 1e9,
                "step_cpu_system_seconds_total": system / 1e9,
            }
        elif {"user", "system"} <= (ticks := files.keyed(f"{cpu}/cpuacct.stat")).keys():
            figures["step_cpu_user_seconds_total"] = ticks["user"] / TICK
            figures["step_cpu_system_seconds_total"] = ticks["system"] / TICK
    memory = folders.get("memory")
    if memory and "total_rss" in (stat := files.keyed(f"{memory}/memory.stat")):
        shared = stat.get("total_shmem", 0)  # older kernels do not report it
        figures["step_memory_bytes"] = stat["total_rss"] + shared
        if "total_cache" in stat:
            figures["step_memory_cache_bytes"] = max(0, stat["total_cache"] - shared)
        limits = [
            limit
            for folder in (memory, memory.rpartition("/")[0])
            if (limit := files.number(f"{folder}/memory.limit_in_bytes")) is not None and limit < _NO_LIMIT
        ]
        if limits:
            figures["step_memory_limit_bytes"] = min(limits)
        kills = files.keyed(f"{memory}/memory.oom_control").get("oom_kill")
        if kills is not None:
            figures["step_oom_kills_total"] = kills
    return figures


def _figures_2(folder: str) -> Figures:
    figures: Figures = {}
    cpu = files.keyed(f"{folder}/cpu.stat")
    if {"user_usec", "system_usec"} <= cpu.keys():
        figures["step_cpu_user_seconds_total"] = cpu["user_usec"] / 1e6
        figures["step_cpu_system_seconds_total"] = cpu["system_usec"] / 1e6
    waited = pressure_seconds(f"{folder}/cpu.pressure")
    if waited is not None:
        figures["step_cpu_pressure_seconds_total"] = waited
    stat = files.keyed(f"{folder}/memory.stat")
    if {"anon", "file", "shmem"} <= stat.keys():
        figures["step_memory_bytes"] = stat["anon"] + stat["shmem"]
        figures["step_memory_cache_bytes"] = max(0, stat["file"] - stat["shmem"])
    # Slurm sets the --mem limit of a step on its folder `user`, which contains the tasks but not slurmstepd.
    places = (folder, f"{folder}/user", folder.rpartition("/")[0])
    limits = [limit for each in places if (limit := files.number(f"{each}/memory.max")) is not None]
    if limits:
        figures["step_memory_limit_bytes"] = min(limits)
    kills = files.keyed(f"{folder}/memory.events").get("oom_kill")
    if kills is not None:
        figures["step_oom_kills_total"] = kills
    return figures
