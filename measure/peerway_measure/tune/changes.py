"""Describes in sentences what a new route table changes compared with the previous one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from peerway_common.units import size_text

NOTICED = 0.10  # the relative change of a cost that is worth a line, if the spread is smaller


def lines(before: dict[str, Any] | None, after: dict[str, Any]) -> list[str]:
    """A line for each path that was added or removed, and for each cost that changed; the largest changes
    first.
    """
    if before is None:
        return ["There was no table before."]
    changed = sorted(_costs(before, after), reverse=True)
    lines = [*_paths(before, after), *(line for _, line in changed)]
    return lines or ["Nothing changed by more than the spread."]


def _paths(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    old, new = ({(c["pair"], c["path"]) for c in table["costs"]} for table in (before, after))
    why = {(m["pair"], m["path"]): m["why"] for m in after["unavailable"]}
    for pair, path in sorted(new - old):
        yield f"{path} is new for {pair}"
    for pair, path in sorted(old - new):
        yield f"{path} is gone for {pair}: {why.get((pair, path), 'it was not measured this time')}"


def _costs(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[float, str]]:
    old = {_key(cost): cost for cost in before["costs"]}
    for cost in after["costs"]:
        if _key(cost) not in old:
            continue
        then, now = ({point[0]: point for point in c["points"]} for c in (old[_key(cost)], cost))
        worst = max(
            ((_change(then[size], now[size]), size) for size in then.keys() & now.keys()), default=None
        )
        if worst is None:
            continue
        size = worst[1]
        if worst[0] > max(NOTICED, 2 * max(_spread(then[size]), _spread(now[size]))):
            a, b = then[size][1], now[size][1]
            faster = f"{a / b:.2g} times faster" if b < a else f"{b / a:.2g} times slower"
            name = f"{cost['op']} {cost['shape']} {cost['pair']} by {cost['path']}"
            yield worst[0], f"{name}: {size_text(size)} {a:.3g} µs, now {b:.3g} µs ({faster})"


def _key(cost: dict[str, Any]) -> tuple[str, str, str, str]:
    return cost["op"], cost["shape"], cost["pair"], cost["path"]


def _change(then: list[float], now: list[float]) -> float:
    return max(then[1], now[1]) / min(then[1], now[1]) - 1


def _spread(point: list[float]) -> float:
    """The spread of a point; 0 if it is not known."""
    return point[2] if len(point) > 2 else 0.0
