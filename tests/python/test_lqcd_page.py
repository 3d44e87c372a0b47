"""The figures of several GPUs in docs/apps/lqcd.md and docs/xacc-runtime.md are those of their records."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
EDGES = {16: "16⁴", 32: "32⁴"}


def row(runs: list[dict[str, Any]]) -> list[str]:
    def of(value: Any) -> float:
        return median(value(run) for run in runs)

    return [
        f"`{runs[0]['program']}`",
        f"{of(lambda run: run['hop_us']):.1f}",
        f"{of(lambda run: run['algebra_us']):.0f}",
        f"{of(lambda run: run['solves_s'][1] / run['nconv'][1] * 1e6):.1f}",
        f"{of(lambda run: run['solves_s'][0] * 1e3):.1f}",
    ]


def test_two_gpus() -> None:
    lines = (ROOT / "results" / "lqcd" / "h100-x2.jsonl").read_text().splitlines()
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for one in map(json.loads, lines):
        if one["record"] == "lqcd":
            case = f"{EDGES[one['lattice'][0]]}, {one['ranks']}"
            runs.setdefault((case, one["program"]), []).append(one)
    page = (ROOT / "docs" / "apps" / "lqcd.md").read_text()
    table = page.split("(`results/lqcd/h100-x2.jsonl`)")[1].split("\n\n")[1].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in table]
    case, found = "", {}
    for first, *rest in cells:
        case = first or case
        found[case, rest[0].strip("`")] = rest
    assert found == {key: row(of_case) for key, of_case in runs.items()}


def test_reductions_and_graphs() -> None:
    page = (ROOT / "docs" / "xacc-runtime.md").read_text()
    lines = (ROOT / "results" / "xacc" / "reduction.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert all(run["right"] for run in runs)
    one, ten = (
        median(run["p50_us"] for run in runs if run["how"] == how)
        for how in ("one by one", "ten in a sequence")
    )
    assert f"{one:.1f} µs one by\none and {ten:.1f} µs in a sequence" in page
    lines = (ROOT / "results" / "xacc" / "graphs.jsonl").read_text().splitlines()
    for ranks, ends in ((2, "µs with graphs and {:.1f} µs without"), (1, "and {:.1f} µs (")):
        with_graphs, plain = (
            median(
                us
                for run in map(json.loads, lines)
                if (run["ranks"], run["what"]) == (ranks, what)
                for us in run["iteration_us"][1:]
            )
            for what in ("graphs", "plain")
        )
        assert f"{with_graphs:.1f} {ends.format(plain)}" in page


def test_nowait_on_two_gpus() -> None:
    page = (ROOT / "docs" / "apps" / "lqcd.md").read_text()
    found: dict[tuple[int, str], list[float]] = {}
    for line in (ROOT / "results" / "lqcd" / "h100-x2-graphs.jsonl").read_text().splitlines():
        one = json.loads(line)
        if one["record"] == "lqcd" and one["ranks"] == 2:
            solve = one["solves_s"][1] / one["nconv"][1] * 1e6
            found.setdefault((one["lattice"][0], one["program"]), []).append(solve)
    us = {case: f"{median(times):.0f}" for case, times in found.items()}
    assert (
        f"at 32⁴ an iteration takes {us[32, 'xacc']} µs, and {us[32, 'xacc-nowait']} µs with `nowait`" in page
    )
    assert f"at 16⁴ {us[16, 'xacc']} and\n  {us[16, 'xacc-nowait']} µs" in page
