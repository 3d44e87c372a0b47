"""What docs/hpl.md says of process columns of several GPUs is in results/hpl/h100-columns.jsonl."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "hpl.md").read_text()
TEXT = " ".join(PAGE.split())
LINES = (ROOT / "results" / "hpl" / "h100-columns.jsonl").read_text().splitlines()
RUNS: list[dict[str, Any]] = [json.loads(line) for line in LINES]
SMALL = 10_000  # rows; only to see that they pass


def name(run: dict[str, Any]) -> str:
    by_mpi = " over Open MPI, panels by CPUs" if run["program"] == "hpl/mpi" else ""
    return f"{run['p']} × {run['q']}{by_mpi}"


def of(what: str, n: int, nb: int, turn: int) -> list[float]:
    """TFLOP/s of the first or the second runs of its processes."""
    wanted = (what, n, nb, turn)
    return [run["gflops"] / 1e3 for run in RUNS if (name(run), run["n"], run["nb"], run["run"]) == wanted]


def test_the_table_has_every_run() -> None:
    assert all(run["passed"] and run["residual"] < run["threshold"] for run in RUNS)
    assert all((run["panels"] == "GPUs") == (run["program"] != "hpl/mpi") for run in RUNS)
    section = PAGE.split("(`results/hpl/h100-columns.jsonl`)")[1]
    table = section.split("| --- |", 1)[1].split("\n\n")[0].splitlines()[1:]
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    cases = {(name(run), run["n"], run["nb"]) for run in RUNS if run["n"] > SMALL}
    expected = [
        [
            what,
            f"{n:,}",
            f"{nb:,}",
            *(", ".join(f"{rate:.1f}" for rate in of(what, n, nb, turn)) for turn in (0, 1)),
        ]
        for what, n, nb in cases
    ]
    assert sorted(shown) == sorted(expected)


def test_what_is_said_of_it() -> None:
    square, row = (median(of(what, 65536, 1024, 1)) for what in ("2 × 2", "1 × 4"))
    assert f"have {square / row:.2f} of the rate of 1 × 4" in TEXT
    older = [
        json.loads(line)
        for line in (ROOT / "results" / "hpl" / "h200-x4.jsonl").read_text().splitlines()
        if '"p": 2' in line
    ]
    assert f"{square / (older[0]['gflops'] / 1e3):.0f} times what the older program had" in TEXT
    ours = of("2 × 1", 32768, 512, 0)[0]
    theirs = of("2 × 1 over Open MPI, panels by CPUs", 32768, 512, 0)[0]
    assert f"have {ours / theirs:.1f} times the rate, first run against first run" in TEXT
    small = {(run["n"], name(run), "--depth 0" in run["command"]) for run in RUNS if run["n"] <= SMALL}
    assert small == {(6000, "2 × 1", False), (5000, "2 × 1", True), (6000, "2 × 2", False)}
    assert f"the compilation of its kernels, {RUNS[0]['seconds']:.0f} s here" in TEXT
