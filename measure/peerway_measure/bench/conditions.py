"""Detects conditions of this host that will disturb a measurement, before it starts: load, too few CPUs, a
CPU quota, slow clocks.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

WINDOW_S = 0.2  # how long the CPU time of other processes is counted
NOTICED = 0.25  # a warning is given if other processes use this many CPUs
ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a host.

    `busy` is how many of this process's `cpus` other processes use; `quota` is how many CPUs a container may
    use, None if it has no limit.
    """

    cpus: int
    busy: float = 0.0
    quota: float | None = None
    governors: frozenset[str] = frozenset()


def warnings_for(conditions: Conditions, ranks: int, noun: str = "ranks") -> list[str]:
    """Warnings to show before this many ranks (or what `noun` names) are measured."""
    warnings = []
    if conditions.busy > NOTICED:
        warnings.append(
            f"others use {conditions.busy:.1f} of {_cpus(conditions.cpus)} now: "
            "times will be longer and spread"
        )
    if ranks > conditions.cpus:
        warnings.append(f"oversubscribed: {ranks} {noun} share {_cpus(conditions.cpus)} and take turns")
    if conditions.quota is not None and conditions.quota < min(ranks, conditions.cpus):
        warnings.append(
            f"this container may use {conditions.quota:g} CPUs (cgroup), fewer than {ranks} {noun} keep "
            "busy: they are stopped for a part of each period"
        )
    if "powersave" in conditions.governors:
        warnings.append(
            "the CPU frequency governor is powersave; `cpupower frequency-set -g performance` sets it"
        )
    return warnings


def read(root: Path = ROOT) -> Conditions:
    """Read the conditions of this host. This process sleeps meanwhile, so that it does not count as load
    itself.
    """
    allowed = os.sched_getaffinity(0)
    before = _busy_s(root, allowed)
    start = time.monotonic()
    time.sleep(WINDOW_S if before else 0)
    after = _busy_s(root, allowed)
    took = max(time.monotonic() - start, 1e-9)
    busy = sum(max(0.0, after.get(cpu, 0.0) - was) for cpu, was in before.items()) / took
    return Conditions(len(allowed), min(busy, float(len(allowed))), _quota(root), _governors(root, allowed))


def _cpus(count: int) -> str:
    return f"{count} CPUs" if count > 1 else "1 CPU"


def _busy_s(root: Path, allowed: set[int]) -> Mapping[int, float]:
    """For each CPU, the seconds since boot that it has worked or that the hypervisor has taken from it."""
    busy = {}
    tick = os.sysconf("SC_CLK_TCK")
    for line in _text(root / "proc/stat").splitlines():
        name, *numbers = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in allowed:
            user, nice, system, _idle, _wait, *rest = map(int, numbers)
            busy[int(name[3:])] = (user + nice + system + sum(rest[:3])) / tick
    return busy


def _quota(root: Path) -> float | None:
    """The smallest number of CPUs that a cgroup around this process allows."""
    quotas = []
    for line in _text(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        top = root / "sys/fs/cgroup" / ("cpu" if controllers else "")
        if controllers and "cpu" not in controllers.split(","):
            continue
        for folder in _upwards(path):
            quotas += _limit(top / folder)
    return min(quotas, default=None)


def _upwards(path: str) -> Sequence[str]:
    """A cgroup and all cgroups that contain it. Inside a container the container's own cgroup is the top,
    whatever its name.
    """
    parts = [part for part in path.split("/") if part not in ("", "..")]
    return ["/".join(parts[:length]) for length in range(len(parts), -1, -1)]


def _limit(folder: Path) -> list[float]:
    both = _text(folder / "cpu.max").split() or [
        _text(folder / "cpu.cfs_quota_us").strip(), _text(folder / "cpu.cfs_period_us").strip()
    ]  # fmt: skip
    quota, period = (int(text) if text.isdecimal() else 0 for text in [*both, "", ""][:2])
    return [quota / period] if quota and period else []


def _governors(root: Path, allowed: set[int]) -> frozenset[str]:
    system = root / "sys/devices/system/cpu"
    governors = (_text(system / f"cpu{cpu}/cpufreq/scaling_governor").strip() for cpu in allowed)
    return frozenset(filter(None, governors))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # this kernel or container has no such file
