"""What docs/trace.md says of the cost of a trace, against its records."""

from __future__ import annotations

import json
import re
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = " ".join((ROOT / "docs" / "trace.md").read_text().split())


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "results" / "trace" / name).read_text().splitlines()]


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("pairs", r"(\d+) % slower: one way takes ([\d.]+) ns, and with a trace ([\d.]+) ns"),
        ("before pairs", r"two changes took ([\d.]+) ns, and with a trace ([\d.]+) ns .*?, (\d+) %"),
    ],
)
def test_the_cost_of_a_ping_pong_is_that_of_its_record(way: str, said: str) -> None:
    found = re.search(said, PAGE)
    assert found is not None
    runs = [line for line in lines("cost.8.jsonl") if line["way"] == way]
    assert len(runs) == 40
    off = median(run["off_ns"] for run in runs)
    more = median(run["ns"] - run["off_ns"] for run in runs)
    share = median(100 * run["ns"] / run["off_ns"] - 100 for run in runs)
    assert sorted(found.groups()) == sorted((f"{off:.1f}", f"{more:.1f}", f"{int(share)}"))


@pytest.mark.parametrize(
    ("test", "row", "digits"),
    [
        ("put", "put of 8 B, one rank", 1),
        ("pingpong", "ping-pong of 8 B with a signal, one way", 1),
        ("region", "region of C\\+\\+", 1),
        ("python", "put of 8 B in Python", 0),
    ],
)
def test_the_table_has_the_medians_of_its_record(test: str, row: str, digits: int) -> None:
    number = r"([\d.]+) ns"
    found = re.search(rf"\| {row} \| {number} \| {number} \| {number} \| {number} \[", PAGE)
    assert found is not None
    ns: dict[str, list[float]] = {}
    for line in lines("cost.9.jsonl"):
        if line["test"] == test:
            ns.setdefault(line["way"], []).append(line["ns"])
    more = [
        median(b - a for a, b in zip(ns["off"], ns[way], strict=True))
        for way in ("counters", "profile", "full")
    ]
    assert list(found.groups()) == [f"{one:.{digits}f}" for one in (median(ns["off"]), *more)]
