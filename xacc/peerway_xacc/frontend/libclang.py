"""Converts libclang's answers to the form that we use for texts: names, files and offsets."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from clang import cindex

from peerway_xacc.frontend.characters import of_name, to_bytes
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.source import Range


def parsed(file: str, text: str, arguments: list[str], options: int = 0, **included: str) -> Any:
    """The translation unit of a file with this text, which need not be the one on the disk; nor need the
    `included` files, /NAME, be there.
    """
    words = [os.fsencode(argument) for argument in arguments]
    texts = {file: text, **{f"/{name}": included[name] for name in included}}
    unsaved = [(name, to_bytes(content)) for name, content in texts.items()]
    return cindex.Index.create().parse(file, args=words, unsaved_files=unsaved, options=options)


def precompile(text: str, arguments: list[str], file: Path) -> None:
    """Write a header of this text to `file`, for the option -include-pch."""
    unit = parsed("header", text, arguments, cindex.TranslationUnit.PARSE_INCOMPLETE)
    unit.save(str(file))


def spelling(thing: Any) -> str:
    """The name of a cursor or a type."""
    return of_name(thing.spelling)


def file_of(cursor: Any) -> str:
    """The name of the file that a cursor is in; empty if it is in none."""
    return str(cursor.location.file) if cursor.location.file else ""


def range_of(cursor: Any) -> Range:
    """The range that a cursor covers in its file."""
    extent = cursor.extent
    return Range(extent.start.offset, extent.end.offset)


def errors(unit: Any, file: str, name: Callable[[str], str]) -> list[tuple[Place, str]]:
    """The errors of a translation unit outside system headers. An error without a place is put into `file`.

    `name` converts libclang's name of a file to ours.
    """
    messages = []
    for diagnostic in unit.diagnostics:
        at = diagnostic.location
        if diagnostic.severity >= cindex.Diagnostic.Error and not (at.file and at.is_in_system_header):
            place = Place(name(str(at.file)) if at.file else file, at.line, at.column)
            messages.append((place, diagnostic.spelling))
    return messages
