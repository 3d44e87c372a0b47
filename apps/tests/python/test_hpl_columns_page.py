"""The figures on process columns of several GPUs in docs/apps/hpl.md are in
results/hpl/h100-columns.jsonl.
"""

from __future__ import annotations

from statistics import median

from hpl_page import TEXT, Run, Runs, runs_of, table_behind

ALL = runs_of("h100-columns.jsonl")
SMALL = 10_000  # rows; only to check that they pass
BY_MPI = "2 × 1 over Open MPI, panels by CPUs"


def name(run: Run) -> str:
    by_mpi = BY_MPI.removeprefix("2 × 1") if run["program"] == "hpl/mpi" else ""
    return f"{run['p']} × {run['q']}{by_mpi}"


RUNS = Runs(ALL, name)


def test_the_table_has_every_run() -> None:
    assert all((run["panels"] == "GPUs") == (run["program"] != "hpl/mpi") for run in ALL)
    assert table_behind("(`results/hpl/h100-columns.jsonl`)") == RUNS.rows(least_n=SMALL)


def test_what_is_said_of_it() -> None:
    square, row = (median(RUNS.of(grid, 65536, 1024, 1)) for grid in ("2 × 2", "1 × 4"))
    assert f"have {square / row:.2f} of the rate of 1 × 4" in TEXT
    (older,) = [run for run in runs_of("h200-x4.jsonl") if run["p"] == 2]
    assert f"{square / (older['gflops'] / 1e3):.0f} times what the older program had" in TEXT
    (ours, *_), (theirs,) = RUNS.of("2 × 1", 32768, 512, 0), RUNS.of(BY_MPI, 32768, 512, 0)
    assert f"have {ours / theirs:.1f} times the rate, first run against first run" in TEXT
    small = {(run["n"], name(run), "--depth 0" in run["command"]) for run in ALL if run["n"] <= SMALL}
    assert small == {(6000, "2 × 1", False), (5000, "2 × 1", True), (6000, "2 × 2", False)}
    assert f"the compilation of its kernels, {ALL[0]['seconds']:.0f} s here" in TEXT
