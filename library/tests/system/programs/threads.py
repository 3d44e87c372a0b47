"""Prints the names of a context's threads besides the program's own, with a plan for its proxy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

import peerway


def names() -> list[str]:
    """The names of all Peerway threads of this process."""
    found = (task.read_text().strip() for task in Path("/proc/self/task").glob("*/comm"))
    return sorted(name for name in found if name.startswith("pw-"))


def main() -> int:
    """Make a context with everything that the settings enable."""
    with peerway.Team.from_launcher() as team:
        before = names()
        with peerway.Context(team) as ctx:
            ctx.use("staged")
            region = ctx.register(np.zeros(64, np.uint8))
            keys = team.all_gather(region.key())
            plan = ctx.plan().put(ctx.import_key(keys[1 - team.rank]), region).prepare(alone=True)
            plan.start()
            plan.finish(timeout=30)
            print(json.dumps([before, names()]), flush=True)
            team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
