"""A context that one rank cannot make: each rank prints how its call ended."""

from __future__ import annotations

import json
import os
import sys

import peerway


def main() -> int:
    """Rank 1 is configured with a NIC whose plugin does not exist."""
    with peerway.Team.from_launcher() as team:
        if team.rank == 1:
            os.environ["PEERWAY_NIC"] = "/nowhere/none.so"
        try:
            peerway.Context(team)
        except peerway.Error as error:
            print(json.dumps([type(error).__name__, str(error)]), flush=True)
        team.barrier(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
