"""Binds the ranks of a peer to different cores, as Peerway's own launcher does."""

from __future__ import annotations

import os
from pathlib import Path


def physical() -> list[int]:
    """One CPU of each physical core that this process may use."""
    cores: dict[tuple[str, str], int] = {}
    for cpu in sorted(os.sched_getaffinity(0)):
        cores.setdefault(_core_of(cpu), cpu)
    return sorted(cores.values())


def one_each(ranks: int) -> list[int]:
    """A CPU for each rank: on different cores if possible, otherwise at least different CPUs. Empty if there
    are too few CPUs.
    """
    for cpus in (physical(), sorted(os.sched_getaffinity(0))):
        if len(cpus) >= ranks:
            return cpus[:ranks]
    return []


def _core_of(cpu: int) -> tuple[str, str]:
    folder = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
    try:
        return (folder / "physical_package_id").read_text(), (folder / "core_id").read_text()
    except OSError:
        return "", str(cpu)
