"""Bytes and characters: the one place that says how a program's text becomes a Python string and back.

libclang and the C compiler count bytes, so a text has one character a byte: ASCII as it is, each other byte
as the lone surrogate that Python's surrogateescape has for it. No method of strings takes such a character
for a blank or a letter, and a text with both these and names of files still gives the right bytes.
"""

from __future__ import annotations

import unicodedata

_BOM = b"\xef\xbb\xbf"


def of_bytes(data: bytes) -> str:
    """A text with one character a byte."""
    return data.decode("ascii", "surrogateescape")


def of_source(data: bytes) -> str:
    """The same of a source file, whose byte order mark is blanks: compilers skip it, but count its bytes."""
    return of_bytes(b"   " + data[3:] if data.startswith(_BOM) else data)


def to_bytes(text: str) -> bytes:
    """The bytes of a text, of file names and of other strings of Python in it."""
    return text.encode("utf-8", "surrogateescape")


def of_name(name: str) -> str:
    """A name as Python has it, in the form that it has in a text."""
    return name if name.isascii() else of_bytes(to_bytes(name))


def readable(text: str) -> str:
    """A text as people can read it: bytes that are not UTF-8 become replacement characters."""
    return text if text.isascii() else to_bytes(text).decode("utf-8", "replace")


def columns(text: str) -> int:
    """How many columns of a terminal a readable text takes."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
