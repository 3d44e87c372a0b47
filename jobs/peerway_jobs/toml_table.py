"""Makes a dataclass of a TOML table: unknown, missing and mistyped settings are refused by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Any, Generic, TypeVar

from peerway_common.located_toml import LocatedToml

T = TypeVar("T")
# Type of a field -> what the message calls it.
_WORDS = {"str": "text", "float": "number", "int": "whole number", "tuple[str, ...]": "list of texts"}


@dataclass(frozen=True)
class Tables(Generic[T]):
    """A file of tables of one kind: the address of the server's pages, the tables, and all its settings."""

    page: str
    tables: tuple[T, ...]
    settings: dict[str, Any]


def read_tables(
    kind: type[T],
    file: Path,
    words: tuple[str, str],
    bad: type[ValueError],
    check: Callable[[str, T], None],
    others: tuple[str, ...] = (),
) -> Tables[T]:
    """Read and check a file with `page`, `others` and tables, each with a name of its own.

    `words` name a table and several ("policy", "policies"); `check` gets what begins each message, and a
    table. Raises `bad`, OSError.
    """
    word, several = words
    content = LocatedToml.read(file, bad).values
    if unknown := sorted(set(content) - {"page", *others, word}):
        known = ", ".join(["page", *others])
        raise bad(f"{file}: there is no {', '.join(unknown)}; there are {known} and [[{word}]]")
    page = content.get("page")
    if not isinstance(page, str) or not page.startswith(("https://", "http://")):
        raise bad(f"{file}: page = {page!r} is not the address of the pages of jobs")
    listed = content.get(word)
    if not isinstance(listed, list) or not listed:
        raise bad(f"{file}: there is no [[{word}]]")
    tables: list[T] = []
    names: list[str] = []
    for table in listed:
        names.append(table.get("name", "") if isinstance(table, dict) else "")
        where = f"{file}: {word} {names[-1]!r}"
        tables.append(from_table(kind, table, where, bad))
        check(where, tables[-1])
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise bad(f"{file}: two {several} have the name {', '.join(twice)}")
    return Tables(page.rstrip("/"), tuple(tables), content)


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
