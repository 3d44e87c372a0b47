"""The figures on Linpack on four H200 in docs/apps/hpl.md are in results/hpl/h200-x4.jsonl."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import median

from hpl_page import RESULTS, TEXT, Run, runs_of, table_behind

RECORDS = RESULTS / "h200-x4.jsonl"
RUNS = runs_of(RECORDS.name)
LARGE, AUTO = (184320, 1024, "1x4", "auto"), (65536, 1024, "1x4", "auto")
HOST, STREAM = (65536, 1024, "1x4", "host"), (65536, 1024, "1x4", "stream")
ONE, ONE_LARGE = (65536, 1024, "1x1", "auto"), (92160, 1024, "1x1", "auto")
STARTS = {"auto": "", "host": ", the host starts the broadcasts", "stream": ", a stream starts them"}

Kind = tuple[int, int, str, str]


def kind(run: Run) -> Kind:
    """N, NB, the grid, and the requested start of broadcasts (auto, unless the command has one).

    The record's own `start` is what the program chose.
    """
    asked = re.search(r"--start (\w+)", run["command"])
    return run["n"], run["nb"], f"{run['p']}x{run['q']}", asked[1] if asked else "auto"


def of(wanted: Kind, turn: int | None = None) -> list[Run]:
    """The runs of a kind; with `turn`, only the first or second runs of their processes."""
    found = [run for run in RUNS if kind(run) == wanted and turn in (None, run["run"])]
    assert found, f"{RECORDS.name} has no run {turn} of {wanted}"
    return found


def rate(wanted: Kind, turn: int | None = None) -> float:
    """The median of their TFLOP/s."""
    return float(median(run["gflops"] / 1e3 for run in of(wanted, turn)))


def rates(wanted: Kind, turn: int) -> str:
    found = (run["gflops"] / 1e3 for run in RUNS if (kind(run), run["run"]) == (wanted, turn))
    return ", ".join(f"{one:.1f}" for one in found)


def label(wanted: Kind) -> str:
    """The label in the first column; for a larger N with the share of memory that it takes."""
    n, _, grid, start = wanted
    gpus = "1 GPU" if grid == "1x1" else f"{grid.replace('x', ' × ')} GPUs"
    share = "" if n == 65536 else f", {100 * of(wanted)[0]['memory_share']:.0f} % of the memory"
    return gpus + share + STARTS[start]


def row(wanted: Kind) -> list[str]:
    numbers = [f"{number:,}" for number in wanted[:2]]
    return [label(wanted), *numbers, f"{rate(wanted):.1f}", rates(wanted, 0), rates(wanted, 1)]


def between(values: list[float], form: Callable[[float], str]) -> str:
    return f"{form(min(values))} to {form(max(values))}"


def test_the_table_has_every_run() -> None:
    found = table_behind("(`results/hpl/h200-x4.jsonl`)")
    assert found == sorted(row(wanted) for wanted in {kind(run) for run in RUNS})


def test_four_gpus_against_one() -> None:
    four, one = of(LARGE)[0], of(ONE_LARGE)[0]
    times = rate(AUTO, 1) / rate(ONE, 1)
    assert f"**Four GPUs have {times:.1f} times the rate of one** at N = 65,536" in TEXT
    assert f"takes {100 * of(AUTO)[0]['memory_share']:.0f} % of their memory" in TEXT
    assert round(four["memory_share"], 2) == round(one["memory_share"], 2)
    of_peak, of_four = rate(LARGE) * 1e3 / four["rpeak_gflops"], rate(LARGE) / (4 * rate(ONE_LARGE))
    alone = rate(ONE_LARGE) * 1e3 / one["rpeak_gflops"]
    assert f"they have {100 * of_peak:.0f} % of Rpeak, and {of_four:.2f} of four times the rate" in TEXT
    assert f"its memory filled, which has {100 * alone:.0f} % of Rpeak" in TEXT
    assert of_peak < 0.7, "the page says that this aim is not reached at this N"
    assert of_four < 0.96, "the page says that this aim is not reached at this N"


def test_what_four_gpus_lack() -> None:
    four, one = of(LARGE)[0], of(ONE_LARGE)[0]
    gemm, gemm_alone = (run["gemm_gflops_rank"] / 1e3 for run in (four, one))
    assert f"ran at {gemm:.1f} TFLOP/s a GPU, {gemm / gemm_alone:.2f} of the {gemm_alone:.1f} of one" in TEXT
    share, alone = rate(LARGE) / (4 * gemm), rate(ONE_LARGE) / gemm_alone
    assert f"the whole has {100 * share:.0f} % of DGEMM's rate, where one GPU has {100 * alone:.0f} %" in TEXT
    as_alone = rate(LARGE) * gemm_alone / gemm
    of_four, of_peak = as_alone / (4 * rate(ONE_LARGE)), 1e3 * as_alone / four["rpeak_gflops"]
    said = f"have {as_alone:.1f} TFLOP/s, {of_four:.2f} of four times one and {100 * of_peak:.0f} % of Rpeak"
    assert said in TEXT


def test_the_gpus_are_at_their_power_cap() -> None:
    four, one = of(LARGE)[0], of(ONE_LARGE)[0]
    watts = between(four["gpu_powers_w"], lambda value: f"{value:.0f}")
    clocks = between(four["gpu_clocks_mhz"], lambda value: f"{value:,.0f}")
    assert len(four["gpu_powers_w"]) == len(four["gpu_clocks_mhz"]) == 4
    assert f"each of the four draws {watts} W at N = 184,320, at {clocks} MHz" in TEXT
    alone = f"One alone draws {one['gpu_power_w']:.0f} W, too, but at {one['gpu_clock_mhz']:,.0f} MHz"
    assert alone in TEXT
    assert all(0.99 * 700 < watt <= 700 for watt in (*four["gpu_powers_w"], one["gpu_power_w"]))
    assert max(four["gpu_clocks_mhz"]) < one["gpu_clock_mhz"]


def test_starts_and_broadcasts() -> None:
    first, second = (100 * (rate(STREAM, turn) / rate(HOST, turn) - 1) for turn in (0, 1))
    assert f"first runs were {first:.1f} % quicker and second ones {second:.1f} %" in TEXT
    hosts = [run["gflops"] for case in (HOST, AUTO) for run in of(case, 1)]
    assert min(run["gflops"] for run in of(STREAM, 1)) < max(hosts), "within what runs differ by"
    chosen = {case: {(run["start"], run["bcast"]) for run in of(case)} for case in (AUTO, HOST, STREAM)}
    assert chosen == {AUTO: {("host", "long")}, HOST: {("host", "long")}, STREAM: {("stream", "2ring")}}


def test_blocks_and_grids() -> None:
    times = rate((65536, 512, "1x4", "auto"), 1) / rate(AUTO, 1)
    assert f"with NB = 512 the second run has {times:.2f} times the rate of NB = 1,024" in TEXT
    square = of((65536, 1024, "2x2", "auto"))[0]
    slower = rate(AUTO, 0) / (square["gflops"] / 1e3)
    assert f"{slower:.0f} times slower than 1 × 4: half of its {square['seconds']:.1f} s are panels" in TEXT
    assert 0.45 < square["phases_s"]["panel"] / square["seconds"] < 0.55


def test_only_what_the_page_tells_of_has_run() -> None:
    """The page says that MPI and one process on each GPU have no row."""
    assert {run["program"] for run in RUNS} == {"hpl/self", "hpl/peerway"}
