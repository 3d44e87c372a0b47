"""Rank 0 leaves in good order. Of the others, one is killed later, and each of the rest waits for its signal.

without_rank_0.py VICTIM: each rank but 0 prints a line when the hub is gone, and what its wait ended with.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import peerway

LINGER = 3.0  # seconds: the bootstrap server in rank 0 stays for 2 s, for others that leave at the same time


def main() -> int:
    """Wait for the victim, which will be killed."""
    victim = int(sys.argv[1])
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # because a launcher would end the other ranks
    with peerway.Team.from_launcher() as team, peerway.Context(team) as ctx:
        arrived = ctx.signal(sender=victim)
        team.barrier(timeout=60)
        if team.rank == 0:
            return 0
        while not team.lost(0):
            time.sleep(0.01)
        time.sleep(LINGER)
        print(json.dumps([team.rank, os.getpid()]), flush=True)
        try:
            arrived.wait(1, timeout=60)
        except peerway.Error as error:
            print(json.dumps([team.rank, type(error).__name__, str(error)]), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
