"""The figures on traces in docs/apps/hpl.md are in the records."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TRACE = ROOT / "results" / "trace"


def lines(name: str) -> list[dict[str, float]]:
    return [json.loads(line) for line in (TRACE / name).read_text().splitlines()]


def test_a_trace_costs_no_more_than_its_events() -> None:
    page = " ".join((ROOT / "docs" / "apps" / "hpl.md").read_text().split())
    said = re.search(
        r"a run has (\d+) events, and an event costs (\d+) ns at most .*? That is ([\d.]+) µs of ([\d.]+) s, "
        r"([\d.]+) % of the time",
        page,
    )
    assert said is not None
    events, ns, us, seconds, percent = (float(number) for number in said.groups())
    runs = [line for line in lines("hpl.jsonl") if line["level"] == "full"]
    assert {run["events"] for run in runs} == {events}
    cost = lines("cost.3.jsonl")
    for test in ("put", "region"):
        full, without = (
            median(line["ns"] for line in cost if (line["test"], line["way"]) == (test, way))
            for way in ("full", "without")
        )
        assert full - without <= ns
    assert us == round(events * ns / 1e3, 1)
    order = 4000.0
    taken = (2 / 3 * order**3 + 3 / 2 * order**2) / median(run["gflops"] for run in runs) / 1e9
    assert seconds == round(taken, 2)
    assert percent == round(100 * us / 1e6 / taken, 4)


MPIS = {"openmpi-debian": "Open MPI 4.1.4", "mpich-debian": "MPICH 4.0.2"}
BYTES = [
    json.loads(line) for line in (ROOT / "results" / "hpl" / "traced-bytes.jsonl").read_text().splitlines()
]


def row(record: dict[str, Any]) -> str:
    (puts, put_bytes), (gets, get_bytes) = record["trace"]["put"], record["trace"]["get"]
    numbers = (record["ranks"], puts, put_bytes, gets, get_bytes, record["messages"])
    return " | ".join(["| " + MPIS[record["mpi"]], *(f"{number:,}" for number in numbers)]) + " |"


def test_every_byte_of_hpcc_is_in_the_trace_and_in_the_counters() -> None:
    assert [(one["mpi"], one["ranks"]) for one in BYTES] == [
        (mpi, ranks) for mpi in MPIS for ranks in (2, 4, 8)
    ]
    page = (ROOT / "docs" / "apps" / "hpl.md").read_text().splitlines()
    for one in BYTES:
        assert one["trace"] == one["counters"]
        assert one["residual"] < 16
        assert row(one) in page


def test_the_rates_of_gpus_are_those_of_the_records() -> None:
    runs = [json.loads(line) for line in (ROOT / "results" / "hpl" / "h100.jsonl").read_text().splitlines()]
    page = (ROOT / "docs" / "apps" / "hpl.md").read_text()
    table = page.split("(`results/hpl/h100.jsonl`)")[1].split("\n\n")[0].splitlines()[2:]
    kinds: dict[tuple[str, str, int, int, int], list[float]] = {}
    for run in runs:
        staged = "host memory" if "host memory" in run.get("comm", "") else ""
        kind = (run["program"], staged, run["n"], run.get("nb", 0), run.get("q", 1))
        kinds.setdefault(kind, []).append(run["gflops"] / 1e3)
    assert all(run.get("passed", True) for run in runs)
    cells = [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in table]
    wanted = [
        [f"{n:,}", f"{nb:,}" if nb else "", f"{median(rates):.1f}", ", ".join(f"{r:.1f}" for r in rates)]
        for (_, _, n, nb, _), rates in kinds.items()
        if nb != 512
    ]
    assert sorted(cells) == sorted(wanted)


def test_what_a_stream_and_a_trace_change_is_in_the_records() -> None:
    lines = (ROOT / "results" / "hpl" / "h100-streams.jsonl").read_text().splitlines()
    runs = [json.loads(line) for line in lines]
    assert all(run.get("passed", True) for run in runs)
    page = (ROOT / "docs" / "apps" / "hpl.md").read_text()
    table = page.split("(`results/hpl/h100-streams.jsonl`)")[1].split("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")][1:] for line in table]
    kinds: dict[tuple[str, str], list[list[str]]] = {}
    for run in runs:
        if run.get("q") == 2 and run["n"] == 65536:
            two = kinds.setdefault((run["program"], run["start"]), [[], []])
            two[run["run"]].append(f"{run['gflops'] / 1e3:.1f}")
    assert sorted(cells) == sorted([", ".join(first), ", ".join(second)] for first, second in kinds.values())

    def rate(program: str, n: int) -> float:
        return median(run["gflops"] / 1e3 for run in runs if (run["program"], run["n"]) == (program, n))

    one, lu = rate("hpl/self", 65536), rate("cusolver", 65536)
    assert f"{one:.1f} TFLOP/s at N = 65,536, {one / lu:.2f} times cuSOLVER's {lu:.1f}" in page
    largest, gemm, two_gpus = rate("hpl/self", 92160), rate("dgemm", 92160), rate("hpl/peerway", 131072)
    assert f"{largest:.1f} at N = 92,160, {largest / gemm:.2f} of the\n  {gemm:.1f} of one DGEMM" in page
    assert f"{two_gpus:.1f} at N = 131,072, {two_gpus / largest:.2f} times one" in page


def test_the_study_on_two_cores_is_of_its_records() -> None:
    records = ROOT / "results" / "hpl" / "cpu-2-study.jsonl"
    command = [sys.executable, ROOT / "apps" / "hpl" / "tables.py", records]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    page = (ROOT / "docs" / "apps" / "hpl.md").read_text()
    runs, scaling, _ = told.strip().split("\n\n")
    assert runs in page
    assert scaling in page
    rates: dict[tuple[str, int, int], list[float]] = {}
    for run in map(json.loads, records.read_text().splitlines()):
        rates.setdefault((run["program"], run["n"], run["q"]), []).append(run["gflops"])
    ours, theirs = (median(rates[program, 4000, 2]) for program in ("hpl/peerway", "hpcc"))
    assert f"hpl over Peerway has {ours / theirs:.2f} times the rate of HPL of hpcc on two cores" in page
