"""Holds the exception that ends the work on a loop: it stays a loop of the host."""

from __future__ import annotations


class StaysOnHost(Exception):
    """A loop cannot be written for the GPU: the reason, and the offset of what prevents it."""

    def __init__(self, offset: int, reason: str) -> None:
        super().__init__(reason)
        self.offset = offset
        self.reason = reason
