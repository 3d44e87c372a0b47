"""Converts a program's text from bytes to a Python string and back; no other file does.

libclang and the C compiler count bytes, so a text has one character for each byte: ASCII unchanged, any other
byte as its lone surrogate (Python's surrogateescape). Methods of str never take a surrogate for a blank or a
letter, and a text that contains both surrogates and file names still converts to the right bytes.
"""

from __future__ import annotations

import unicodedata

_BOM = b"\xef\xbb\xbf"


def of_bytes(data: bytes) -> str:
    """A text with one character for each byte."""
    return data.decode("ascii", "surrogateescape")


def of_source(data: bytes) -> str:
    """The text of a source file. A byte order mark becomes blanks: compilers skip it, but count its bytes."""
    return of_bytes(b"   " + data[3:] if data.startswith(_BOM) else data)


def to_bytes(text: str) -> bytes:
    """The bytes of a text, which may also contain file names and other Python strings."""
    return text.encode("utf-8", "surrogateescape")


def of_name(name: str) -> str:
    """A name from Python, such as a file name, in the form that it has in a text."""
    return name if name.isascii() else of_bytes(to_bytes(name))


def readable(text: str) -> str:
    """A text for people: bytes that are not UTF-8 become replacement characters."""
    return text if text.isascii() else to_bytes(text).decode("utf-8", "replace")


def columns(text: str) -> int:
    """The number of terminal columns that a readable text takes."""
    return sum(
        0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        for letter in text
    )
