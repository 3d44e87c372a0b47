"""The tokens of agents in memory, because each agent sends one every 10 s.

All are read again every KEPT_S. So a revoked token is refused after this time at the latest, and a new one is
known at once, because a token that is not in memory is looked up in the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from peerway_jobs.serve.people import AgentToken, People, digest

KEPT_S = 10.0


class AgentTokens:
    """The tokens of all agents, as they were in the database not long ago."""

    def __init__(self, people: People, clock: Callable[[], float] = time.monotonic) -> None:
        self._people, self._clock = people, clock
        self._tokens: dict[str, AgentToken] = {}
        self._read = float("-inf")  # when they were read
        self._lock = threading.Lock()

    def node(self, token: str, now: float) -> str:
        """The node of a token's agent; empty if the database has to be asked. It never waits."""
        known = self._tokens.get(digest(token)) if self._is_fresh() else None
        return "" if known is None or (known.ends is not None and known.ends <= now) else known.node

    def read_again(self) -> None:
        """Read them if it is time, unless another thread does."""
        if not self._is_fresh() and self._lock.acquire(blocking=False):
            try:
                begun = self._clock()
                self._tokens = self._people.agent_tokens()
                self._read = begun
            finally:
                self._lock.release()

    def _is_fresh(self) -> bool:
        return self._clock() - self._read < KEPT_S
