"""Reads how long programs waited for a CPU according to the kernel (pressure stall information,
Linux 4.20).
"""

from __future__ import annotations

import re
import time
from pathlib import Path

ROOT = Path("/")


def waited_us(root: Path = ROOT) -> int | None:
    """The time during which at least one program waited since the kernel began to count, in this process's
    cgroup or otherwise on the host. None if the kernel does not count it.
    """
    own = re.search(r"^0::(/.*)$", _text(root / "proc/self/cgroup"), re.MULTILINE)
    group = [root / "sys/fs/cgroup" / own[1].strip("/") / "cpu.pressure"] if own else []
    for file in (*group, root / "proc/pressure/cpu"):
        if match := re.search(r"^some .*\btotal=(\d+)", _text(file), re.MULTILINE):
            return int(match[1])
    return None


class Meter:
    """Counts from the moment when it is made."""

    def __init__(self, root: Path = ROOT) -> None:
        self._root, self._before, self._began = root, waited_us(root), time.monotonic()

    def share(self) -> float | None:
        """The share of the time since then during which programs waited; None if it is not known."""
        after, took = waited_us(self._root), time.monotonic() - self._began
        if self._before is None or after is None or took <= 0:
            return None
        return round(min(1.0, max(0, after - self._before) / 1e6 / took), 3)


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:  # an older kernel, or one that does not count pressure
        return ""
