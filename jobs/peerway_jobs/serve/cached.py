"""A value that costs time to compute, kept for some seconds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
KEPT_S = 15.0


class Cached(Generic[T]):
    """Computes a value again when it is older than `kept_s`; those who ask meanwhile wait for it."""

    def __init__(self, compute: Callable[[], T], kept_s: float = KEPT_S) -> None:
        self._compute, self._kept_s = compute, kept_s
        self._lock = threading.Lock()
        self._last: tuple[float, T] | None = None

    def value(self) -> T:
        """The value."""
        with self._lock:
            now = time.monotonic()
            if self._last is None or now - self._last[0] >= self._kept_s:
                self._last = now, self._compute()
            return self._last[1]
