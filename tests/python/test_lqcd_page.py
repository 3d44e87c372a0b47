"""The table of several GPUs in docs/apps/lqcd.md has the numbers of its records."""

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
