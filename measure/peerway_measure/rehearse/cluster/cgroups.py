"""The cgroups (version 1) of the nodes of a virtual cluster: a group in each controller, removed at
the end.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("memory", "cpuacct", "freezer", "devices")


def has_all() -> bool:
    """Whether jobs can be put into cgroups of version 1 with memory limits."""
    return all((ROOT / each / "cgroup.procs").exists() for each in CONTROLLERS)


def remove_old() -> None:
    """Remove the cgroups of clusters whose process was killed."""
    for path in (ROOT / CONTROLLERS[0]).glob("peerway-*"):
        number = path.name.removeprefix("peerway-")
        if number.isdigit() and not Path("/proc", number).exists():
            remove(path.name)


def remove(name: str) -> None:
    """Remove a cgroup; it is no error if another process has removed it first."""
    for controller in CONTROLLERS:
        for folder, _, _ in os.walk(ROOT / controller / name, topdown=False):
            _remove(Path(folder))


def _remove(folder: Path) -> None:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:  # its last processes may still be ending
        try:
            folder.rmdir()
            return
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.02)
