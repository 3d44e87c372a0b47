"""Makes a dataclass of a TOML table: unknown, missing and mistyped settings are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

T = TypeVar("T")
# Type of a field -> what the message calls it.
_WORDS = {"str": "text", "float": "number", "int": "whole number", "tuple[str, ...]": "list of texts"}


def from_table(kind: type[T], table: Any, where: str, bad: Callable[[str], Exception]) -> T:
    """The dataclass with the values of a table; lists become tuples. `where` begins each message.

    Raises the exception that `bad` makes of a message.
    """
    known: dict[str, Field[Any]] = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    if not isinstance(table, dict):
        raise bad(f"{where} is no table")
    if unknown := sorted(set(table) - set(known)):
        raise bad(f"{where}: there is no {', '.join(unknown)}; there are {', '.join(known)}")
    needed = [name for name, each in known.items() if each.default is MISSING]
    if missing := [name for name in needed if not table.get(name)]:
        raise bad(f"{where}: {', '.join(missing)} must be set")
    values: dict[str, Any] = {}
    for name, value in table.items():
        declared = str(known[name].type)
        if not _is(declared, value):
            raise bad(f"{where}: {name} = {value!r} is no {_WORDS[declared]}")
        values[name] = tuple(value) if isinstance(value, list) else value
    return kind(**values)


def _is(declared: str, value: Any) -> bool:
    if declared == "tuple[str, ...]":
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    if isinstance(value, bool):
        return False
    if declared == "float":
        return isinstance(value, (int, float))
    return isinstance(value, int if declared == "int" else str)
