"""Builds a rewritten text: the original with insertions, each on one line, whose parts know their origin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from peerway_xacc.frontend.tokens import Piece, Text


@dataclass(frozen=True)
class Part:
    """Some text of an insertion, and the offset in the original that it is copied from, or stands for."""

    text: str
    origin: int
    copied: bool = False


@dataclass
class Insertion:
    """Text on one line, in parts."""

    parts: list[Part] = field(default_factory=list)

    def add(self, text: str, origin: int) -> None:
        """Add new text that stands for an offset of the original."""
        self.parts.append(Part(text, origin))

    def extend(self, parts: Iterable[Part]) -> None:
        """Add parts."""
        self.parts.extend(parts)


def rewritten(text: Text, insertions: dict[int, Insertion]) -> Text:
    """The text with insertions at offsets of the original."""
    written: list[str] = []
    pieces: list[Piece] = []
    ends: list[int] = []
    length = at = 0

    def put(part: str, origin: int, copied: bool, inserted: bool) -> None:
        nonlocal length
        pieces.append(Piece(length, origin, copied, inserted))
        written.append(part)
        length += len(part)

    for offset in sorted(insertions):
        put(text.text[at:offset], at, True, False)
        for part in insertions[offset].parts:
            put(part.text, part.origin, part.copied, True)
        ends.append(length)
        at = offset
    put(text.text[at:], at, True, False)
    return Text(text.file, "".join(written), text, pieces, ends)
