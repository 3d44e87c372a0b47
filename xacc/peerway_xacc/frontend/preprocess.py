"""Finds the active directives and expands their macros, with the C compiler's preprocessor.

`cc -E -dD` gives the directives and the #defines, both in the order in which they take effect. A second pass
over these #defines, with each token of a directive on a line of its own, gives the expansion of every token.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from peerway_common.suggestion import did_you_mean
from peerway_xacc.frontend.characters import of_bytes, of_source, to_bytes
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.pragma_operators import operators
from peerway_xacc.frontend.tokens import Text, Token, quoted, scan, spans

_MARKER = re.compile(r'# (\d+) "((?:\\.|[^"\\])*)"')
_ESCAPED = re.compile(r"\\(.)")
_RESERVED = re.compile("__|_[A-Z]")  # names that C reserves for compilers and their headers
_RENUMBERS = re.compile(r"^[ \t]*(#[ \t]*(?:line\b|\d))", re.MULTILINE)
_MODELS = ("xmp", "acc", "omp")
_PRAGMA = re.compile(rf"#pragma\s+({'|'.join(_MODELS)})\b")
_OTHER_PRAGMA = re.compile(r"#pragma\s+(\w+)")
_SYSTEM = ("/usr/", "<")  # how the names of system headers begin


class CompilerFailed(Exception):
    """The C compiler failed; the message is what it wrote to standard error."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Pragma:
    """A directive of the program. `model` is xmp, acc or omp; `tokens` follow it, with macros expanded.

    `start` and `end` are offsets in the text of `file`, from its line's first character to its newline.
    """

    model: str
    file: str
    start: int
    end: int
    place: Place
    tokens: tuple[Token, ...]


class Texts:
    """The source files read so far; each is read once."""

    def __init__(self) -> None:
        self._texts: dict[str, Text] = {}
        self._names: dict[str, str] = {}
        self._files: dict[str, str] = {}
        self._operators: dict[tuple[str, int], int] = {}  # _Pragma operators seen so far, by file and line
        self.defines: dict[str, str] = {}  # the last #define of each macro
        self.own_macros: set[str] = set()  # macros that neither a system header nor the compiler defines

    def put(self, file: str, text: str) -> None:
        """Replace the text of a file."""
        self.keep(Text(file, text))

    def keep(self, text: Text) -> None:
        """Take a text that was read already, or rewritten."""
        self._texts[text.file] = text
        self._operators = {key: count for key, count in self._operators.items() if key[0] != text.file}

    def of(self, file: str) -> Text:
        """The text of a file, which is read if it was not yet."""
        if file not in self._texts:
            self._texts[file] = Text(file, of_source(Path(file).read_bytes()))
        return self._texts[file]

    def file(self, name: str) -> str:
        """The first name seen for a file, which the C compiler and libclang may call differently."""
        if name not in self._names:
            self._names[name] = self._files.setdefault(os.path.realpath(name), name)
        return self._names[name]

    def pass_operator(self, file: str, line: int) -> int:
        """Count a _Pragma on a line, and return its number there, from 0."""
        number = self._operators.get((file, line), 0)
        self._operators[file, line] = number + 1
        return number

    def operator(self, file: str, line: int, pragma: str) -> tuple[int, int, list[Token]]:
        """Find the next _Pragma of a line: its start, its end, and its tokens.

        `pragma` is the preprocessed form.
        """
        text = self.of(file)
        ranges = operators(text, line, self.defines)
        if not ranges:
            message = "this directive is not in its line as '#pragma' or _Pragma(\"...\"); write it so"
            raise Refused(Place(file, line), message)
        # wraps around if a header is included again
        inside = ranges[self.pass_operator(file, line) % len(ranges)]
        place = text.place(inside.start, inside.end)
        return inside.start, inside.end, [Token(token.kind, token.text, place) for token in scan(pragma)[2:]]


def active(compiler: list[str], file: str, texts: Texts) -> list[Pragma]:
    """The directives of a file and of the files that it includes, in the order of the translation unit."""
    texts.file(file)
    output = _preprocessed(compiler, file, texts)
    defines: list[str] = []
    pragmas: list[tuple[str, str, int, int, list[Token]]] = []
    order: list[int | str] = []
    lines = _lines(output)
    if any(_PRAGMA.match(text) for *_, text in lines):
        _refuse_renumbered(texts.of(file))
    for written, line, text in lines:
        source = texts.file(written)
        if text.startswith(("#define ", "#undef ")):
            _remember(texts, source, text)
            if source != "<built-in>":
                defines.append(text)
                order.append(text)
        elif match := _PRAGMA.match(text):
            start, end, tokens = texts.of(source).pragma(line) or texts.operator(source, line, text)
            order.append(len(pragmas))
            pragmas.append((match[1], source, start, end, tokens))
        elif match := _OTHER_PRAGMA.match(text):
            _refuse_misspelt(match[1], source, line, texts)
            if not source.startswith(_SYSTEM) and not texts.of(source).pragma(line):
                texts.pass_operator(source, line)
    expanded = _expanded(compiler, order, [tokens for *_, tokens in pragmas])
    return [
        Pragma(model, source, start, end, tokens[0].place, tuple(expanded[number]))
        for number, (model, source, start, end, tokens) in enumerate(pragmas)
    ]


def _preprocessed(compiler: list[str], file: str, texts: Texts) -> str:
    """The preprocessor's output for a file, or for the text that was rewritten from it."""
    text = texts.of(file)
    if not text.insertions:
        return run([*compiler, "-E", "-dD", file])
    folder = str(Path(file).parent)
    renumbered = f"#line 1 {quoted(file)}\n{text.text}"
    return run([*compiler, "-E", "-dD", "-iquote", folder, "-xc", "-"], renumbered)


def _refuse_misspelt(word: str, source: str, line: int, texts: Texts) -> None:
    """Refuse a pragma that is probably a misspelt one of ours: the C compiler would silently ignore it."""
    suggestion = did_you_mean(word.lower(), _MODELS, 0.66)
    if not suggestion or word == "GCC" or source.startswith(_SYSTEM):
        return
    written = texts.of(source).pragma(line)
    place = written[2][0].place if written else Place(source, line)
    raise Refused(place, f"unknown pragma '{word}'{suggestion}")


def _refuse_renumbered(text: Text) -> None:
    """Refuse #line: we find directives by the line numbers of the preprocessor, which #line changes."""
    match = _RENUMBERS.search(text.text)
    if match:
        raise Refused(
            text.place(match.start(1), match.end(1)),
            "#line in a file with directives is not supported; take it out (of yacc and lex: option -l)",
        )


def _remember(texts: Texts, source: str, line: str) -> None:
    head, name = (span.text for span in islice(spans(line, 1), 2))
    if head == "define":
        texts.defines[name] = line
        if not source.startswith(_SYSTEM) and not _RESERVED.match(name):
            texts.own_macros.add(name)
    else:
        texts.defines.pop(name, None)
        texts.own_macros.discard(name)


def _expanded(compiler: list[str], order: list[int | str], written: list[list[Token]]) -> list[list[Token]]:
    """Expand the macros in each directive's tokens; the expanded tokens keep the place of the original."""
    lines: list[str] = []
    origin: dict[int, tuple[int, Token]] = {}
    for item in order:
        if isinstance(item, str):
            lines.append(item)
            continue
        for token in written[item][1:]:
            lines.append(token.text)
            origin[len(lines)] = (item, token)
        lines.append(f'"end of directive {item}"')  # so that no macro call continues after it
    output = run([*compiler, "-w", "-E", "-xc", "-"], "\n".join(lines) + "\n")
    expanded: list[list[Token]] = [[] for _ in written]
    for source, line, text in _lines(output):
        if source == "<stdin>" and line in origin:
            item, token = origin[line]
            expanded[item] += [Token(span.kind, span.text, token.place) for span in scan(text)]
    return expanded


def _lines(output: str) -> list[tuple[str, int, str]]:
    """The non-empty lines of a preprocessor's output, each with its file and line."""
    source = ""
    number = 0
    lines = []
    for text in output.split("\n"):
        if match := _MARKER.match(text):
            source = _file(match[2])
            number = int(match[1])
            continue
        if text:
            lines.append((source, number, text))
        number += 1
    return lines


def _file(written: str) -> str:
    """The name of a file in a line marker, as Python writes it."""
    return os.fsdecode(to_bytes(_ESCAPED.sub(lambda match: match[1], written)))


def run(command: list[str], text: str | None = None) -> str:
    """Run the preprocessor on `text` and return its output. Raises CompilerFailed."""
    done = started(command, to_bytes(text or ""))
    if done.returncode:
        raise CompilerFailed(done.stderr.decode(errors="replace"), done.returncode)
    return of_bytes(done.stdout)


def started(command: list[str], text: bytes = b"", **settings: str) -> subprocess.CompletedProcess[bytes]:
    """Run the C compiler with `text` as its standard input. Raises CompilerFailed if it cannot be started."""
    try:
        return subprocess.run(
            command, input=text, capture_output=True, check=False, env={**os.environ, **settings}
        )
    except OSError as wrong:
        message = (
            f"peerway cc: error: the C compiler '{command[0]}' cannot be run: {wrong.strerror}; install it, "
            "or name another by CC or --openacc-backend\n"
        )
        raise CompilerFailed(message, 1) from wrong
