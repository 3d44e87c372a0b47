"""TOML files that people write. Errors name the line and the column."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, NoReturn

from peerway_common import atomic_file

_MOST_BYTES = 1 << 20


class LocatedToml:
    """A TOML file. `values` is its content. All mistakes are raised as `error`: "name:line:column: why"."""

    def __init__(self, text: str, name: str, error: type[ValueError]) -> None:
        self.text, self.name, self._error, self._lines = text, name, error, text.splitlines()
        self.values: dict[str, Any] = {}
        try:
            self.values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as mistake:
            where = re.search(r"\(at line (\d+), column (\d+)\)", str(mistake))
            place = f"{where[1]}:{where[2]}" if where else "its end"
            raise error(f"{name}:{place}: {str(mistake).partition(' (at ')[0]}") from None

    @classmethod
    def read(cls, path: Path, error: type[ValueError]) -> LocatedToml:
        """Read a file. Raises OSError, and `error` if the file is not text or too long."""
        try:
            text = atomic_file.text(path, _MOST_BYTES)
        except ValueError as wrong:
            raise error(str(wrong)) from None
        return cls(text, str(path), error)

    def wrong(self, table: str, key: str, why: str, number: int = 0) -> NoReturn:
        """The error for a mistake at a key. `table` is "" for keys above all tables; `number` chooses one of
        several tables of that name.
        """
        line, column = self.place(table, key, number)
        raise self._error(f"{self.name}:{line}:{column}: {why}")

    def place(self, table: str, key: str, number: int = 0) -> tuple[int, int]:
        """The line and column of a key in the given one of several tables of a name. If the key has no line,
        those of the table.
        """
        inside, seen, start = table == "", -1, (1, 1)
        bare = rf"""\s*["']?{re.escape(key)}["']?\s*[=.]"""
        dotted = rf"""\s*{re.escape(table)}\s*\.{bare}"""
        for at, line in enumerate(self._lines, start=1):
            if head := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
                name = head[1].strip("\"'")
                inside = name == table
                seen += inside
                if (name == key and table == "") or (inside and seen == number):
                    start = (at, line.index("[") + 1)
            elif (inside and seen in (-1, number) and re.match(bare, line)) or (
                table and re.match(dotted, line)
            ):
                return at, len(line) - len(line.lstrip()) + 1
        return start
