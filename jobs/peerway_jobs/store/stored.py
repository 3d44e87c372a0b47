"""What each column of the database may hold.

A row may have been written before values were checked, or been damaged since. A column with an impossible
value reads as absent and is listed as unreadable; the rest of the row counts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import asdict, dataclass
from typing import Any

from peerway_jobs.batch_check import facts_of
from peerway_jobs.store.connection import Row
from peerway_jobs.untrusted import MOST_NUMBER, BadBatch

LAST_S = 253_402_300_799  # the end of the year 9999, the last that can be written as a date
MOST_SIZE = 1e18  # of any number that is no time
LAST_MS = LAST_S * 1000


class Unreadable(ValueError):
    """A column has an impossible value."""


@dataclass(frozen=True)
class Kind:
    """What a column may hold.

    `parse` returns the content, or raises ValueError. `damaged` is the same check in SQL for the column {0},
    as far as SQL can do it. `absent` replaces a value that cannot be read.
    """

    parse: Callable[[Any], Any]
    damaged: str
    absent: Any


def stored_json(text: Any) -> Any:
    """Parse a column's JSON, without NaN and infinity, which only Python accepts. Raises Unreadable."""
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, TypeError, RecursionError):
        raise Unreadable from None


def _refuse(text: str) -> float:
    raise Unreadable(text)


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refuse(text)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise Unreadable
    return value


def _bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise Unreadable
    return value


def matching(pattern: str) -> Kind:
    """A text that matches the pattern."""
    form = re.compile(pattern, re.ASCII)

    def parse(value: Any) -> str:
        if form.fullmatch(_text(value)) is None:
            raise Unreadable
        return str(value)

    return Kind(parse, "typeof({0}) != 'text'", "")


def choice(*words: str, absent: str) -> Kind:
    """One of these words."""

    def parse(value: Any) -> str:
        if value not in words:
            raise Unreadable
        return str(value)

    listed = ", ".join(f"'{word}'" for word in words)
    return Kind(parse, f"{{0}} IS NULL OR {{0}} NOT IN ({listed})", absent)


def number(least: float, most: float, *, whole: bool = False) -> Kind:
    """A number in this range; 0 if it cannot be read."""

    def parse(value: Any) -> Any:
        if not isinstance(value, (int, float)) or not least <= value <= most:  # NaN is in no range
            raise Unreadable
        if whole and value != int(value):
            raise Unreadable
        return value

    # texts and bytes are above any number
    outside = f"({{0}} IS NULL OR {{0}} NOT BETWEEN {least!r} AND {most!r})"
    return Kind(parse, f"typeof({{0}}) != 'integer' OR {outside}" if whole else outside, 0)


def maybe(kind: Kind) -> Kind:
    """The kind, or NULL."""
    return Kind(
        lambda value: None if value is None else kind.parse(value),
        f"{{0}} IS NOT NULL AND ({kind.damaged})",
        None,
    )


def listing(item: Callable[[Any], bool]) -> Kind:
    """A JSON list of such items; empty if it cannot be read."""

    def parse(value: Any) -> list[Any]:
        content = stored_json(value)
        if not isinstance(content, list) or not all(item(each) for each in content):
            raise Unreadable
        return content

    return Kind(parse, _not_json("array"), [])


def content(parse: Callable[[Any], Any]) -> Kind:
    """A JSON object, passed to `parse`; None if it cannot be read."""
    return Kind(lambda value: parse(stored_json(value)), _not_json("object"), None)


def _not_json(kind: str) -> str:
    return f"CASE WHEN json_valid({{0}}) THEN json_type({{0}}) != '{kind}' ELSE TRUE END"


def _facts(value: Any) -> dict[str, Any]:
    try:
        return asdict(facts_of(value))
    except BadBatch:
        raise Unreadable from None


def _is_range(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and type(value[0]) is type(value[1]) is int
        and 0 <= value[0] <= value[1] < MOST_NUMBER
    )  # fmt: skip


def is_text(value: Any) -> bool:
    """Whether an item is a text."""
    return isinstance(value, str)


def is_whole(value: Any) -> bool:
    """Whether an item is a non-negative integer."""
    return type(value) is int and 0 <= value < MOST_NUMBER


TEXT = Kind(_text, "typeof({0}) != 'text'", "")
BYTES = Kind(_bytes, "typeof({0}) != 'blob'", b"")
WHOLE = number(0, MOST_NUMBER - 1, whole=True)
TIME = number(0, LAST_S)  # seconds since 1970
TIME_MS = number(0, LAST_MS, whole=True)
SIZE = number(-MOST_SIZE, MOST_SIZE)
TEXTS, WHOLES = listing(is_text), listing(is_whole)
FACTS = content(_facts)
FLAG = Kind(number(0, 1, whole=True).parse, "{0} IS NULL OR {0} NOT IN (FALSE, TRUE)", 0)

# The columns of the tables, except jobs (runs.py), verdicts (verdicts.py) and the cluster (cluster.py).
INTERVALS = {
    "node": TEXT, "id": TEXT, "job": TEXT, "step": maybe(TEXT), "slot": maybe(WHOLE), "restart": maybe(WHOLE),
    "start": TIME_MS, "end": maybe(TIME_MS), "user": maybe(TEXT), "partition": maybe(TEXT),
    "cpus": maybe(WHOLE), "cores": maybe(WHOLES), "gpus": TEXTS, "memory": maybe(WHOLE), "source": TEXT,
    "told": SIZE,
}  # fmt: skip
SEEN = {
    "node": TEXT, "kind": TEXT, "time": TIME_MS, "job": maybe(TEXT), "owner": maybe(TEXT), "gpu": maybe(TEXT),
    "count": maybe(WHOLE), "pids": WHOLES, "text": TEXT,
}  # fmt: skip
RECEIVED = {"node": TEXT, "stream": TEXT, "ranges": listing(_is_range)}
NODES = {"node": TEXT, "facts": FACTS, "told": SIZE}
CLOCKS = {"node": TEXT, "boot": TEXT, "difference": number(-LAST_MS, LAST_MS, whole=True)}
PEOPLE = {
    "name": TEXT, "password": TEXT, "role": choice("user", "admin", absent="user"), "accounts": TEXTS,
    "mail": FLAG,
}  # fmt: skip
SESSIONS = {"hash": TEXT, "name": TEXT, "ends": TIME}
TOKENS = {"hash": TEXT, "name": TEXT, "scopes": TEXT, "node": TEXT, "made": TIME, "ends": maybe(TIME)}
NOTICES = {"name": TEXT, "sent": TIME, "body": TEXT}
DELIVERIES = {"hook": TEXT, "event": TEXT, "sent": TIME, "upto": TIME, "outcome": TEXT}
ARRIVALS = {"node": TEXT, "newest": TIME_MS}
SHARED = {"name": TEXT, "since": TIME, "text": TEXT}
RULESETS = {"hash": TEXT, "since": TIME, "text": TEXT, "by": TEXT}


def readable(kinds: Mapping[str, Kind], row: Row | None) -> tuple[dict[str, Any], list[str]]:
    """The columns of a row that `kinds` names, and the names of those that cannot be read.

    Columns that the row lacks, and all columns if `row` is None, are absent.
    """
    values = {name: copy(kind.absent) for name, kind in kinds.items()}
    unreadable: list[str] = []
    if row is None:
        return values, unreadable
    for name in kinds.keys() & row.keys():
        try:
            values[name] = kinds[name].parse(row[name])
        except ValueError:
            unreadable.append(name)
    return values, sorted(unreadable)


def readable_rows(kinds: Mapping[str, Kind], rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows as far as they can be read; `unreadable` lists the columns of each that cannot."""
    return [{**values, "unreadable": names} for values, names in (readable(kinds, row) for row in rows)]


def is_damaged(kinds: Mapping[str, Kind], *names: str) -> str:
    """An SQL condition: at least one of these columns cannot be read."""
    return "(" + " OR ".join(f"({kinds[name].damaged.format(name)})" for name in names or kinds) + ")"
