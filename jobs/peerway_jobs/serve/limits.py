"""Limits how much a node may send, with a token bucket for each node.

An agent that was away for an hour can send its spool within some minutes; an agent that sends without end is
told to wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable

MOST_BYTES = 64 << 20  # burst
BYTES_A_SECOND = 1 << 20  # sustained; a node with 64 cores and 8 GPUs sends 2.3 KB in 10 s
POST_BYTES = 16 << 10  # added to the bytes of each POST


class Buckets:
    """What each node may still send."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._levels: dict[str, tuple[float, float]] = {}  # node -> bytes, and when it had them

    def wait_s(self, node: str, size: int) -> float:
        """Take a POST of `size` bytes out of the bucket and return 0, or return the seconds to wait."""
        now, cost = self._clock(), size + POST_BYTES
        level, at = self._levels.get(node, (float(MOST_BYTES), now))
        level = min(MOST_BYTES, level + (now - at) * BYTES_A_SECOND)
        if cost > level:
            self._levels[node] = level, now
            return (cost - level) / BYTES_A_SECOND
        self._levels[node] = level - cost, now
        return 0.0
