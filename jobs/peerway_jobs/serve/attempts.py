"""Slows down who tries passwords: after some wrong ones for a name from one address, each further try there
has to wait, twice as long as the one before, and a few seconds at most. Nobody else waits: not the owner at
another address, nor others at the same one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FREE = 5  # wrong passwords without a wait
# The owner may share that address, behind a NAT: nobody who guesses there keeps the owner out for longer.
LONGEST_S = 4.0
_FORGOTTEN_S = 900.0  # after the last wrong one
_MOST = 20_000  # pairs; those that failed longest ago are forgotten first

Pair = tuple[str, str]


class Attempts:
    """Wrong passwords for each name from each address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._wrong: dict[Pair, tuple[int, float]] = {}  # how many, and when the last one was
        self.checks = threading.BoundedSemaphore(2)  # hashes take a core each, on purpose

    def wait_s(self, name: str, address: str) -> float:
        """How many seconds this address has to wait before it may try this name; 0 for now. A try before
        that counts as none.
        """
        with self._lock:
            wrong, last = self._wrong.get((name, address), (0, 0.0))
            if wrong < FREE:
                return 0.0
            delay = min(LONGEST_S, 2.0 ** min(wrong - FREE, 10))
            return max(0.0, last + delay - self._clock())

    def failed(self, name: str, address: str) -> None:
        """Count a wrong password."""
        with self._lock:
            now, pair = self._clock(), (name, address)
            wrong, last = self._wrong.pop(pair, (0, now))
            self._wrong[pair] = (wrong if now - last < _FORGOTTEN_S else 0) + 1, now  # the newest is last
            while len(self._wrong) > _MOST:
                self._wrong.pop(next(iter(self._wrong)))

    def succeeded(self, name: str, address: str) -> None:
        """The right one forgives the wrong ones before it."""
        with self._lock:
            self._wrong.pop((name, address), None)
