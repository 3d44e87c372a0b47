"""How much a node may send: a bucket for each, which fills again as time passes. An agent that was away for
an hour sends what it kept within some minutes; one that sends without end is told to come later.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_BYTES = 64 << 20  # at once
BYTES_A_SECOND = 1 << 20  # for ever; a large node with a batch in 10 s sends 10 KiB
POST_BYTES = 16 << 10  # what a POST costs beside its bytes


class Buckets:
    """What each node may still send."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}  # bytes, and when that was so

    def wait_s(self, node: str, size: int) -> float:
        """Take a POST of this size, and give 0; or the seconds until there is room for it."""
        now, cost = self._clock(), size + POST_BYTES
        level, at = self._levels.get(node, (float(MOST_BYTES), now))
        level = min(MOST_BYTES, level + (now - at) * BYTES_A_SECOND)
        if cost > level:
            self._levels[node] = level, now
            return (cost - level) / BYTES_A_SECOND
        self._levels[node] = level - cost, now
        return 0.0
