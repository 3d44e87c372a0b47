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


def of_file(name: str) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """The runs of a file, by lattice and GPUs, and by program."""
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in (ROOT / "results" / "lqcd" / name).read_text().splitlines():
        one = json.loads(line)
        if one["record"] == "lqcd":
            case = f"{EDGES[one['lattice'][0]]}, {one['ranks']}"
            runs.setdefault((case, one["program"]), []).append(one)
    return runs


def table_behind(words: str) -> dict[tuple[str, str], list[str]]:
    """The rows of the page's first table after these words, likewise."""
    page = (ROOT / "docs" / "apps" / "lqcd.md").read_text()
    lines = page.split(words)[1].split("| --- |", 1)[1].split("\n\n")[0].splitlines()[1:]
    case, found = "", {}
    for line in lines:
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        case = first or case
        found[case, rest[0].strip("`")] = rest
    return found


def test_two_gpus() -> None:
    runs = of_file("h100-x2.jsonl")
    found = table_behind("(`results/lqcd/h100-x2.jsonl`)")
    assert found == {key: row(of_case) for key, of_case in runs.items()}


def test_four_gpus() -> None:
    h100, h200 = of_file("h100-x4.jsonl"), of_file("h200-x4.jsonl")
    page = " ".join((ROOT / "docs" / "apps" / "lqcd.md").read_text().split())
    shown = {key: runs for key, runs in h100.items() if key[1].startswith("xacc")}
    assert table_behind("## Four GPUs") == {
        key: [*row(runs), row(h200[key])[3]] for key, runs in shown.items()
    }
    us = {key: float(row(runs)[3]) for key, runs in h100.items() if key[1] != "openacc-mpi"}
    halves = [us["32⁴, 4", program] / us["32⁴, 2", program] for program in ("xacc", "xacc-nowait")]
    assert f"take {halves[0]:.2f} times as long at 32⁴**, and {halves[1]:.2f} times with" in page
    less = 1 - us["32⁴, 4", "xacc-nowait"] / us["32⁴, 4", "xacc"]
    assert f"{less:.0%} shorter".replace("%", " %") in page
    assert f"{us['16⁴, 4', 'cuda-mpi'] / 1000:.1f} ms for an iteration of `cuda-mpi`" in page
    (alone,) = h100["16⁴, 4", "openacc-mpi"]
    assert f"{alone['iteration_us'] / 1000:.0f} ms an iteration" in page


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
