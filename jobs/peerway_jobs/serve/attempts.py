"""Slows down password guessing.

After some wrong passwords for one name from one address, each further try of this pair has to wait twice as
long as the one before, up to a few seconds. Nobody else waits: neither the owner at another address, nor
other names at this address.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

FREE = 5  # wrong passwords before the first wait
# The owner may share the guesser's address, behind a NAT. So a guesser can delay the owner by this much only.
LONGEST_S = 4.0
_FORGOTTEN_S = 900.0  # after the last wrong password
_MOST = 20_000  # (name, address) pairs; the oldest failures are forgotten first

Pair = tuple[str, str]


class Attempts:
    """Counts wrong passwords by name and address."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._lock = clock, threading.Lock()
        self._wrong: dict[Pair, tuple[int, float]] = {}  # how many, and when the last one was
        self.checks = threading.BoundedSemaphore(2)  # password hashes use a whole core each, on purpose

    def wait_s(self, name: str, address: str) -> float:
        """The seconds to wait before this address may try this name; 0 if it may try now.
        An earlier try is not checked.
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
            self._wrong[pair] = (wrong if now - last < _FORGOTTEN_S else 0) + 1, now  # keeps the newest last
            while len(self._wrong) > _MOST:
                self._wrong.pop(next(iter(self._wrong)))

    def succeeded(self, name: str, address: str) -> None:
        """Forget the wrong passwords, because the right one came."""
        with self._lock:
            self._wrong.pop((name, address), None)
