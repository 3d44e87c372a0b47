"""The cgroups of a step, of version 1 or 2, and their figures.

Slurm has named them in three ways: slurm[_NODE]/uid_U/job_J/step_S in version 1, .../job_J/step_S below a
scope in version 2, and .../SLUID/step_S from 26.05 on. What is sure in all of them is the cgroup that the
step's slurmstepd is in, so version 2 starts from there; in version 1 the daemon may stand outside, so the
path is put together.
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
_NO_LIMIT = 1 << 60  # version 1 says 2^63 less a page for none


@dataclass(slots=True)
class Cgroup:
    """Where the step's figures are: version 1 has a folder for each controller, version 2 one for all."""

    version: int
    folders: dict[str, str] = field(default_factory=dict)

    def pids(self) -> list[int]:
        """All processes in it and below. Empty when it has gone."""
        folder = self.folders.get("all") or self.folders.get("freezer") or self.folders.get("cpuacct")
        return _pids_below(folder) if folder else []

    def frozen(self) -> bool:
        """Whether its processes are frozen, as Slurm does with a job that it suspends."""
        if self.version == 1:
            folder = self.folders.get("freezer")
            return folder is not None and (files.text(f"{folder}/freezer.state") or "").strip() in _FROZEN
        folder = self.folders["all"]
        events = (files.keyed(f"{each}/cgroup.events") for each in (folder, f"{folder}/user"))
        return any(each.get("frozen") == 1 for each in events)

    def peak(self) -> int | None:
        """The most memory that it ever had, file cache included."""
        if self.version == 1:
            folder = self.folders.get("memory")
            return None if folder is None else files.number(f"{folder}/memory.max_usage_in_bytes")
        return files.number(f"{self.folders['all']}/memory.peak")

    def figures(self) -> Figures:
        """CPU time, memory, limit, kills, as far as the kernel keeps them."""
        return _figures_2(self.folders["all"]) if self.version == 2 else _figures_1(self.folders)


class Cgroups:
    """Finds them below `root`, which is / but for tests."""

    def __init__(self, root: str) -> None:
        self._top = f"{root.rstrip('/')}/{_TOP}"

    def version(self) -> str:
        """What the node has: "v2", "v1" or "none"; both together count as v1, as Slurm sees it."""
        if any(files.names(f"{self._top}/{each}") for each in _CONTROLLERS):
            return "v1"
        return "v2" if files.text(f"{self._top}/cgroup.controllers") is not None else "none"

    def find(self, job: int, step: str, membership: str) -> Cgroup | None:
        """The cgroup of a step whose slurmstepd has these lines in /proc/PID/cgroup; None for none."""
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
        shared = stat.get("total_shmem", 0)  # older kernels do not count it apart
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
    # Slurm puts --mem of a step on its folder `user`, which has the tasks but not slurmstepd.
    places = (folder, f"{folder}/user", folder.rpartition("/")[0])
    limits = [limit for each in places if (limit := files.number(f"{each}/memory.max")) is not None]
    if limits:
        figures["step_memory_limit_bytes"] = min(limits)
    kills = files.keyed(f"{folder}/memory.events").get("oom_kill")
    if kills is not None:
        figures["step_oom_kills_total"] = kills
    return figures
