"""The figures of docs/apps/lqcd.md and docs/xacc/run-time.md are those of their records."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results"
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
    """The rows of the page's first table after these words, by the same keys."""
    page = (ROOT / "docs" / "apps" / "lqcd.md").read_text()
    lines = page.split(words)[1].split("| --- |", 1)[1].split("\n\n")[0].splitlines()[1:]
    case, found = "", {}
    for line in lines:
        first, *rest = (cell.strip() for cell in line.strip("|").split("|"))
        case = first or case
        found[case, rest[0].strip("`")] = rest
    return found


def page_text() -> str:
    return " ".join((ROOT / "docs" / "apps" / "lqcd.md").read_text().split())


def iteration(runs: list[dict[str, Any]]) -> float:
    """The microseconds of the table."""
    return float(row(runs)[3])


def test_beside_quda() -> None:
    def iteration_of(run: dict[str, Any]) -> float:
        if run["program"] == "quda":
            return float(run["iteration_us"])
        return float(run["solves_s"][-1] / (run["nconv"][-1] + 1) * 1e6)  # nconv counts from 0

    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for line in (RESULTS / "lqcd" / "quda-h200-x2.jsonl").read_text().splitlines():
        run = json.loads(line)
        runs.setdefault((f"{EDGES[run['lattice'][0]]}, {run['ranks']}", run["program"]), []).append(run)
    halo = "hop_with_halo_us"  # of QUDA on two GPUs
    hops = {key: median(run.get(halo) or run["hop_us"] for run in of_key) for key, of_key in runs.items()}
    iterations = {key: median(map(iteration_of, of_key)) for key, of_key in runs.items()}
    assert table_behind("(`results/lqcd/quda-h200-x2.jsonl`)") == {
        key: [
            f"`{key[1]}`", f"{hops[key]:.1f}{', with its halo' if halo in of_key[0] else ''}",
            f"{iterations[key]:.1f}",
        ]
        for key, of_key in runs.items()
    }  # fmt: skip

    def ratio(figures: dict[tuple[str, str], float], ranks: int) -> list[str]:
        rows = [f"{edge}, {ranks}" for edge in EDGES.values()]
        return [f"{figures[row, 'xacc'] / figures[row, 'quda']:.2f}" for row in rows]

    hop, one, two = ratio(hops, 1), ratio(iterations, 1), ratio(iterations, 2)
    assert f"takes {hop[1]} to {hop[0]} times as long as QUDA's" in page_text()
    assert f"an iteration {one[0]} times at 16⁴ and {one[1]} times at 32⁴" in page_text()
    assert f"On two GPUs an iteration takes {two[0]} and {two[1]} times as long" in page_text()
    assert all(
        run["deviation"] < 1e-15 for of_key in runs.values() for run in of_key if run["program"] == "quda"
    )


def test_one_gpu() -> None:
    runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
    found = [json.loads(line) for line in (RESULTS / "h200-x1" / "lqcd.jsonl").read_text().splitlines()]
    for one in (each for each in found if each["record"] == "lqcd"):
        runs.setdefault((f"{EDGES[one['lattice'][0]]}, {one['layout']}", one["program"]), []).append(one)

    def of(key: tuple[str, str], value: str) -> float:
        return median(run[value] for run in runs[key])

    shown = table_behind("(`results/h200-x1/lqcd.jsonl`)")
    assert set(shown) == {key for key in runs if key[1] != "openacc-mpi"}
    for key, cells in shown.items():
        small = key[0].startswith("16")
        assert cells == [
            f"`{key[1]}`",
            f"{of(key, 'hop_us'):.{1 if small else 0}f}",
            f"{of(key, 'hop_gbytes') / 1e3:.2f}",
            f"{of(key, 'algebra_us'):.{1 if small else 0}f}",
            f"{of(key, 'iteration_us'):.0f}",
            f"{of(key, 'solver_gflop'):.0f}",
        ]
    page = page_text()
    rows = ("32⁴, rows", "xacc"), ("32⁴, rows", "cuda-mpi")
    copy = of(rows[1], "copy_gbytes")
    assert f"{of(rows[0], 'hop_gbytes') / copy:.0%} of the bandwidth of a copy".replace("%", " %") in page
    assert f"of a copy ({copy / 1e3:.2f} TB/s)" in page
    cases = [f"{edge}, {layout}" for edge in EDGES.values() for layout in ("rows", "sites")]

    def against_cuda(program: str, case: str) -> float:
        return of((case, program), "hop_us") / of((case, "cuda-mpi"), "hop_us")

    less = [100 - 100 * against_cuda("xacc", case) for case in cases if case.endswith("sites")]
    words = f"{min(less):.0f} to {max(less):.0f} % faster"
    assert f"*sites* it is {words} than CUDA" in page
    assert f"{words} in the other" in " ".join((ROOT / "docs" / "xacc" / "directives.md").read_text().split())
    longer = [against_cuda("openacc-mpi", case) for case in cases]
    assert f"A hop takes {min(longer):.1f} to {max(longer):.0f} times as long as with CUDA" in page
    algebra = [of((case, "openacc-mpi"), "algebra_us") / 1e3 for case in cases]
    assert f"linear algebra takes {min(algebra):.0f} to {max(algebra):.0f} ms" in page
    for one in (each for each in found if each["record"] == "sloc"):
        assert f"| `{one['program']}` | {one['sloc']} | {one['delta']} |" in page


def test_the_first_plan_of_a_rank() -> None:
    (one,) = map(json.loads, (RESULTS / "h100-x2" / "prepare" / "prepare.jsonl").read_text().splitlines())
    first, later = one["first_ms"], median(one["later_ms"])
    assert f"took {first:.0f} ms to prepare and later ones {later:.1f} ms" in page_text()


def test_two_gpus() -> None:
    runs = of_file("h100-x2.jsonl")
    assert table_behind("(`results/lqcd/h100-x2.jsonl`)") == {
        key: row(of_case) for key, of_case in runs.items()
    }
    small, large = (
        iteration(runs[f"{edge}, 2", "xacc"]) / iteration(runs[f"{edge}, 2", "cuda-mpi"])
        for edge in ("16⁴", "32⁴")
    )
    page = page_text()
    assert f"takes {small:.2f} times as long as that of `cuda-mpi` at 16⁴, and {large:.2f} times at" in page
    less = 1 - iteration(runs["32⁴, 2", "xacc-nowait"]) / iteration(runs["32⁴, 2", "xacc"])
    assert f"an iteration takes {100 * less:.0f} % less" in page
    more = [
        (run["solves_s"][0] - run["solves_s"][1]) * 1e3
        for key, of_case in runs.items()
        if key[0].endswith(", 2") and key[1] == "xacc"
        for run in of_case
    ]
    assert f"takes {min(more):.0f} to {max(more):.0f} ms more on two GPUs" in page


def test_four_gpus() -> None:
    h100, h200 = of_file("h100-x4.jsonl"), of_file("h200-x4.jsonl")
    page = page_text()
    assert table_behind("(`results/lqcd/h100-x4.jsonl`)") == {
        key: [*row(runs), row(h200[key])[3]] for key, runs in h100.items()
    }

    def faster(runs: dict[tuple[str, str], list[dict[str, Any]]], edge: str, program: str = "xacc") -> str:
        """The comparison of the faster round of each."""
        mpi, ours = (
            min(iteration([one]) for one in runs[f"{edge}, 4", name]) for name in ("cuda-mpi", program)
        )
        return f"{mpi / ours:.2f}"

    large = [faster(runs, "32⁴", program) for runs in (h100, h200) for program in ("xacc", "xacc-nowait")]
    assert f"`xacc` is {large[0]} times as fast as `cuda-mpi`**, and {large[1]} times with `nowait`" in page
    assert f"{large[2]} and {large[3]} times on H200" in page
    assert f"it is {faster(h100, '16⁴')} times as fast** ({faster(h200, '16⁴')} times on H200)" in page
    readme = " ".join((ROOT / "README.md").read_text().split())
    both = [f"{float(faster(h100, edge)):.1f} times as fast" for edge in EDGES.values()]
    assert f"On four H100 the program with directives is {both[0]} on a lattice of 16⁴ as" in readme
    assert f"CUDA-aware MPI, and {both[1]} on 32⁴" in readme
    (mpi,) = [runs for key, runs in h100.items() if key == ("16⁴, 4", "cuda-mpi")]
    fast = min(mpi, key=lambda variant: iteration([variant]))
    alone = iteration([fast]) - 2 * fast["halo_us"]
    assert f"would be {iteration([fast]) / alone:.1f} times as fast" in page
    rounds = sorted(iteration([one]) for one in mpi)
    assert f"At 16⁴ its two rounds took {rounds[0]:.0f} and {rounds[1]:.0f} µs" in page
    slower = [
        f"{h200[case, 'openacc-mpi'][0]['iteration_us'] / iteration(h200[case, 'xacc']):.0f}"
        for case in ("16⁴, 4", "32⁴, 4")
    ]
    assert f"is {slower[0]} times slower at 16⁴ and {slower[1]} times at 32⁴" in page
    less = [
        100 * (1 - iteration(runs["32⁴, 4", "xacc-nowait"]) / iteration(runs["32⁴, 4", "xacc"]))
        for runs in (h100, h200)
    ]
    assert f"{less[0]:.0f} % shorter on H100 and {less[1]:.0f} % on H200" in page


def test_reductions_and_graphs() -> None:
    page = " ".join((ROOT / "docs" / "xacc" / "run-time.md").read_text().split())
    lines = (ROOT / "results" / "xacc" / "reduction.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert all(run["right"] for run in runs)
    one, ten = (
        median(run["p50_us"] for run in runs if run["how"] == how)
        for how in ("one by one", "ten in a sequence")
    )
    assert f"{one:.1f} µs if launched alone and {ten:.1f} µs in a sequence" in page
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
