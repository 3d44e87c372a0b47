"""The lines of a Fortran file, in free or fixed form, joined to statements and directives.

Each character of a statement knows its offset in the text, and each line of the text the file and line that
it came from: the preprocessor and INCLUDE bring lines of other files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from peerway_xacc.frontend.characters import of_source
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.tokens import Text

_SENTINEL = re.compile(r"!\$(xmp|acc|omp)(?=[\s&]|$)", re.IGNORECASE)
_FIXED_SENTINEL = re.compile(r"[!cC*]\$(xmp|acc|omp)(.?)", re.IGNORECASE)
_MARKER = re.compile(r'# (\d+) "((?:\\.|[^"\\])*)"')
_INCLUDE = re.compile(r"""\s*include\s*(['"])(.+?)\1\s*(?:!.*)?$""", re.IGNORECASE)
_DIRECTIVES = re.compile(r"^\s*[!cC*]\$(?:xmp|acc)\b", re.IGNORECASE | re.MULTILINE)
MODELS = ("xmp", "acc", "omp")
FIXED_SUFFIXES = (".f", ".for", ".ftn", ".f77")
FREE_SUFFIXES = (".f90", ".f95", ".f03", ".f08", ".f18")
_MOST_INCLUDED = 20


Line = tuple[str, str, int]  # its text, its file and its number there


@dataclass(frozen=True)
class Form:
    """How lines are read: `width` is the last column of fixed form that counts, 0 is all."""

    fixed: bool
    width: int = 72


def form_of(file: str, options: list[str]) -> Form:
    """The form that a file's name and the compiler's options give it; the last option counts."""
    form = Form(Path(file).suffix.lower() in FIXED_SUFFIXES)
    width = 72
    for option in options:
        if option in ("-ffree-form", "-ffixed-form"):
            form = Form(option == "-ffixed-form")
        elif match := re.fullmatch(r"-ffixed-line-length-(none|\d+)", option):
            width = 0 if match[1] == "none" else int(match[1])
    return Form(form.fixed, width)


class FortranText(Text):
    """A text whose lines come from several files."""

    def __init__(self, file: str, lines: list[Line], foreign: list[Line] | None = None) -> None:
        every = [*(foreign or []), *lines]
        super().__init__(file, "".join(f"{line}\n" for line, _, _ in every))
        self.origins = [(name, number) for _, name, number in every]
        self.foreign = len(foreign or [])  # how many lines before the file's own are of modules elsewhere

    def place(self, start: int, end: int | None = None) -> Place:
        """The place of an offset, or of the characters between two, in the file that has it."""
        place = super().place(start, end)
        if place.line > len(self.origins):
            return place
        file, line = self.origins[place.line - 1]
        return Place(file, line, place.column, place.length)


def read_lines(file: str, output: bytes | None, folders: list[str]) -> list[Line]:
    """The lines of a file, or of what the preprocessor made of it, with the included files of directives."""
    data = Path(file).read_bytes() if output is None else output
    lines = marked(file, of_source(data), output is not None)
    return list(_with_included(lines, folders, 0))


def marked(file: str, text: str, preprocessed: bool) -> Iterator[Line]:
    """The lines of a text, of which markers of the preprocessor say where they come from."""
    source, number = file, 0
    lines = text.split("\n")
    for line in lines[:-1] if lines[-1] == "" else lines:
        match = _MARKER.match(line)
        if match and preprocessed:
            source, number = re.sub(r"\\(.)", r"\1", match[2]), int(match[1]) - 1
            continue
        number += 1
        if not source.startswith("<"):
            yield line.rstrip("\r"), source, number


def _with_included(lines: Iterator[Line], folders: list[str], depth: int) -> Iterator[Line]:
    """A file that is included and has directives stands in the place of its INCLUDE line."""
    for line, source, number in lines:
        match = _INCLUDE.match(line)
        path = _included(match[2], source, folders) if match else None
        text = of_source(path.read_bytes()) if path else ""
        if path is None or not _DIRECTIVES.search(text):
            yield line, source, number
            continue
        if depth == _MOST_INCLUDED:
            raise Refused(Place(source, number), "files include one another without end")
        yield from _with_included(marked(str(path), text, False), folders, depth + 1)


def _included(name: str, source: str, folders: list[str]) -> Path | None:
    for folder in (str(Path(source).parent), *folders):
        path = Path(folder) / name
        if path.is_file():
            return path
    return None


@dataclass
class Logical:
    """A statement, or a directive of `model`: its text without comments and continuation marks.

    `offsets[n]` is where its character n stands in the text. It occupies the lines `first` to `last`, alone
    or with other statements (`;`).
    """

    text: str
    offsets: list[int]
    first: int
    last: int
    model: str = ""
    label: str = ""
    number: int = -1  # among those of the file

    @property
    def start(self) -> int:
        """The offset of its first character."""
        return self.offsets[0]


@dataclass
class _Pending:
    """A statement of which more lines may follow."""

    model: str
    first: int
    label: str = ""
    text: list[str] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    quote: str = ""

    def add(self, line: str, start: int, at: int) -> None:
        """Characters of a line that begins at an offset, from column `at` on."""
        self.text.append(line[at:])
        self.offsets.extend(range(start + at, start + len(line)))


def logical_lines(text: FortranText, form: Form) -> list[Logical]:
    """All statements and directives of a text."""
    reader: Callable[[FortranText, Form, range], Iterator[Logical]] = _fixed if form.fixed else _free
    own = range(text.foreign + 1, len(text.origins) + 1)
    logicals = [*_free(text, form, range(1, text.foreign + 1)), *reader(text, form, own)]
    return [part for logical in logicals for part in _parts(logical)]


def _cut(line: str, quote: str) -> tuple[str, str, bool]:
    """A line without its comment and its `&`; the quotation that is open at its end; and: had it the `&`?"""
    end = len(line)
    for at, letter in enumerate(line):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == "!":
            end = at
            break
    code = line[:end].rstrip()
    if not code.endswith("&"):
        return line[:end] if quote else code, "", False
    return code[:-1], quote, True


def _free(text: FortranText, _form: Form, numbers: range) -> Iterator[Logical]:
    pending: _Pending | None = None
    for number in numbers:
        start = text.line_start(number)
        line = text.text[start : text.line_start(number + 1) - 1]
        bare = line.lstrip()
        sentinel = _SENTINEL.match(bare)
        at = len(line) - len(bare)
        if pending is None:
            if not bare or bare.startswith("#") or (bare.startswith("!") and not sentinel):
                continue
            pending = _Pending(sentinel[1].lower() if sentinel else "", number)
            at += sentinel.end() if sentinel else 0
        elif pending.model:
            if not sentinel or sentinel[1].lower() != pending.model:
                yield _finished(pending, number - 1)
                pending = None
                continue
            at += sentinel.end()
            rest = line[at:].lstrip()
            at += len(line[at:]) - len(rest) + rest.startswith("&")
        elif not bare or bare.startswith(("!", "#")):
            continue
        elif bare.startswith("&"):
            at += 1
        elif pending.quote:
            at = 0
        code, quote, more = _cut(line[at:], pending.quote)
        pending.add(line[: at + len(code)], start, at)
        pending.quote = quote
        if not more:
            yield _finished(pending, number)
            pending = None
    if pending:
        yield _finished(pending, numbers[-1])


def _fixed(text: FortranText, form: Form, numbers: range) -> Iterator[Logical]:
    pending: _Pending | None = None
    last = 0
    for number in numbers:
        start = text.line_start(number)
        line = text.text[start : text.line_start(number + 1) - 1]
        sentinel = _FIXED_SENTINEL.match(line)
        model = sentinel[1].lower() if sentinel else ""
        if not line.strip() or line.startswith("#") or (line[0] in "cC*!dD" and not sentinel):
            continue
        if not sentinel and line.lstrip().startswith("!"):
            continue
        head, at = _fixed_head(line)
        continues = (sentinel[2] not in ("", " ", "0", "\t")) if sentinel else head[5:6] not in ("", " ", "0")
        if sentinel:
            at = 6
        if pending and continues and pending.model == model:
            pass
        else:
            if pending:
                yield _finished(pending, last)
            pending = _Pending(model, number, label="" if sentinel else head[:5].strip())
        whole = line[: form.width] if form.width else line
        code, _quote, more = _cut(whole[at:], pending.quote)
        if more:  # no mark of fixed form
            code = whole[at:].rstrip()
        pending.quote = _open_quote(code, pending.quote)
        if pending.quote and form.width:
            code = whole[at:]
        pending.add(line[: at + len(code)], start, at)
        last = number
    if pending:
        yield _finished(pending, last)


def _fixed_head(line: str) -> tuple[str, int]:
    """The first six columns, where a tab ends the label; and where the text begins."""
    tab = line[:6].find("\t")
    if tab < 0:
        return line[:6], 6
    if line[tab + 1 : tab + 2].isdigit() and line[tab + 1] != "0":
        return line[:tab].ljust(5) + "1", tab + 2
    return line[:tab].ljust(6), tab + 1


def _open_quote(code: str, quote: str) -> str:
    for letter in code:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
    return quote


def _finished(pending: _Pending, last: int) -> Logical:
    text = "".join(pending.text)
    return Logical(text, pending.offsets or [0], pending.first, last, pending.model, pending.label)


def _parts(logical: Logical) -> Iterator[Logical]:
    """The statements of a line between semicolons, without blanks around them; labels of free form taken."""
    ranges = [(0, len(logical.text))] if logical.model else list(_between_semicolons(logical.text))
    for start, end in ranges:
        part = logical.text[start:end]
        begin = start + len(part) - len(part.lstrip())
        part = part.strip()
        if not part:
            continue
        label = logical.label
        if not logical.model and not label and (match := re.match(r"(\d{1,5})\s+(?=\S)", part)):
            label = match[1]
            begin = begin + match.end()
            part = part[match.end() :]
        offsets = logical.offsets[begin : begin + len(part)]
        yield Logical(part, offsets, logical.first, logical.last, logical.model, label)


def _between_semicolons(text: str) -> Iterator[tuple[int, int]]:
    quote, begin = "", 0
    for at, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter == ";":
            yield begin, at
            begin = at + 1
    yield begin, len(text)
