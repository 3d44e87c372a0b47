"""The figures on Linpack with CUDA-aware MPI in docs/apps/hpl.md are in results/hpl/h200-x4-mpi.jsonl."""

from __future__ import annotations

from statistics import median

from hpl_page import TEXT, Run, Runs, runs_of, table_behind

ALL = runs_of("h200-x4-mpi.jsonl")
PEERWAY, MPI, ONE = "1 × 4 GPUs over Peerway", "1 × 4 GPUs over Open MPI", "1 GPU"
AT_ONCE = "a process on each of 4 GPUs, at once, without messages"
NAMES = {"hpl/peerway": PEERWAY, "hpl/mpi": MPI, "hpl/self": ONE}


def name(run: Run) -> str:
    return AT_ONCE if "at_once" in run else NAMES[run["program"]]


RUNS = Runs(ALL, name)


def test_the_table_has_every_run() -> None:
    assert table_behind("(`results/hpl/h200-x4-mpi.jsonl`)") == RUNS.rows()


def test_against_mpi() -> None:
    ratios = [
        median(RUNS.of(PEERWAY, 65536, nb, 1)) / median(RUNS.of(MPI, 65536, nb, 1)) for nb in (512, 1024)
    ]
    assert all(f"{ratio:.2f} times in second runs" in TEXT for ratio in ratios)
    second = [run for run in ALL if (name(run), run["n"], run["nb"], run["run"]) == (PEERWAY, 65536, 1024, 1)]
    gemm, whole = (median(run[key] for run in second) for key in ("gemm_s", "seconds"))
    assert f"DGEMM takes {gemm:.2f} of the {whole:.2f} s" in TEXT
    assert f"more than {whole / gemm:.2f} times faster" in TEXT


def test_four_at_once() -> None:
    (alone,), (whole,) = RUNS.of(ONE, 92160, 1024, 0), RUNS.of(PEERWAY, 184320, 1024, 0)
    together = sum(RUNS.of(AT_ONCE, 92160, 1024, 0))
    assert f"have {together / (4 * alone):.2f} of four times the rate of one" in TEXT
    assert f"has {whole / together:.2f} of what they have together" in TEXT
    at_once = next(run for run in ALL if name(run) == AT_ONCE)
    distributed = next(run for run in ALL if run["n"] == 184320 and name(run) == PEERWAY)
    clocks = [
        f"{min(run['gpu_clocks_mhz']):,.0f} to {max(run['gpu_clocks_mhz']):,.0f} MHz"
        for run in (distributed, at_once)
    ]
    assert f"runs at {clocks[0]}, theirs at {clocks[1]}" in TEXT
    watts = [*at_once["gpu_powers_w"], *distributed["gpu_powers_w"]]
    assert f"draw {min(watts):.0f} to {max(watts):.0f} W" in TEXT
