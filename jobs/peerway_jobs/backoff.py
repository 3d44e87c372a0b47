"""Retry schedule with increasing delays (backoff)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Backoff(Generic[Key]):
    """How often each key was tried, and when it is due again; never, after the last pause."""

    def __init__(self, pauses_s: Sequence[float]) -> None:
        self._pauses = (*pauses_s, float("inf"))
        self._next_turns: dict[Key, tuple[int, float]] = {}

    def keep(self, keys: Iterable[Key]) -> None:
        """Forget all other keys."""
        wanted = set(keys)
        self._next_turns = {key: turn for key, turn in self._next_turns.items() if key in wanted}

    def due(self, key: Key, now: float) -> bool:
        """Whether the key's pause is over; a key that was never tried is due."""
        return self._next_turns.get(key, (0, 0.0))[1] <= now

    def tried(self, key: Key, now: float) -> None:
        """Note a try that did not bring the hoped-for answer: the next pause begins."""
        times = self._next_turns.get(key, (0, 0.0))[0]
        self._next_turns[key] = times + 1, now + self._pauses[min(times, len(self._pauses) - 1)]

    def end(self, key: Key) -> None:
        """Stop trying this key."""
        self._next_turns[key] = len(self._pauses), float("inf")

    def next(self) -> float:
        """When the next key is due; infinity if none is."""
        return min((turn for _, turn in self._next_turns.values()), default=float("inf"))
