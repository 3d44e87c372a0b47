"""Suggests the name that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """ "; did you mean put_latency?" if the name is similar to a known one, otherwise an empty text."""
    import difflib

    close = difflib.get_close_matches(name, list(known), 1, likeness)
    return f"; did you mean {close[0]}?" if close else ""
