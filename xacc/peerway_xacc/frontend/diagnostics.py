"""Errors of the compiler: file:line:column, the line, a caret; several a run, in the order of the text."""

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
    """Some characters of a line of a file; line and column count from 1, and columns count bytes."""

    file: str
    line: int
    column: int = 1
    length: int = 1


class Refused(Exception):
    """A directive cannot be done; the compiler goes on with the next one."""

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
    """The errors and warnings so far."""

    def __init__(self) -> None:
        self._errors: list[Refused] = []
        self._unfinished: set[str] = set()
        self._warnings: list[Refused] = []

    def error(self, place: Place, message: str) -> None:
        """Keep an error."""
        self.add(Refused(place, message))

    def add(self, refused: Refused) -> None:
        """Keep an error that ended the work on a directive: one of a place and text once, and none about a
        name that a refused directive left unfinished.
        """
        if _word(refused.place) in self._unfinished:
            return
        if not any(kept.place == refused.place and kept.message == refused.message for kept in self._errors):
            self._errors.append(refused)

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Keep an error that ends the body; what follows goes on."""
        try:
            yield
        except Refused as refused:
            self.add(refused)

    def leave_unfinished(self, names: Iterable[str]) -> None:
        """Hold back errors about these names, which a refused directive was to declare or describe."""
        self._unfinished.update(names)

    def first_in(self, file: str) -> Place | None:
        """Where the first error of a file is."""
        return min((error.place for error in self._errors if error.place.file == file), default=None)

    def warn(self, place: Place, message: str, note: tuple[Place, str] | None = None) -> None:
        """Keep what the user should know of a program that is compiled all the same."""
        if not any(kept.place == place and kept.message == message for kept in self._warnings):
            self._warnings.append(Refused(place, message, note))

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


def shown(place: Place, kind: str, message: str) -> str:
    """One message with the line it is about."""
    head = readable(f"{place.file}:{place.line}:{place.column}: {kind}: {message}\n")
    line = _line(place.file, place.line)
    if line is None:
        return head
    start = place.column - 1
    before, marked = _shown(line[:start]), _shown(line[start : start + place.length])
    margin = "".join(letter if letter == "\t" else " " * columns(letter) for letter in before)
    marks = "^" + "~" * (columns(marked) - 1)
    return f"{head}{place.line:5} | {_shown(line)}\n      | {margin}{marks}\n"


def _word(place: Place) -> str:
    line = _line(place.file, place.line) or ""
    return line[place.column - 1 : place.column - 1 + place.length]


def _line(file: str, number: int) -> str | None:
    try:
        lines = of_source(Path(file).read_bytes()).split("\n")
    except OSError:
        return None
    return lines[number - 1].rstrip("\r") if 0 < number <= len(lines) else None


def _shown(line: str) -> str:
    """A text for a terminal; what that would obey is shown as `?`."""
    return "".join(letter if letter == "\t" or letter.isprintable() else "?" for letter in readable(line))
