"""What else was not the same on the two sides: a comparison is about one factor, so anything more is a
warning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from peerway.compare.groups import SURROUNDINGS, Pair

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway.records import Record

_SHOWN = 4  # values of a field that a warning lists


def changes(pairs: Sequence[Pair], factor: str | None = None) -> list[str]:
    """One line for each thing that changed apart from the stated factor, and for a factor that did not
    change.
    """
    both = [pair for pair in pairs if pair.before and pair.after]
    found = {}
    for name in _names(both):
        moves = [move for pair in both if (move := _move(pair.before, pair.after, name))]
        if moves:
            found[name] = _merged(moves)
    ranks = _move(_all(pairs, "before"), _all(pairs, "after"), "ranks")
    if ranks:
        found["ranks"] = _merged([ranks])
    lines = [f"{name} changed: {text}" for name, text in found.items() if name != factor]
    if factor and _values(_all(pairs, "before"), factor) == _values(_all(pairs, "after"), factor):
        same = _listed(_values(_all(pairs, "before"), factor))
        lines.append(f"{factor} was to change, but is {same} on both sides")
    return lines + _mixtures(both, factor) + _not_validated(pairs)


def stated(pairs: Sequence[Pair], factor: str) -> str:
    """How the stated factor changed: "driver: 550.54 -> 580.65"."""
    before, after = (_listed(_values(_all(pairs, side), factor)) for side in ("before", "after"))
    return f"{factor}: {before} -> {after}"


def _names(pairs: Iterable[Pair]) -> list[str]:
    extras = {
        f"extra.{name}"
        for pair in pairs
        for record in (*pair.before, *pair.after)
        for name, value in record.extra.items()
        if isinstance(value, str | bool)  # settings; numbers in extra are mostly results
    }
    return [*SURROUNDINGS, *sorted(extras)]


def _mixtures(pairs: Iterable[Pair], factor: str | None) -> list[str]:
    """Samples of one group on one side should differ by chance only."""
    lines = []
    for name in ("host", "device", "driver", "version"):
        sides = [_values(side, name) for pair in pairs for side in (pair.before, pair.after)]
        mixed = {value for values in sides if len(values) > 1 for value in values}
        if mixed and name != factor:
            lines.append(f"one group has samples of several {name}s ({_listed(mixed)}); add --by {name}")
    return lines


def _not_validated(pairs: Iterable[Pair]) -> list[str]:
    wrong = sum(not record.validated for pair in pairs for record in (*pair.before, *pair.after))
    return [f"{wrong} records were not validated: their data was not checked or was wrong"] if wrong else []


def _move(before: Iterable[Record], after: Iterable[Record], name: str) -> tuple[str, str] | None:
    left, right = _values(before, name), _values(after, name)
    return (_listed(left), _listed(right)) if left != right else None


def _merged(moves: Sequence[tuple[str, str]]) -> str:
    different = list(dict.fromkeys(moves))
    text = "; ".join(f"{before} -> {after}" for before, after in different[:_SHOWN])
    return text + (f"; and {len(different) - _SHOWN} more" if len(different) > _SHOWN else "")


def _values(records: Iterable[Record], name: str) -> set[str]:
    def value(record: Record) -> object:
        if name.startswith("extra."):
            return record.extra.get(name.removeprefix("extra."), "")
        return getattr(record, name)

    return {str(value(record)) for record in records}


def _listed(values: Iterable[str]) -> str:
    ordered = sorted(value or "none" for value in values)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return ", ".join(ordered[:_SHOWN]) + more


def _all(pairs: Iterable[Pair], side: str) -> list[Record]:
    return [record for pair in pairs for record in getattr(pair, side)]
