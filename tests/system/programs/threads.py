"""Tells the names of the threads that a context has besides the program's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import peerway


def names() -> list[str]:
    """Of all threads of Peerway in this process."""
    found = (task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm"))
    return sorted(name for name in found if name.startswith("pw-"))


def main() -> int:
    """With everything that the settings name."""
    with peerway.Team.from_launcher() as team:
        before = names()
        with peerway.Context(team):
            print(json.dumps([before, names()]), flush=True)
            team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
