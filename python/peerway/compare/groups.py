"""Records that measure the same thing are samples of a group; a comparison pairs the groups of two sides."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway.records import Record

IDENTITY = ("test", "via", "op", "shape", "bytes", "ranks", "source", "target")
SURROUNDINGS = ("host", "node_type", "device", "driver", "version", "iterations")


class Key(NamedTuple):
    """What makes records samples of the same thing: names and values, in one order for all groups."""

    names: tuple[str, ...]
    values: tuple[str | int, ...]

    def get(self, name: str) -> str | int | None:
        """The value of a field, None when groups are not told apart by it."""
        return self.values[self.names.index(name)] if name in self.names else None

    def as_dict(self) -> dict[str, str | int]:
        """Names and values."""
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
    """All groups of both sides in the order of their first record. `by` tells groups apart by more fields;
    the `factors`, what was meant to change, do not tell them apart.
    """
    names = tuple(dict.fromkeys(name for name in (*IDENTITY, *by) if name not in factors))
    pairs: dict[Key, Pair] = {}
    for side, records in (("before", before), ("after", after)):
        for record in records:
            key = Key(names, tuple(getattr(record, name) for name in names))
            getattr(pairs.setdefault(key, Pair(key)), side).append(record)
    return list(pairs.values())


def kept_apart(pairs: Sequence[Pair]) -> dict[str, tuple[set[str], set[str]]]:
    """Why two sides have no group in common: the fields, each alone, without which they would have one, with
    the values of both sides.
    """
    sides = [[pair.key for pair in pairs if getattr(pair, side)] for side in ("before", "after")]
    found = {}
    for i, name in enumerate(pairs[0].key.names):
        before, after = ({key.values[:i] + key.values[i + 1 :] for key in keys} for keys in sides)
        if before & after:
            old, new = ({str(key.values[i]) for key in keys} for keys in sides)
            found[name] = (old, new)
    return found
