"""Collects the compiler's errors and prints them in the order of the text, each with its line and a caret."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from peerway_xacc.frontend.characters import columns, of_source, readable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


@dataclass(frozen=True, order=True)
class Place:
    """A range of characters in one line of a file. Line and column count from 1, and columns count bytes."""

    file: str
    line: int
    column: int = 1
    length: int = 1

    def moved(self, file: str) -> Place:
        """The same line of another file."""
        line = _line(file, self.line) or ""
        return Place(file, self.line, len(line) - len(line.lstrip()) + 1)


class Refused(Exception):
    """A directive cannot be translated; the compiler continues with the next one."""

    def __init__(self, place: Place, message: str, note: tuple[Place, str] | None = None) -> None:
        super().__init__(message)
        self.place = place
        self.message = message
        self.note = note


class HasErrors(Exception):
    """The program has errors; they are in the Diagnostics."""


def counted(number: int, noun: str) -> str:
    """`1 dimension`, `2 dimensions`, `2 indices`."""
    many = "indices" if noun == "index" else f"{noun}s"
    return f"{number} {noun if number == 1 else many}"


class Diagnostics:
    """The errors and warnings found so far."""

    def __init__(self) -> None:
        self._errors: list[Refused] = []
        self._unfinished: set[str] = set()
        self._warnings: list[Refused] = []

    def error(self, place: Place, message: str) -> None:
        """Record an error."""
        self.add(Refused(place, message))

    def add(self, refused: Refused) -> None:
        """Record an error that ended the work on a directive.

        The same error at the same place is recorded once. An error about a name that a refused directive
        would have declared is not recorded.
        """
        if _word(refused.place) in self._unfinished:
            return
        if not _is_known(self._errors, refused):
            self._errors.append(refused)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Record an error that the body raises, and continue after it."""
        try:
            yield
        except Refused as refused:
            self.add(refused)

    def leave_unfinished(self, names: Iterable[str]) -> None:
        """Suppress errors about these names, which a refused directive should have declared or described."""
        self._unfinished.update(names)

    def first_in(self, file: str) -> Place | None:
        """The place of the first error in a file, or None."""
        return min((error.place for error in self._errors if error.place.file == file), default=None)

    def warn(self, place: Place, message: str, note: tuple[Place, str] | None = None) -> None:
        """Record a warning: the program is compiled all the same."""
        refused = Refused(place, message, note)
        if not _is_known(self._warnings, refused):
            self._warnings.append(refused)

    def take(self, others: Diagnostics, file: str, source: str) -> None:
        """Take the errors and warnings about `file`, whose lines are those of `source`."""
        for mine, theirs in ((self._errors, others._errors), (self._warnings, others._warnings)):
            for refused in theirs:
                place = refused.place.moved(source) if refused.place.file == file else refused.place
                mine.append(Refused(place, refused.message))

    def __bool__(self) -> bool:
        return bool(self._errors)

    def text(self) -> str:
        """All errors and warnings as a compiler prints them."""
        messages = [("error", error) for error in self._errors] + [
            ("warning", error) for error in self._warnings
        ]
        lines = []
        for kind, refused in sorted(messages, key=lambda message: message[1].place):
            lines.append(shown(refused.place, kind, refused.message))
            if refused.note:
                lines.append(shown(refused.note[0], "note", refused.note[1]))
        return "".join(lines)


def _is_known(messages: list[Refused], refused: Refused) -> bool:
    """Is there this message already, from the same offset? The copy of a loop may be longer than the loop."""
    at = refused.place
    return any(
        (kept.place.file, kept.place.line, kept.place.column) == (at.file, at.line, at.column)
        and kept.message == refused.message
        for kept in messages
    )


def shown(place: Place, kind: str, message: str) -> str:
    """One message, with the line that it is about and a caret."""
    head = readable(f"{place.file}:{place.line}:{place.column}: {kind}: {message}\n")
    line = _line(place.file, place.line)
    if line is None:
        return head
    start = place.column - 1
    before, marked = _printable(line[:start]), _printable(line[start : start + place.length])
    margin = "".join(letter if letter == "\t" else " " * columns(letter) for letter in before)
    marks = "^" + "~" * (columns(marked) - 1)
    return f"{head}{place.line:5} | {_printable(line)}\n      | {margin}{marks}\n"


def _word(place: Place) -> str:
    line = _line(place.file, place.line) or ""
    return line[place.column - 1 : place.column - 1 + place.length]


def _line(file: str, number: int) -> str | None:
    try:
        lines = of_source(Path(file).read_bytes()).split("\n")
    except OSError:
        return None
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else None


def _printable(line: str) -> str:
    """A text for a terminal, with control characters replaced by `?`."""
    return "".join(letter if letter == "\t" or letter.isprintable() else "?" for letter in readable(line))
