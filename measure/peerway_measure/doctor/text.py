"""Helpers that format facts as text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from peerway_common.units import about_text

if TYPE_CHECKING:
    from collections.abc import Iterable


def size(count: int | None) -> str:
    """1073741824 -> "1 GiB"."""
    return "unknown" if count is None else about_text(count)


def ranges(numbers: Iterable[int]) -> str:
    """[0, 1, 2, 5] -> "0-2, 5"."""
    spans: list[list[int]] = []
    for n in sorted(set(numbers)):
        if spans and n == spans[-1][1] + 1:
            spans[-1][1] = n
        else:
            spans.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def gpus(numbers: Iterable[int]) -> str:
    """[0, 1, 5] -> "GPUs 0-1, 5"."""
    known = sorted(set(numbers))
    return f"GPU{'s' if len(known) != 1 else ''} {ranges(known)}"


def count(number: int, noun: str) -> str:
    """A number with its noun: "1 drive", "2 drives"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def whence(path: str) -> str:
    """Where a file is, briefly: " of this Python" for a file of a wheel, otherwise ", /its/path"."""
    inside = path.startswith(sys.prefix + "/") and sys.prefix != sys.base_prefix
    return " of this Python" if inside or "/site-packages/" in path else f", {path}"


def version(text: str) -> tuple[int, ...]:
    """Split "580.159.04" into (580, 159, 4); () if the text is not a version."""
    try:
        return tuple(int(part) for part in text.split("."))
    except ValueError:
        return ()
