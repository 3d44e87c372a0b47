"""What docs/hpl.md says of Linpack beside CUDA-aware MPI is in results/hpl/h200-x4-mpi.jsonl."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RECORDS = ROOT / "results" / "hpl" / "h200-x4-mpi.jsonl"
PAGE = (ROOT / "docs" / "hpl.md").read_text()
TEXT = " ".join(PAGE.split())

Run = dict[str, Any]
RUNS: list[Run] = [json.loads(line) for line in RECORDS.read_text().splitlines()]
NAMES = {
    "hpl/peerway": "1 × 4 GPUs over Peerway",
    "hpl/mpi": "1 × 4 GPUs over Open MPI",
    "at once": "a process on each of 4 GPUs, at once, without messages",
    "hpl/self": "1 GPU",
}


def name(run: Run) -> str:
    return NAMES["at once" if "at_once" in run else run["program"]]


def of(what: str, n: int, nb: int, turn: int) -> list[float]:
    """TFLOP/s of the first or the second runs of its processes."""
    wanted = (NAMES[what], n, nb, turn)
    return [run["gflops"] / 1e3 for run in RUNS if (name(run), run["n"], run["nb"], run["run"]) == wanted]


def test_the_table_has_every_run() -> None:
    assert all(run["passed"] and run["residual"] < run["threshold"] for run in RUNS)
    table = PAGE.split("(`results/hpl/h200-x4-mpi.jsonl`)")[1].split("\n\n")[0].splitlines()[2:]
    shown = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table]
    expected = []
    for what in NAMES:
        for n, nb in {(run["n"], run["nb"]) for run in RUNS if name(run) == NAMES[what]}:
            rates = [", ".join(f"{rate:.1f}" for rate in of(what, n, nb, turn)) for turn in (0, 1)]
            expected.append([NAMES[what], f"{n:,}", f"{nb:,}", *rates])
    assert sorted(shown) == sorted(expected)


def test_against_mpi() -> None:
    ratios = [
        median(of("hpl/peerway", 65536, nb, 1)) / median(of("hpl/mpi", 65536, nb, 1)) for nb in (512, 1024)
    ]
    assert all(f"{ratio:.2f} times in second runs" in TEXT for ratio in ratios)
    second = [
        run
        for run in RUNS
        if run["program"] == "hpl/peerway" and (run["n"], run["nb"], run["run"]) == (65536, 1024, 1)
    ]
    gemm, whole = (median(run[key] for run in second) for key in ("gemm_s", "seconds"))
    assert f"DGEMM takes {gemm:.2f} of the {whole:.2f} s" in TEXT
    assert f"more than {whole / gemm:.2f} times faster" in TEXT


def test_four_at_once() -> None:
    alone, whole = of("hpl/self", 92160, 1024, 0)[0], of("hpl/peerway", 184320, 1024, 0)[0]
    together = sum(of("at once", 92160, 1024, 0))
    assert f"have {together / (4 * alone):.2f} of four times the rate of one" in TEXT
    assert f"has {whole / together:.2f} of what they have together" in TEXT
    at_once = next(run for run in RUNS if "at_once" in run)
    distributed = next(run for run in RUNS if run["n"] == 184320 and run["program"] == "hpl/peerway")
    clocks = [
        f"{min(r):,.0f} to {max(r):,.0f} MHz"
        for r in (distributed["gpu_clocks_mhz"], at_once["gpu_clocks_mhz"])
    ]
    assert f"runs at {clocks[0]}, theirs at {clocks[1]}" in TEXT
    watts = [*at_once["gpu_powers_w"], *distributed["gpu_powers_w"]]
    assert f"draw {min(watts):.0f} to {max(watts):.0f} W" in TEXT
