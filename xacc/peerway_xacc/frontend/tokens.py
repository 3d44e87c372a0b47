"""Splits C text into tokens with their places, and finds directives with their continuation lines."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from peerway_xacc.frontend.characters import of_name
from peerway_xacc.frontend.diagnostics import Place

_TOKEN = re.compile(
    r"""(?P<blank>[ \t\r\f\v\n]+|\\[ \t]*\r?\n|//(?:\\[ \t]*\r?\n|[^\n])*|/\*.*?(?:\*/|\Z))
      | (?P<name>(?:[A-Za-z_$\udc80-\udcff]|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})
          (?:[\w$\udc80-\udcff]|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8})*)
      | (?P<number>\.?[0-9](?:[eEpP][+-]|[\w.])*)
      | (?P<text>(?:"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z))|(?:'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)))
      | (?P<mark>%:|\.\.\.|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|.)""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
# gcc -E writes non-ASCII letters this way
_UNIVERSAL = re.compile(r"\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")


def quoted(text: str) -> str:
    """A text as a string literal of C."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@dataclass(frozen=True)
class Token:
    """A token of C; `kind` is name, number, text or mark."""

    kind: str
    text: str
    place: Place


class Span(NamedTuple):
    """A token with its offsets in a text. A tuple, as there are many: a class takes twice as long to make."""

    kind: str
    text: str
    start: int
    end: int


def _name(written: str) -> str:
    """A name with escapes such as `gr\\u00fc` replaced by the letters."""
    if "\\" not in written:
        return written
    return _UNIVERSAL.sub(lambda match: of_name(chr(int(match[1] or match[2], 16) % 0x110000)), written)


def scan(text: str, start: int = 0, end: int | None = None) -> list[Span]:
    """The tokens of text[start:end], without blanks and comments."""
    return list(_scanned(text, start, end))


@lru_cache(maxsize=1 << 12)
def _scanned(text: str, start: int, end: int | None) -> tuple[Span, ...]:
    """Kept, because each phase reads the statements and the heads of loops again."""
    return tuple(spans(text, start, end))


def spans(text: str, start: int = 0, end: int | None = None) -> Iterator[Span]:
    """The tokens one by one, for callers that need only the first few of a long text."""
    end = len(text) if end is None else end
    while start < end:
        match = _TOKEN.match(text, start, end)
        assert match is not None, "the last alternative takes any character"
        assert match.lastgroup is not None
        if match.lastgroup != "blank":
            word = _name(match[0]) if match.lastgroup == "name" else match[0]
            yield Span(match.lastgroup, word, start, match.end())
        start = match.end()


def closing(spans: list[Span], opening: int) -> int:
    """The index of the `)` that matches the `(` at `opening`; of the last token if there is none."""
    depth = 0
    for number in range(opening, len(spans)):
        depth += (spans[number].text == "(") - (spans[number].text == ")")
        if depth == 0:
            return number
    return len(spans) - 1


def separated(spans: list[Span]) -> list[list[Span]]:
    """The arguments or parameters in a list: its tokens, split at the commas outside of brackets."""
    items: list[list[Span]] = [[]]
    depth = 0
    for span in spans:
        depth += (span.text in ("(", "[", "{")) - (span.text in (")", "]", "}"))
        if span.text == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(span)
    return [item for item in items if item]


@dataclass(frozen=True)
class Piece:
    """A part of a rewritten text: where it begins there, and the offset in the original that it stands for.

    A `copied` piece has the original's characters; any other one stands for the offset as a whole. An
    `inserted` piece is not where the original has it.
    """

    start: int
    origin: int
    copied: bool
    inserted: bool


class Text:
    """A file's text (in the form of characters.py), with its lines.

    A rewritten text has the lines of the original, with more on some of them. Its places are those of the
    original, found by its `pieces`; `insertions` are the offsets at which inserted text ends.
    """

    def __init__(
        self,
        file: str,
        text: str,
        original: Text | None = None,
        pieces: Sequence[Piece] = (),
        insertions: Sequence[int] = (),
    ) -> None:
        self.file = file
        self.text = text
        self.insertions = insertions
        self._starts = [0] + [match.end() for match in re.finditer("\n", text)]
        self._original = original
        self._pieces = pieces

    def place(self, start: int, end: int | None = None) -> Place:
        """The place of an offset, or of the range between two offsets, in the text that the user wrote."""
        length = 1 if end is None else max(1, end - start)
        if self._original is not None:
            piece = self._pieces[bisect_right(self._pieces, start, key=lambda piece: piece.start) - 1]
            origin = piece.origin + (start - piece.start if piece.copied else 0)
            return self._original.place(origin, origin + length if piece.copied else None)
        line = self.line_of(start)
        return Place(self.file, line, start - self._starts[line - 1] + 1, length)

    def is_inserted(self, start: int) -> bool:
        """Is an offset in text that was inserted by rewriting?"""
        if self._original is None:
            return False
        return self._pieces[bisect_right(self._pieces, start, key=lambda piece: piece.start) - 1].inserted

    def line_of(self, start: int) -> int:
        """The line of this text in which an offset lies; of a rewritten text, other than its place's."""
        return bisect_right(self._starts, start)

    def word(self, place: Place) -> str:
        """The token that begins at a place; empty if there is none."""
        start = self.line_start(place.line) + place.column - 1
        return next((span.text for span in scan(self.text, start, min(len(self.text), start + 200))), "")

    def line_start(self, line: int) -> int:
        """The offset at which a line begins; the end of the text for a line after the last."""
        return self._starts[line - 1] if line <= len(self._starts) else len(self.text)

    def logical_end(self, start: int) -> int:
        """The offset of the newline that ends the directive begun at `start`, or the end of the text."""
        at = start
        while at < len(self.text):
            if self.text[at] == "\n":
                return at
            match = _TOKEN.match(self.text, at)
            assert match is not None
            if match.lastgroup == "blank" and match[0][0] in " \t\r\f\v\n":
                at += 1  # blank by blank, to stop at the newline
            else:
                at = match.end()
        return at

    def pragma(self, line: int) -> tuple[int, int, list[Token]] | None:
        """The directive on a line: its start, its end, and its tokens after `#pragma`.

        None if there is none.
        """
        start = self.line_start(line)
        end = self.logical_end(start)
        written = scan(self.text, start, end)
        if [span.text for span in written[:2]] not in (["#", "pragma"], ["%:", "pragma"]):
            return None
        tokens = [Token(span.kind, span.text, self.place(span.start, span.end)) for span in written[2:]]
        return start, end, tokens


def joined(texts: list[str]) -> str:
    """Tokens as C text, with a blank where two would merge, and around operators as people write them."""
    out = ""
    last = ""
    for text in texts:
        tight = (
            not out or text in (")", "]", ",", "(", "[", ".", "->") or last in ("(", "[", ".", "->", "!", "~")
        )
        if text in ("(", "[") and last in ("+", "-", "*", "/", "%", ",", "<", ">", "=="):
            tight = False
        out += text if tight else " " + text
        last = text
    return out


def names_in(text: str) -> set[str]:
    """The identifiers in a text."""
    return {span.text for span in scan(text) if span.kind == "name"}
