"""Groups records that measure the same thing: they are samples of one group. A comparison pairs the groups of
two sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from peerway_measure.records import ALLOWED, factor_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway_measure.records import Record

IDENTITY = ("test", "via", "op", "shape", "bytes", "ranks", "source", "target")
ENVIRONMENT = ("host", "node_type", "device", "driver", "version", "iterations")


# Factors of `peerway storage` (storage/results.py) that its records have under the name of another field.
_IN_SHAPE = ("size", "block", "mode")
_IN_FIELD = {"size": "bytes", "streams": "ranks"}


class Key(NamedTuple):
    """The names and values that the records of one group share, in the same order for all groups."""

    names: tuple[str, ...]
    values: tuple[str | int, ...]

    def get(self, name: str) -> str | int | None:
        """The value of a field; None if the groups are not divided by it."""
        return self.values[self.names.index(name)] if name in self.names else None

    def as_dict(self) -> dict[str, str | int]:
        """The names and values as a dictionary."""
        return dict(zip(self.names, self.values, strict=True))


@dataclass(slots=True)
class Pair:
    """The samples of one group on the two sides."""

    key: Key
    before: list[Record] = field(default_factory=list)
    after: list[Record] = field(default_factory=list)


def pair_up(
    before: Iterable[Record],
    after: Iterable[Record],
    by: Sequence[str] = (),
    factors: Sequence[str] = (),
) -> list[Pair]:
    """All groups of both sides in the order of their first record.

    `by` are further fields that divide records into groups. The `factors`, which were meant to change, do not
    divide them. The "via" of a group is the `full_via` of its records, unless the paths that a route may
    choose from were meant to change.
    """
    omitted = {*factors, *(_IN_FIELD[name] for name in factors if name in _IN_FIELD)}
    names = tuple(dict.fromkeys(name for name in (*IDENTITY, *by) if name not in omitted))
    fields = ["full_via" if name == "via" and ALLOWED not in factors else name for name in names]
    pairs: dict[Key, Pair] = {}
    for side, records in (("before", before), ("after", after)):
        for record in records:
            values = [getattr(record, name) for name in fields]
            if factors and "shape" in names:
                values[names.index("shape")] = _without(record.shape, record, factors)
            key = Key(names, tuple(values))
            getattr(pairs.setdefault(key, Pair(key)), side).append(record)
    return list(pairs.values())


def _without(shape: str, record: Record, factors: Iterable[str]) -> str:
    """A record's shape without its factors: "sequential direct" of "sequential 1 MiB direct" for block."""
    shape = f" {shape} "
    for name in factors:
        value = record.extra.get(name)
        if not isinstance(value, str) or not value:
            continue
        before = " in " if name == "size" else " "
        for part in value.split("+") if name in _IN_SHAPE else ():
            shape = shape.replace(f"{before}{part} ", " ", 1)
        shape = shape.replace(f" {factor_text(name, value)} ", " ", 1)
    return shape.strip()


def kept_apart(pairs: Sequence[Pair]) -> dict[str, tuple[set[str], set[str]]]:
    """The fields because of which two sides have no group in common: without any one of these they would have
    one. With the values of both sides.
    """
    sides = [[pair.key for pair in pairs if getattr(pair, side)] for side in ("before", "after")]
    fields = {}
    for i, name in enumerate(pairs[0].key.names):
        before, after = ({key.values[:i] + key.values[i + 1 :] for key in keys} for keys in sides)
        if before & after:
            old, new = ({str(key.values[i]) for key in keys} for keys in sides)
            fields[name] = (old, new)
    return fields


def factors_apart(pairs: Sequence[Pair]) -> dict[str, tuple[set[str], set[str]]]:
    """The same for factors that are part of a record's shape, such as block in "sequential 1 MiB direct", and
    for the paths that a route may choose from. Factors with no value on both sides come first.
    """
    sides = [[(p.key, r) for p in pairs for r in getattr(p, side)] for side in ("before", "after")]
    names = [
        {name for _, r in side for name, value in r.extra.items() if isinstance(value, str)} for side in sides
    ]
    fields = {}
    for name in sorted((names[0] & names[1]) | ((names[0] | names[1]) & {ALLOWED})):
        before, after = ({_key_without(key, record, name) for key, record in side} for side in sides)
        if before & after:
            old, new = ({str(record.extra.get(name, "")) for _, record in side} for side in sides)
            fields[name] = (old, new)
    return dict(sorted(fields.items(), key=lambda item: len(item[1][0] & item[1][1])))


def _key_without(key: Key, record: Record, factor: str) -> tuple[tuple[str, str | int], ...]:
    known = key.as_dict()
    known.pop(_IN_FIELD.get(factor, ""), None)
    if "shape" in known:
        known["shape"] = _without(str(known["shape"]), record, [factor])
    if factor == ALLOWED and "via" in known:
        known["via"] = record.via
    return tuple(known.items())
