"""Parses a kernel's text as C++, to find at compile time what NVRTC would refuse at launch."""

from __future__ import annotations

import re
import tempfile
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from clang import cindex

from peerway_xacc.codegen.device_builtins import DECLARED
from peerway_xacc.codegen.device_code import Unsupported
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.libclang import parsed, precompile
from peerway_xacc.frontend.tokens import scan
from peerway_xacc.installed import prefix
from peerway_xacc.lowering.unit import Unit

_LINE = re.compile(r'#line (\d+) "(.*)"')
# Extensions of C++ that clang accepts and NVRTC does not.
_EXTENSIONS = ["-Werror=vla", "-Werror=c99-extensions", "-Werror=gnu-statement-expression"]
_BUILTINS = ("__builtin_assume", "__builtin_expect", "__builtin_unreachable")
_ARGUMENTS = [
    "-std=c++20", "-nostdinc", "-ferror-limit=1", "-Wno-narrowing", "-Wno-everything", *_EXTENSIONS,
]  # fmt: skip


class _Prelude:
    """The text that the run-time library puts before each kernel; empty if it is not installed.

    For the third kernel of a process it is precompiled, which takes as long as two kernels; from then on, a
    kernel takes less than half.
    """

    def __init__(self, include: Path) -> None:
        file = include / "peerway" / "xacc" / "prelude.cuh"
        self.text = DECLARED + file.read_text() if file.exists() else ""
        self._checked = 0
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # it is removed with this object

    def parsed(self, text: str) -> Any:
        """The translation unit of a kernel after this text."""
        self._checked += 1
        kernel = [*_ARGUMENTS, "-xc++"]
        if self._checked <= 2:
            return parsed("kernel.cu", text, [*kernel, "-include", "/prelude"], prelude=self.text)
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="peerway-cc-")
            precompile(self.text, [*_ARGUMENTS, "-xc++-header"], Path(self._folder.name) / "prelude")
        return parsed("kernel.cu", text, [*kernel, "-include-pch", f"{self._folder.name}/prelude"])


@cache
def _prelude(include: Path) -> _Prelude:
    return _Prelude(include)


def check(unit: Unit, text: str) -> None:
    """Raise Unsupported with the first part of a kernel that is not C++ for a GPU."""
    prelude = _prelude(prefix() / "include")
    if not prelude.text:
        return
    for diagnostic in prelude.parsed(text).diagnostics:
        if diagnostic.severity >= cindex.Diagnostic.Error:
            at = diagnostic.location
            inside = str(at.file) == "kernel.cu"  # not in a template of the prelude
            place = _place(unit, text.split("\n"), at.line, at.column) if inside else None
            raise Unsupported(_reason(diagnostic.spelling), place)
    spans = scan(text)
    for first, second in pairwise(spans):
        why = ""
        if {first.text, second.text} == {"long", "double"}:
            why = "a long double, which a GPU does not have"
        elif first.text.startswith("__builtin_") and first.text not in _BUILTINS:
            why = f"{first.text}, which NVRTC does not know"
        if why:
            line = text.count("\n", 0, first.start) + 1
            column = first.start - text.rfind("\n", 0, first.start)
            raise Unsupported(why, _place(unit, text.split("\n"), line, column))


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
