"""Finds what else differs between the two sides. A comparison is about the factors that its user names, so
any other change is a warning.
"""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from peerway_measure.compare.groups import ENVIRONMENT, IDENTITY, Pair, factors_apart, kept_apart
from peerway_measure.compare.metric import name_of
from peerway_measure.records import FIXED, LOAD, NODE_TYPE, RUN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from peerway_measure.records import Record

_SHOWN = 4  # the most values of a field that a warning lists
_EXTRA = "extra."
# `--paths` and records may name these groups instead of their paths, such as "peer/copy".
_GROUPS_OF_PATHS = ("peer", "ucx")
_CHOSEN_BY_TIME = ("iterations",)  # not a change, unless the record says that the user fixed them
# Each measurement of a campaign has a Slurm job of its own. Of a cache state only the state counts, not its
# evidence.
_ALWAYS_OTHERS = ("slurm_job", "state_proof", "state_wanted", "fetched_by")
_BUSY = 0.2  # the difference in CPUs used by other processes that is worth a warning
_OTHERS = ("after", "before")  # for each side, before and after, the other one
_MORE_SAMPLES = 10  # how many times as many on one side are worth a warning


def changes(pairs: Sequence[Pair], factors: Sequence[str] = ()) -> list[str]:
    """A line for each change apart from the stated factors, and for each stated factor that did not
    change.
    """
    factors = [_value_of(name) for name in factors]
    both = [pair for pair in pairs if pair.before and pair.after]
    moved = {}
    for name in _names(both):
        moves = [move for pair in both if (move := _change_of(pair.before, pair.after, name))]
        if moves:
            moved[name] = _as_text(moves)
    ranks = _change_of(_all(pairs, "before"), _all(pairs, "after"), "ranks")
    if ranks:
        moved["ranks"] = _as_text([ranks])
    lines = [
        f"{name.removeprefix(_EXTRA)} changed: {text}" for name, text in moved.items() if name not in factors
    ]
    lines += unchanged(pairs, factors)
    lines += _load(both) + _samples(both, factors)
    return lines + _mixtures(both, factors) + _not_validated(pairs) + _under_names_of_groups(pairs)


def unchanged(pairs: Sequence[Pair], factors: Sequence[str]) -> list[str]:
    """One line for each stated factor that is the same on both sides."""
    lines = []
    for factor in map(_value_of, factors):
        before, after = (_values(_all(pairs, side), factor) for side in ("before", "after"))
        if before == after:
            lines.append(
                f"{factor.removeprefix(_EXTRA)} was to change, but is {listed(before)} on both sides"
            )
    return lines


def stated(pairs: Sequence[Pair], factors: Sequence[str]) -> str:
    """How the stated factors changed: "driver: 550.54 -> 580.65"."""
    ends = [
        [listed(_values(_all(pairs, side), _value_of(name))) for side in ("before", "after")]
        for name in factors
    ]
    return "; ".join(
        f"{name}: {before} -> {after}" for name, (before, after) in zip(factors, ends, strict=True)
    )


def moved_besides(pair: Pair, factors: Sequence[str]) -> list[str]:
    """What else changed between the two sides of a pair: "mount_options changed: rw -> rw,noatime"."""
    lines = []
    known = {*factors, *_ALWAYS_OTHERS, *(("state_proved",) if "state" in factors else ())}
    for name in _names([pair]):
        plain = name.removeprefix(_EXTRA)
        if plain not in known and (move := _change_of(pair.before, pair.after, name)):
            lines.append(f"{plain} changed: {move[0]} -> {move[1]}")
    return lines


def _value_of(name: str) -> str:
    """The value of a field, or the value with this name in `extra`."""
    return name if name in (*IDENTITY, *ENVIRONMENT) or name.startswith(_EXTRA) else f"{_EXTRA}{name}"


def _names(pairs: Iterable[Pair]) -> list[str]:
    extras = {
        f"{_EXTRA}{name}"
        for pair in pairs
        for record in (*pair.before, *pair.after)
        for name, value in record.extra.items()
        if isinstance(value, str | bool)  # a setting; numbers in `extra` are mostly results
        and name not in (RUN, NODE_TYPE)
    }
    return [*ENVIRONMENT, *sorted(extras)]


def _load(pairs: Sequence[Pair]) -> list[str]:
    """Warn if other processes used the machine while one side was measured, but not while the other was."""
    before, after = (_loads(_all(pairs, side)) for side in ("before", "after"))
    if not (before and after) or abs(median(before) - median(after)) <= _BUSY:
        return []
    return [
        f"load changed: other work kept {median(before):.1f} -> {median(after):.1f} CPUs busy; a difference "
        "may be its doing, so measure both sides again, in turn"
    ]


def _samples(pairs: Sequence[Pair], factors: Sequence[str]) -> list[str]:
    """Warn if records have few samples on one side and many on the other, because values from few samples are
    less certain.
    """
    if "iterations" in factors:
        return []
    counted = [(_times(*counts), pair, counts) for pair in pairs if (counts := _iterations(pair)) is not None]
    far = [entry for entry in counted if entry[0] > _MORE_SAMPLES]
    if not far:
        return []
    _, pair, (before, after) = max(far, key=lambda entry: entry[0])
    where = f"in {len(far)} of {len(pairs)} groups, most in " if len(pairs) > 1 else ""
    return [
        f"samples changed: a record is the median of {before:,.0f} -> {after:,.0f} {where}"
        f"({name_of(pair.before[0])}); one of few is less certain, so give both sides as much time"
    ]


def _times(first: float, other: float) -> float:
    return max(first, other) / max(1, min(first, other))


def _iterations(pair: Pair) -> tuple[float, float] | None:
    """The iterations of a record on each side; None if the user set them, which counts like any
    other change.
    """
    if any(record.extra.get(FIXED) for record in (*pair.before, *pair.after)):
        return None
    before, after = (median(r.iterations for r in side) for side in (pair.before, pair.after))
    return before, after


def _under_names_of_groups(pairs: Sequence[Pair]) -> list[str]:
    """Paths that one side has under their own name, and the other under the name of their group, such as
    peer.
    """
    old, new = ({str(pair.key.get("via")) for pair in pairs if not getattr(pair, side)} for side in _OTHERS)
    lines = []
    for group in _GROUPS_OF_PATHS:
        for first, paths in ((True, new if group in old else ()), (False, old if group in new else ())):
            members = sorted(via for via in paths if via.startswith(f"{group}/"))
            if members:
                two = (group, members[0]) if first else (members[0], group)
                lines.append(
                    f"{group} is the choice among all paths {group}/..., and no record of "
                    f"{' or '.join(members)}; to compare the two, write --factor via={two[0]}:{two[1]}"
                )
    return lines


def _loads(records: Iterable[Record]) -> list[float]:
    loads = (record.extra.get(LOAD) for record in records)
    return [float(load) for load in loads if isinstance(load, int | float)]


def _mixtures(pairs: Iterable[Pair], factors: Sequence[str]) -> list[str]:
    """Warn if samples of one group on one side differ by more than chance."""
    lines = []
    for name in dict.fromkeys(("host", "device", "driver", "version", *factors)):
        sides = [_values(side, name) for pair in pairs for side in (pair.before, pair.after)]
        mixed = {value for values in sides if len(values) > 1 for value in values}
        if mixed and name not in _CHOSEN_BY_TIME:
            remedy = f"give files with one {name} each" if name in factors else f"add --by {name}"
            lines.append(f"one group has samples of several values of {name} ({listed(mixed)}); {remedy}")
    return lines


def _not_validated(pairs: Iterable[Pair]) -> list[str]:
    wrong = sum(not record.validated for pair in pairs for record in (*pair.before, *pair.after))
    return [f"{wrong} records were not validated: their data was not checked or was wrong"] if wrong else []


def _change_of(before: Iterable[Record], after: Iterable[Record], name: str) -> tuple[str, str] | None:
    old, new = _values(before, name), _values(after, name)
    return (listed(old), listed(new)) if old != new else None


def _as_text(moves: Sequence[tuple[str, str]]) -> str:
    different = list(dict.fromkeys(moves))
    text = "; ".join(f"{before} -> {after}" for before, after in different[:_SHOWN])
    return text + (f"; and {len(different) - _SHOWN} more" if len(different) > _SHOWN else "")


def _values(records: Iterable[Record], name: str) -> set[str]:
    def value(record: Record) -> object:
        if name.startswith(_EXTRA):
            return record.extra.get(name.removeprefix(_EXTRA), "")
        if name in _CHOSEN_BY_TIME and not record.extra.get(FIXED):
            return "as many as fit the time"
        return getattr(record, "full_via" if name == "via" else name)

    return {str(value(record)) for record in records}


def why_apart(pairs: Sequence[Pair], rows: Sequence[str] = ()) -> str:
    """Why two sides have no group in common, and what to write to compare them nevertheless.

    `rows` are the fields for whose values the table has rows of their own anyway.
    """
    # A factor is plainer than the shape or the number of bytes that follow from it.
    for name, (old, new) in {**factors_apart(pairs), **kept_apart(pairs)}.items():
        differs = f"{name} is {listed(old)} in the one and {listed(new)} in the other"
        if name in rows:
            return differs
        by = name in pairs[0].key.names and name not in IDENTITY
        instead = f" in place of --by {name}" if by else ""
        return f"{differs}; to compare across it, write --factor {name}{instead}"
    names = list(pairs[0].key.names)
    return (
        f"{', '.join(names[:-1])} and {names[-1]} must be the same, and more than one of them is not; "
        "name those that were meant to change with --factor, one by one"
    )


def listed(values: Iterable[str]) -> str:
    """The values of a field on one line; only the first few if there are many."""
    ordered = sorted(value or "none" for value in values)
    more = f" and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else ""
    return ", ".join(ordered[:_SHOWN]) + more


def _all(pairs: Iterable[Pair], side: str) -> list[Record]:
    return [record for pair in pairs for record in getattr(pair, side)]
