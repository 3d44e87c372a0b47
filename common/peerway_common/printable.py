"""Makes text of unknown origin safe to print: names in records, tables, hosts and plugins may contain
anything.

Some characters become escapes as Python spells them ("\\x1b", "\\u202e", "\\ud800"): those that a terminal
would obey (escape sequences), that change the order of letters (bidi overrides), that are invisible, or that
UTF-8 does not have (lone surrogates). All other text stays as it is.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import Any

# Characters that may have to be escaped; str.isprintable decides.
_ESCAPED_IN_JSON = re.compile(r"[^\n\x20-\x7e]")


def printable(text: str, *, lines: bool = False) -> str:
    """The text on one line; with `lines` it keeps its newlines."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or (lines and c == "\n") else _escape(c) for c in text)


def shortened(text: str, most: int = 60) -> str:
    """The text made printable, and cut if it is longer than `most` characters."""
    text = printable(text[: most + 1])
    return text if len(text) <= most else text[: most - 3] + "..."


def one_line(program: str, text: str, most: int = 2000) -> str:
    """The output of a program on one line: each different line once, without the program's name before it. If
    it is very long, only its end, where the cause is.
    """
    lines = (line.strip().removeprefix(f"{program}: ") for line in text.splitlines())
    whole = printable("; ".join(dict.fromkeys(filter(None, lines))))
    return whole if len(whole) <= most else f"...{whole[3 - most :]}"


def json_text(value: Any, indent: int | None = None) -> str:
    """JSON that is safe to print and reads back as the same value. Raises TypeError, ValueError or
    RecursionError.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _ESCAPED_IN_JSON.sub(lambda c: c[0] if c[0].isprintable() else json.dumps(c[0])[1:-1], text)


def _escape(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def shell_word(path: object) -> str:
    """A path quoted for a shell, for commands in messages."""
    return shlex.quote(str(path))
