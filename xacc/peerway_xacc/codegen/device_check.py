"""Parses a kernel's text as C++, to find at compile time what NVRTC would refuse at launch."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from clang import cindex

from peerway_xacc.codegen.device_builtins import DECLARED
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.libclang import parsed
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.installed import prefix
from peerway_xacc.lowering.unit import Unit

_LINE = re.compile(r'#line (\d+) "(.*)"')
# Extensions of C++ that clang accepts and NVRTC does not.
_EXTENSIONS = ["-Werror=vla", "-Werror=c99-extensions", "-Werror=gnu-statement-expression"]
_BUILTINS = ("__builtin_assume", "__builtin_expect", "__builtin_unreachable")
_ARGUMENTS = [
    "-xc++", "-std=c++20", "-nostdinc", "-ferror-limit=1", "-Wno-narrowing", "-Wno-everything", *_EXTENSIONS,
]  # fmt: skip


@cache
def _prelude(include: Path) -> str:
    """The text that the run-time library puts before each kernel; empty if it is not installed."""
    file = include / "peerway" / "xacc" / "prelude.cuh"
    return DECLARED + file.read_text() if file.exists() else ""


def check(unit: Unit, text: str) -> None:
    """Raise Unsupported with the first part of a kernel that is not C++ for a GPU."""
    before = _prelude(prefix() / "include")
    if not before:
        return
    whole = before + text
    for diagnostic in parsed("kernel.cu", whole, _ARGUMENTS).diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            lines = whole.split("\n")
            at, column = diagnostic.location.line, diagnostic.location.column
            raise Unsupported(_reason(diagnostic.spelling), _place(unit, lines, at, column))
    spans = scan(text)
    for first, second in pairwise(spans):
        why = ""
        if {first.text, second.text} == {"long", "double"}:
            why = "a long double, which a GPU does not have"
        elif first.text.startswith("__builtin_") and first.text not in _BUILTINS:
            why = f"{first.text}, which NVRTC does not know"
        if why:
            offset = len(before) + first.start
            line, column = whole.count("\n", 0, offset) + 1, offset - whole.rfind("\n", 0, offset)
            raise Unsupported(why, _place(unit, whole.split("\n"), line, column))


def _reason(message: str) -> str:
    if "variable length arrays" in message:
        return "the size of an array is not known when it is compiled"
    if re.match("cannot jump from (switch|this goto)", message):
        return (
            "a switch or goto jumps past a declaration with a value, which C++ forbids; put braces around "
            "the statements that use what is declared"
        )
    undeclared = re.match(r"use of undeclared identifier '(\w+)'", message)
    if undeclared:
        return f"'{undeclared[1]}' is not known in device code, nor is its text in this program"
    return f"it is not C++ for a GPU ({message})"


def _place(unit: Unit, lines: list[str], at: int, column: int) -> Place | None:
    """The place in the program that a place in a kernel comes from; None if that was generated."""
    for number in range(at - 2, -1, -1):
        match = _LINE.match(lines[number])
        if match is None:
            continue
        file, line = match[2], int(match[1]) + at - number - 2
        try:
            source = unit.texts.of(file)
            written = source.text[source.line_start(line) : source.line_start(line + 1)]
        except (OSError, IndexError):
            return None
        same = written.find(lines[at - 1].rstrip())  # the line, or its end after a loop's header
        word = re.match(r"\w+|.", lines[at - 1][column - 1 :] or " ")
        length = len(word[0]) if word else 1
        if same >= 0:
            return Place(file, line, same + column, length)
        word_match = re.search(rf"(?<!\w){re.escape(word[0])}(?!\w)", written) if word else None
        start = word_match.start() if word_match else len(written) - len(written.lstrip())
        return Place(file, line, start + 1, len(word_match[0]) if word_match else 1)
    return None
