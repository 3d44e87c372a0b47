"""What is generated of a Fortran file: its text with edits of statements, and a file of C beside it.

A statement that nothing edits stays as it is, line by line. An edited one is written anew, and what is
generated stands before or behind it; lines of `# number "file"` keep the compiler's line numbers the user's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from peerway_xacc.fortran.source import Form, FortranText, Logical
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.words import Word, written
from peerway_xacc.frontend.tokens import quoted

KINDS = "use, intrinsic :: iso_c_binding, only: c_int64_t"
_WIDTH = {False: 118, True: 72}


@dataclass
class Call:
    """A function of C that Fortran calls. `values` are expressions of integers, `others` pairs of how an
    argument is passed (any, kept by C, address, numbers) and its Fortran text. With `pointer` it gives an
    address.
    """

    name: str
    lines: list[str]
    values: list[str] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    pointer: bool = False
    types: list[str] = field(default_factory=list)  # instead of the kinds: declarations with {} for a number

    def c_text(self) -> str:
        """The function."""
        kinds = {
            "any": "const CFI_cdesc_t* ",
            "kept": "const CFI_cdesc_t* ",
            "address": "void* ",
            "numbers": "int64_t* ",
        }
        parameters = ["const int64_t* v", *(f"{kinds[kind]}c{n}" for n, (kind, _) in enumerate(self.others))]
        head = f"{'void*' if self.pointer else 'void'} {self.name}({', '.join(parameters)}) {{"
        return "\n".join([head, "  (void)v;", *(f"  {line}" for line in self.lines), "}"])

    def interface(self) -> list[str]:
        """Its interface, as lines of Fortran."""
        names = ["v", *(f"c{number}" for number in range(len(self.others)))]
        kinds = {
            "any": "type(*), dimension(..), contiguous :: ",
            "kept": "type(*), dimension(..), contiguous, target :: ",
            "address": "type(*) :: ",
            "numbers": "integer(c_int64_t) :: ",
        }
        arrays = {"any": "", "kept": "", "address": "(*)", "numbers": "(*)"}
        kind = "function" if self.pointer else "subroutine"
        lines = [f"{kind} {self.name}({', '.join(names)}) bind(C)"]
        kinds_named = sorted({word for text in self.types for word in re.findall(r"\bc_\w+", text)})
        more = [", c_ptr"] if self.pointer else [f", {name}" for name in kinds_named if name != "c_int64_t"]
        lines.append(KINDS + "".join(more))
        if self.pointer:
            lines.append(f"type(c_ptr) :: {self.name}")
        lines.append("integer(c_int64_t), intent(in) :: v(*)")
        if self.types:
            lines += [text.format(number) for number, text in enumerate(self.types)]
        else:
            lines += [f"{kinds[how]}c{number}{arrays[how]}" for number, (how, _) in enumerate(self.others)]
        return [*lines, f"end {kind}"]

    def text(self) -> str:
        """The call in Fortran, without the word CALL."""
        values = ", ".join(f"int({value}, 8)" for value in self.values) or "0_8"
        return f"{self.name}({', '.join([f'[{values}]', *(text for _, text in self.others)])})"


class Generated:
    """The edits of a file's statements, and the pieces of C."""

    def __init__(self, text: FortranText, logicals: list[Logical], form: Form) -> None:
        self.text = text
        self.logicals = logicals
        self.form = form
        self.top: list[str] = []  # declarations of C
        self.calls: list[Call] = []
        self.ending: list[str] = []  # C behind the functions
        self._edits: dict[int, list[tuple[int, int, str]]] = {}
        self._before: dict[int, list[str]] = {}
        self._behind: dict[int, list[str]] = {}
        self._removed: set[int] = set()
        self._wraps: dict[int, list[tuple[int, int, str, str]]] = {}
        self._splits: dict[int, tuple[int, list[str]]] = {}
        self._lists: dict[int, tuple[int, int, str]] = {}
        self.interfaces: dict[int, list[str]] = {}  # by the number of the scope
        self.declarations: dict[int, list[str]] = {}

    def edit(self, number: int, start: int, end: int, text: str) -> None:
        """Replace a range of a statement's text; the same change twice is one."""
        edits = self._edits.setdefault(number, [])
        if (start, end, text) not in edits:
            edits.append((start, end, text))

    def wrap(self, number: int, start: int, end: int, before: str, behind: str) -> None:
        """Put a range of a statement's text between two texts; ranges may be within one another."""
        self._wraps.setdefault(number, []).append((start, end, before, behind))

    def split(self, number: int, at: int, between: list[str]) -> None:
        """Make a block of a one-line IF, whose action begins at a character; statements stand before that."""
        self._splits[number] = (at, between)

    def remove(self, number: int) -> None:
        """Take a statement out."""
        self._removed.add(number)

    def drop_items(self, number: int, items: list[list[Word]], gone: set[int]) -> None:
        """Take items out of the list of a declaration, of which others stay."""
        kept = [written(self.logicals[number], item) for at, item in enumerate(items) if at not in gone]
        first = next(item for item in items if item)[0]
        last = next(item for item in reversed(items) if item)[-1]
        self._lists[number] = (first.start, last.end, ", ".join(kept))

    def first_before(self, number: int, *lines: str) -> None:
        """Statements before a statement, before those asked for earlier."""
        self._before.setdefault(number, [])[:0] = lines

    def before(self, number: int, *lines: str) -> None:
        """Statements before a statement, behind those asked for earlier."""
        self._before.setdefault(number, []).extend(lines)

    def behind(self, number: int, *lines: str) -> None:
        """Statements behind a statement, before those asked for earlier: constructs end as brackets do."""
        self._behind.setdefault(number, [])[:0] = lines

    def forget_behind(self, number: int) -> None:
        """Take back the statements behind a statement that a kernel replaces."""
        self._behind.pop(number, None)

    def next_to(self, number: int, *lines: str) -> None:
        """Statements behind a statement, behind those asked for earlier."""
        self._behind.setdefault(number, []).extend(lines)

    def call(self, scope: Scope, call: Call) -> str:
        """Add a function of C and its interface in a scope; gives the call."""
        self.calls.append(call)
        self.interfaces.setdefault(scope.number, []).extend(call.interface())
        return f"call {call.text()}" if not call.pointer else call.text()

    def declare(self, scope: Scope, *lines: str) -> None:
        """Declarations of a scope; each line once."""
        have = self.declarations.setdefault(scope.number, [])
        have.extend(line for line in lines if line not in have)

    # ---- text ----

    def fortran(self) -> str:
        """The Fortran text."""
        writer = _Writer(self.text, self.form)
        line = self.text.foreign + 1
        for numbers in self._groups():
            if self.logicals[numbers[0]].first <= self.text.foreign:
                continue
            first, last = self.logicals[numbers[0]].first, self.logicals[numbers[0]].last
            writer.keep(line, first - 1)
            for number in numbers:
                for text in self._before.get(number, []):
                    writer.put(first, text)
            if any(self._is_edited(number) for number in numbers) or (
                len(numbers) > 1 and any(self._is_touched(number) for number in numbers)
            ):
                for number in numbers:
                    if number not in self._removed:
                        self._put(writer, number)
            else:
                writer.keep(first, last)
            for number in numbers:
                for text in self._behind.get(number, []):
                    writer.put(first, text)
            line = last + 1
        writer.keep(line, len(self.text.origins))
        for text in self._before.get(len(self.logicals), []):
            writer.put(len(self.text.origins), text)
        return writer.text()

    def _groups(self) -> list[list[int]]:
        groups: list[list[int]] = []
        for number, logical in enumerate(self.logicals):
            if groups and self.logicals[groups[-1][0]].first == logical.first:
                groups[-1].append(number)
            else:
                groups.append([number])
        return groups

    def _is_touched(self, number: int) -> bool:
        return bool(self._before.get(number) or self._behind.get(number))

    def _put(self, writer: _Writer, number: int) -> None:
        logical = self.logicals[number]
        if number not in self._splits:
            writer.put(logical.first, self.edited(number), logical.label)
            return
        at, between = self._splits[number]
        writer.put(logical.first, f"{self.edited(number, 0, at)} then", logical.label)
        for text in between:
            writer.put(logical.first, text)
        writer.put(logical.first, self.edited(number, at))

    def _is_edited(self, number: int) -> bool:
        kinds = (self._edits, self._removed, self._lists, self._wraps, self._splits)
        return any(number in kind for kind in kinds)

    def edited(self, number: int, begin: int = 0, last: int | None = None) -> str:
        """A statement with its edits, or a part of it."""
        text = self.logicals[number].text[:last]
        out, at = "", begin
        lists = [self._lists[number]] if number in self._lists else []
        opened = [(start, 1, -end, before) for start, end, before, _ in self._wraps.get(number, [])]
        closed = [(end, 0, -start, behind) for start, end, _, behind in self._wraps.get(number, [])]
        edits = [(start, 2, end, new) for start, end, new in [*self._edits.get(number, []), *lists]]
        for start, kind, end, new in sorted([*opened, *closed, *edits]):
            if start < at or (last is not None and start >= last):
                continue  # within what was replaced, or in the other part
            out += text[at:start] + new
            at = max(at, end) if kind == 2 else start
        return out + text[at:]


class _Writer:
    """Writes lines, with markers where the numbering jumps."""

    def __init__(self, text: FortranText, form: Form) -> None:
        self._text = text
        self._fixed = form.fixed
        self._lines: list[str] = []
        self._next: tuple[str, int] | None = None

    def _mark(self, line: int) -> None:
        origin = self._text.origins[line - 1] if self._text.origins else (self._text.file, 1)
        if self._next != origin:
            self._lines.append(f"# {origin[1]} {quoted(origin[0])}")
        self._next = origin

    def keep(self, first: int, last: int) -> None:
        """Lines of the program as they are."""
        for line in range(first, last + 1):
            self._mark(line)
            start = self._text.line_start(line)
            self._lines.append(self._text.text[start : self._text.line_start(line + 1) - 1])
            assert self._next is not None
            self._next = (self._next[0], self._next[1] + 1)

    def put(self, line: int, statement: str, label: str = "") -> None:
        """A generated statement, as if it stood in a line of the program."""
        self._mark(line)
        for part in _fixed(statement, label) if self._fixed else _free(statement, label):
            self._lines.append(part)
        self._next = None

    def text(self) -> str:
        """All lines."""
        return "\n".join([*self._lines, ""])


def _free(statement: str, label: str) -> list[str]:
    width = _WIDTH[False]
    text = f"{label} {statement}" if label else statement
    if len(text) <= width:
        return [text]
    parts = [text[at : at + width] for at in range(0, len(text), width)]
    return [
        ("" if n == 0 else "&") + part + ("&" if n < len(parts) - 1 else "") for n, part in enumerate(parts)
    ]


def _fixed(statement: str, label: str) -> list[str]:
    room = _WIDTH[True] - 6
    parts = [statement[at : at + room] for at in range(0, len(statement), room)]
    return [f"{label:5} {parts[0]}", *(f"     &{part}" for part in parts[1:])]
