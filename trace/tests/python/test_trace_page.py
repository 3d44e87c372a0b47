"""The costs of a trace in docs/trace/index.md are those of the records."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "trace"))

from trace_cost import interval  # noqa: E402

PAGE = " ".join((ROOT / "docs" / "trace" / "index.md").read_text().split())


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "results" / "trace" / name).read_text().splitlines()]


@pytest.mark.parametrize(
    ("way", "sentence"),
    [
        ("pairs", r"(\d+) % slower: one way takes ([\d.]+) ns, and with a trace ([\d.]+) ns"),
        ("before pairs", r"two changes took ([\d.]+) ns, and with a trace ([\d.]+) ns .*?, (\d+) %"),
    ],
)
def test_the_cost_of_a_ping_pong_is_that_of_its_record(way: str, sentence: str) -> None:
    found = re.search(sentence, PAGE)
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


def bounds(values: list[float], digits: int) -> str:
    """The 95 % interval as the page writes it."""
    return "[{}, {}]".format(*(f"{end:z.{digits}f}" for end in interval(values)))


@pytest.mark.parametrize(
    ("test", "row", "digits"),
    [
        ("put", "put of 8 B, one rank", 1),
        ("pingpong", "ping-pong of 8 B with a signal, one way", 1),
        ("region", "region of C++", 1),
        ("python", "put of 8 B in Python", 0),
    ],
)
def test_the_intervals_of_the_table_are_those_of_its_record(test: str, row: str, digits: int) -> None:
    off, full = (
        [line["ns"] for line in lines("cost.9.jsonl") if (line["test"], line["way"]) == (test, way)]
        for way in ("off", "full")
    )
    more = bounds([b - a for a, b in zip(off, full, strict=True)], digits)
    assert re.search(rf"\| {re.escape(row)} \|[^\n\[]* {re.escape(more)} \|", PAGE)


def test_other_costs_are_those_of_their_records() -> None:
    for way in ("pairs", "before pairs"):
        runs = [line for line in lines("cost.8.jsonl") if line["way"] == way]
        more = [run["ns"] - run["off_ns"] for run in runs]
        assert f"with a trace {median(more):.1f} ns {bounds(more, 1)} more" in PAGE

    def puts(way: str, test: str = "put") -> list[float]:
        return [line["ns"] for line in lines("cost.4.jsonl") if (line["test"], line["way"]) == (test, way)]

    less = [off - without for off, without in zip(puts("off"), puts("without"), strict=True)]
    assert f"a put took {abs(median(less)):.1f} ns {bounds(less, 1)} less (`cost.4.jsonl`)" in PAGE
    assert f"one way took {median(puts('off', 'pingpong')):.0f} ns (`cost.4.jsonl`)" in PAGE
    runs = {(line["pair"], line["level"]): line for line in lines("hpl.jsonl")}
    count = len(runs) // 2
    lost = [100 * (1 - runs[i, "full"]["gflops"] / runs[i, "off"]["gflops"]) for i in range(count)]
    said = f"{median(lost):.1f} % of its GFLOPS {bounds(lost, 1)} in {count} pairs of runs"
    assert f"lost {said}" in PAGE
    (report,) = lines("report.jsonl")
    assert f"took {report['seconds']:.0f} s and {report['peak_MiB'] / 1024:.1f} GiB on that machine" in PAGE
    assert f"the page had {report['page_MiB']} MiB" in PAGE
    assert f"take {report['bytes_an_event']:.1f} bytes each on disk" in PAGE
