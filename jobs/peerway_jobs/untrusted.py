"""Reads a JSON object from outside field by field; one wrong field refuses the whole object."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NoReturn

from peerway_common.printable import shortened

MOST_LIST = 4096  # cores, GPUs, process numbers
MOST_UNKNOWN = 16
MOST_NUMBER = 1 << 63

DEVICE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_:@+!-]|\.(?!\.)){0,127}", re.ASCII)


_DEVICES = re.compile(rf"{DEVICE.pattern}(?:\n{DEVICE.pattern})*", re.ASCII)
_SHORT = 2048  # characters of a list of names that is worth to be kept: 64 cores, or 8 GPUs


class BadBatch(ValueError):
    """The bytes are no batch; the (printable) message says which field and why."""


def _are_devices(values: list[Any]) -> bool:
    """Whether all are names of devices, checked together, as a node sends the same ones again and again."""
    if not {str}.issuperset(map(type, values)):
        return False
    lines = "\n".join(values)
    if lines.count("\n") != len(values) - 1:  # some name has a line break, or there is none
        return not values
    return _short_are_devices(lines) if len(lines) <= _SHORT else _DEVICES.fullmatch(lines) is not None


@lru_cache(8192)
def _short_are_devices(lines: str) -> bool:
    return _DEVICES.fullmatch(lines) is not None


class Part:
    """A JSON object whose fields are taken one by one; `rest` lists the fields that nobody took."""

    def __init__(self, fields: Any, where: str, unknown: list[str] | None = None) -> None:
        if not isinstance(fields, dict):
            raise BadBatch(f"{where} is not an object")
        self._fields = fields
        self.where = where
        self.unknown = [] if unknown is None else unknown

    def refuse(self, name: str, why: str) -> NoReturn:
        raise BadBatch(f"{self.where}: {name} {why}")

    def peek(self, name: str) -> Any:
        return self._fields.get(name)

    def take(self, name: str) -> Any:
        return self._fields.pop(name, None)

    def rest(self, unknown: list[str]) -> None:
        unknown.extend(shortened(f"{self.where}.{name}") for name in list(self._fields)[:MOST_UNKNOWN])

    def name(self, name: str, pattern: re.Pattern[str]) -> str:
        value = self.take(name)
        if not isinstance(value, str) or pattern.fullmatch(value) is None:
            self.refuse(name, f"may not be {shortened(repr(value))}")
        return value

    def maybe_name(self, name: str, pattern: re.Pattern[str]) -> str | None:
        return None if self.peek(name) is None else self.name(name, pattern)

    def text(self, name: str, most: int = 128) -> str:
        value = self.take(name)
        if value is None:
            return ""
        if not isinstance(value, str) or len(value) > most or not value.isprintable():
            self.refuse(name, f"is not printable text of at most {most} characters")
        return value

    def whole(self, name: str, least: int, most: int) -> int:
        value = self.take(name)
        if type(value) is not int or not least <= value <= most:
            self.refuse(
                name, f"is {shortened(repr(value), 24)}, not a whole number from {least:,} to {most:,}"
            )
        return value

    def maybe(self, name: str, least: int = 0, most: int = MOST_NUMBER - 1) -> int | None:
        return None if self.peek(name) is None else self.whole(name, least, most)

    def wholes(self, name: str, most: int) -> list[int]:
        values = self._list(name, MOST_LIST)
        for item in values:
            if type(item) is not int or not 0 <= item <= most:
                self.refuse(
                    name,
                    f"contains {shortened(repr(item), 24)}, which is not a whole number from 0 to {most:,}",
                )
        return values

    def names(self, name: str) -> list[str]:
        values = self._list(name, MOST_LIST)
        if _are_devices(values):
            return values
        for item in values:
            if not isinstance(item, str) or not DEVICE.fullmatch(item):
                self.refuse(name, f"contains {shortened(repr(item))}, which may not be a device's name")
        return values

    def parts(self, name: str, most: int, unknown: list[str]) -> list[Part]:
        return [Part(item, name, unknown) for item in self._list(name, most)]

    def _list(self, name: str, most: int) -> list[Any]:
        values = self.take(name)
        if values is None:
            return []
        if not isinstance(values, list):
            self.refuse(name, "is not a list")
        if len(values) > most:
            self.refuse(name, f"has {len(values):,} entries, allowed are {most:,}")
        return values
