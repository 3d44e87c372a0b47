"""The figures on matrices that fill four H200 in docs/apps/hpl.md are in results/hpl/h200-x4-large.jsonl."""

from __future__ import annotations

from hpl_page import TEXT, Run, runs_of, table_behind

ALL = runs_of("h200-x4-large.jsonl")
AT_ONCE = "a process on each of 4 GPUs, at once, without messages"


def name(run: Run) -> str:
    ranks = run["p"] * run["q"]
    return AT_ONCE if "at_once" in run else "1 GPU" if ranks == 1 else f"{run['p']} × {run['q']} GPUs"


def of(wanted: str, nb: int) -> list[Run]:
    found = [run for run in ALL if (name(run), run["nb"]) == (wanted, nb)]
    assert len(found) == (4 if wanted == AT_ONCE else 1)
    return found


def between(values: list[float], form: str) -> str:
    said = [f"{value:{form}}" for value in (min(values), max(values))]
    return said[0] if said[0] == said[1] else " to ".join(said)


def row(wanted: str, nb: int) -> list[str]:
    runs = of(wanted, nb)
    rates = ", ".join(f"{run['gflops'] / 1e3:.1f}" for run in runs)
    peak = between([100 * run["gflops"] / run["rpeak_gflops"] for run in runs], ".0f")
    gemm = between([run["gemm_gflops_rank"] / 1e3 for run in runs], ".1f")
    return [wanted, f"{runs[0]['n']:,}", f"{nb:,}", rates, f"{peak} %", gemm]


def test_the_table_has_every_run() -> None:
    kinds = {(name(run), run["nb"]) for run in ALL}
    assert table_behind("(`results/hpl/h200-x4-large.jsonl`)") == sorted(row(*kind) for kind in kinds)


def test_the_aims() -> None:
    (four,), (same,), (one,) = of("1 × 4 GPUs", 2048), of("1 GPU", 2048), of("1 GPU", 1024)
    (smaller,) = of("1 × 4 GPUs", 1024)
    of_peak, of_four = four["gflops"] / four["rpeak_gflops"], four["gflops"] / (4 * same["gflops"])
    assert of_peak > 0.7
    assert of_four > 0.96
    said = f"{100 * of_peak:.0f} % of Rpeak, and {of_four:.2f} of four times the rate of one with the same NB"
    assert f"{said} ({four['gflops'] / (4 * one['gflops']):.2f} with NB = 1,024)" in TEXT
    assert f"With NB = 1,024 they have {smaller['gflops'] / (4 * one['gflops']):.2f}" in TEXT
    assert {f"{100 * run['memory_share']:.0f} %" for run in ALL} == {"81 %"}
    assert "takes 81 % of the memory" in TEXT


def test_blocks_and_grids() -> None:
    gain = {
        wanted: of(wanted, 2048)[0]["gflops"] / of(wanted, 1024)[0]["gflops"]
        for wanted in ("1 × 4 GPUs", "1 GPU")
    }
    assert f"{gain['1 × 4 GPUs']:.2f} and {gain['1 GPU']:.2f} times" in TEXT
    (large,), (small,), (square,) = of("1 × 4 GPUs", 2048), of("1 × 4 GPUs", 1024), of("2 × 2 GPUs", 1024)
    assert f"DGEMM is {large['gemm_gflops_rank'] / small['gemm_gflops_rank']:.2f} times as fast" in TEXT
    assert f"as fast as 1 × 4**, {square['gflops'] / small['gflops']:.2f} times" in TEXT
    swaps, whole = square["phases_s"]["swap"], square["seconds"]
    assert f"{swaps:.0f} of {whole:.0f} s on a stream of their own" in TEXT
    alone = [run["gflops"] / run["gemm_gflops_rank"] for run in (*of("1 GPU", 1024), *of("1 GPU", 2048))]
    assert f"One GPU has {min(alone):.2f} of the rate of DGEMM" in TEXT
