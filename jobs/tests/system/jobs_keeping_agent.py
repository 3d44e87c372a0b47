"""`peerway jobs agent` that also keeps a copy of every batch, to compare a server's store with.

The spool itself deletes acknowledged batches. The copies are in `taken.frames` beside it; each is written
after the spool's, so whenever the agent is killed, every copied batch is in the spool.
"""

from __future__ import annotations

import sys
from pathlib import Path

from peerway_common.cli import main
from peerway_jobs.agent.spool import Spool
from peerway_jobs.frames import frame


class KeepingSpool(Spool):
    """A spool that also writes the copies."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        super().__init__(folder, most_bytes)
        self._taken = (folder.parent / "taken.frames").open("ab", buffering=0)

    def append(self, payload: bytes) -> None:
        super().append(payload)
        self._taken.write(frame(payload))


if __name__ == "__main__":
    from peerway_jobs.agent import loop

    loop.Spool = KeepingSpool  # type: ignore[misc]
    sys.exit(main())
