"""Figures that stand alone in pages without a test of their own are those of their records."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from peerway_measure import records

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20


def page(name: str) -> str:
    """Its text on one line."""
    return " ".join((ROOT / name).read_text().split())


def lines(name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (ROOT / "results" / name).read_text().splitlines()]


def row(cells: Sequence[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def test_architecture_a_late_peer() -> None:
    def blocks(library: str) -> list[float]:
        return [
            line["blocks_us"]
            for line in lines("late-peer/h200-x2.jsonl")
            if (line["library"], line["rank"]) == (library, 1)
        ]

    old, new = blocks("every warp polls host memory"), blocks("one wait polls host memory for all")
    times = f"{min(old):.0f} to {max(old):.0f} µs a round trip of 128 KiB when one rank began late"
    assert f"{times}, {median(new):.0f} µs since" in page("docs/architecture.md")


def test_gpu_host_ranks_that_share_a_gpu() -> None:
    def of(file: str, test: str, via: str, size: int) -> float:
        (median,) = (
            record.p50_us
            for record in records.read(ROOT / "results" / "h200-x1" / f"{file}.jsonl")
            if (record.test, record.via, record.bytes) == (test, via, size)
            and record.shape in ("contiguous", "cube:16/i")
        )
        return median

    files, text = ("time-sliced", "mps"), page("docs/gpu-host.md")

    def digits(us: float) -> str:
        return f"{us:.1f}" if us < 20 else f"{float(f'{us:.3g}'):.0f}"

    for name, test, pairs in (
        ("put of 8 B, 1 MiB by the GPU (`peer/store`), µs", "put_latency",
         [("peer/store", 8), ("peer/store", MIB)]),
        ("put of 64 KiB, 1 MiB through the host (`staged`), µs", "put_latency",
         [("staged", 65536), ("staged", MIB)]),
        ("exchange of a face of 2 KiB by a plan on a stream, in a graph, µs", "cube",
         [("plan/stream", 2048), ("plan/graph", 2048)]),
    ):  # fmt: skip
        cells = [", ".join(digits(of(file, test, *pair)) for pair in pairs) for file in files]
        assert row([name, *cells]) in text


def test_mpi_over_nics_two_kinds_of_windows() -> None:
    runs = json.loads((ROOT / "results" / "mpi-suite" / "windows-latency.json").read_text())["runs"]

    def of(osc: str, test: str, size: int) -> float:
        return median(
            run["p50_us"]
            for run in runs
            if run["osc"].startswith(osc) and (run["test"], run["bytes"]) == (test, size)
        )

    put = [of(osc, "mpi_put", 8) for osc in ("ucx", "rdma")]
    get = [of(osc, "mpi_get", 65536) for osc in ("ucx", "rdma")]
    text = page("docs/nic/mpi-over-nics.md")
    assert f"took {put[0]:.1f} µs with `osc/ucx` over the torus and {put[1]:.1f} µs with `osc/rdma`" in text
    assert f"a get of 64 KiB {get[0]:.0f} µs and {get[1]:.0f} µs" in text


def test_ranks() -> None:
    text = page("docs/library/ranks.md")
    before = {line["ranks"]: line["of_ranks"] for line in lines("scale-ranks/before.jsonl")}
    now = {line["ranks"]: line["of_ranks"] for line in lines("scale-ranks/partners.jsonl")}
    assert len(now) == 8

    def cell(ranks: int, kind: str, who: str, unit: float, digits: int) -> str:
        old = f" ({before[ranks][kind][who] / unit:.{digits}f})" if ranks in before else ""
        return f"{now[ranks][kind][who] / unit:.{digits}f}{old}"

    for ranks, of in now.items():
        sizes = [
            cell(ranks, resource, who, unit, digits)
            for resource, unit, digits in (("descriptors", 1, 0), ("added_private_kib", 1024, 1))
            for who in ("median", "rank_0")
        ]
        assert row([ranks, *sizes]) in text
        times = (
            ("context_cpu_ms", "median", 0), ("plan_cpu_ms", "median", 1), ("prepare_cpu_ms", "median", 1),
            ("prepare_cpu_ms", "rank_0", 1), ("context_ms", "median", 0), ("prepare_ms", "median", 0),
        )  # fmt: skip
        assert row([ranks, *(f"{of[resource][who]:.{digits}f}" for resource, who, digits in times)]) in text
    (gpu,) = lines("scale-ranks/gpu-memory.jsonl")
    private, shared = (median(gpu[name]) / 1024 for name in ("private_kib", "shared_kib"))
    adds = f"A rank adds {private:.1f} MiB of private memory, {shared:.1f} MiB of shared memory"
    assert adds in text
    assert f"divided by eight), and {gpu['gpu_kib_a_rank'] / 1024:.0f} MiB on its GPU" in text


def test_jobs_the_cost_of_an_agent() -> None:
    text, measured = page("docs/jobs/agent.md"), lines("jobs/agent.jsonl")
    names = {"cgroups": "cgroups v2", "processes": "`/proc` alone"}
    for way in (*measured[2:4], *measured[-2:]):
        name = names[way["way"]] + (", two H100 through NVML" if "nvml" in way else "")
        ms = way["cpu_ms_a_round"]
        assert (
            row(
                [
                    name,
                    f"{ms:.0f} ms",
                    f"{ms / 10_000:.2%}".replace("%", " %"),
                    f"{way['resident_mib']:.0f} MiB",
                ]
            )
            in text
        )
    assert f"up to {max(way['cpu_ms_a_round'] for way in measured):.0f} ms" in text
    *_, sent = (line["bytes_a_batch"] for line in lines("jobs/load.jsonl") if line["test"] == "ingest")
    days = (256 << 20) / sent * 10 / 86_400
    assert f"about {days:.0f} days of a node with 64 cores and 8 GPUs, whose batches have " in text.replace(
        "\n", " "
    )
    assert f"have {sent / 1000:.1f} KB (`bytes_a_batch`" in text
    for file, words in (
        ("slurm/jobs-agent.toml", f"about {days:.0f} days of a node with 64 cores"),
        ("serve/limits.py", f"a node with 64 cores and 8 GPUs sends {sent / 1000:.1f} KB in 10 s"),
    ):
        assert words in page(f"jobs/peerway_jobs/{file}")


def test_jobs_the_load_of_a_server() -> None:
    text = page("docs/jobs/server.md")
    _, folder, _, database, loaded = lines("jobs/sustained.jsonl")

    def memory(run: dict[str, Any]) -> str:
        own = [minute["resident"]["own"] / 1e6 for minute in run["minutes"]]
        return f"its own memory {min(own):.0f} to {max(own):.0f} MB"

    share = f"{folder['of_one_core']:.2f} of a core, {memory(folder)}"
    assert f"samples in the folder, 16 minutes at a load of 5 | {share} |" in text
    spent = loaded["cpu_s"] / loaded["batches"]  # each of 1,000 nodes sends one in 10 s
    share = f"{spent * 1e3:.1f} ms of CPU time a batch: {spent * 100:.1f} of a core"
    assert f"a load of {loaded['load']:.0f} | {share} for 1,000 nodes |" in text
    theirs = database["victoria_metrics"]["cpu_s"] / database["wall_s"]
    assert (
        f"samples in VictoriaMetrics | {database['of_one_core']:.2f} of a core, {memory(database)}; "
        f"VictoriaMetrics {theirs:.2f} of a core" in text
    )
    *_, quiet, busy = (line for line in lines("jobs/load.jsonl") if line["test"] == "job page in a browser")
    assert f"{quiet['median']['drawn_s']:.2f} s, the median of 25 rounds at a load of 2;" in text
    assert f"{busy['median']['drawn_s']:.2f} s at a load of 6 to 8" in text
    *_, many = (
        line for line in lines("jobs/load.jsonl") if (line["test"], line.get("jobs")) == ("many jobs", 10**6)
    )
    mine, statistics = (many[page_name]["wall_s"] for page_name in ("my_jobs", "statistics_30_days"))
    assert f"statistics of 30 days | {mine:.2f} s; {statistics:.2f} s |" in text
    *_, last = (one for one in lines("jobs/load.jsonl") if one["test"] == "many jobs")
    mine, statistics = (last[what]["wall_s"] for what in ("my_jobs", "statistics_30_days"))
    loaded_row = f"{last['jobs']:,} on a machine with a load of {last['load']:.0f}"
    assert f"{loaded_row} | {mine:.2f} s; {statistics:.2f} s |" in text


def test_xcalableacc() -> None:
    text = page("docs/xacc/directives.md")
    for line in lines("xacc/laplace.jsonl"):
        ratio = median(ours / theirs for ours, theirs in zip(line["xacc"], line["mpi"], strict=True))
        assert row([f"{line['points']} × {line['points']}", f"{ratio:.2f}"]) in text
    (compiled,) = lines("xacc/compile.jsonl")
    assert f"takes {min(compiled['wall']):.1f} to {max(compiled['wall']):.1f} s to compile" in text
    (started,) = lines("xacc/start.jsonl")
    more = median(started["program_seconds"]) - median(started["empty_seconds"])
    (most,) = re.findall(r"takes less than ([\d.]+) s more than an empty program", text)
    assert -float(most) < more < float(most)


@pytest.mark.parametrize("name", ["README.md", "docs/index.md"])
def test_how_long_the_first_commands_take(name: str) -> None:
    demo = lines("tests/demo.jsonl")[0]
    text = page(name)
    assert f"about {demo['wall_s'] / 60:.0f} minutes on 2" in text
    tests = [line["wall_s"] / 60 for line in lines("tests/make-test.jsonl") if "command" in line]
    written = re.findall(r"(\d+) to (\d+) minutes on 2 idle cores", text)
    assert written == [(f"{min(tests):.0f}", f"{max(tests):.0f}")]
    contributing = page("CONTRIBUTING.md").replace("\n", " ")
    assert (
        f"takes {min(tests):.0f} minutes if a compiler's cache has the library, otherwise up to "
        in contributing
    )
    assert f"otherwise up to {max(tests):.0f} (`results/tests/make-test.jsonl`)" in contributing
    if name == "README.md":
        assert f"first installs for {lines('tests/setup.jsonl')[0]['wall_s'] / 60:.0f} minutes" in text


def test_fortran_beside_c_on_a_gpu() -> None:
    ratios = {
        (line["program"], *line["size"]): f"{line['time_ratio'] + 1e-9:.2f}"
        for line in lines("xacc/fortran-h200-x1.jsonl")
    }
    text = " ".join(page("docs/xacc/fortran.md").split())
    assert (
        f"CG of class A {ratios['cg', 'CLASS_A']} and of class B {ratios['cg', 'CLASS_B']}, Himeno of size M "
        f"{ratios['himeno', 'MI=129', 'MJ=129', 'MK=257']} and of size L "
        f"{ratios['himeno', 'MI=257', 'MJ=257', 'MK=513']}, the hop at 16⁴ {ratios['hop', 'EDGE=16']} and at "
        f"32⁴ {ratios['hop', 'EDGE=32']}."
    ) in text


def outcome_of(line: dict[str, Any]) -> str:
    """How a coarray program of the peer compiler ended, as the page groups them."""
    outcome, reason = line["outcome"], line.get("reason", "")
    if "xmpf_" in reason or "requires a scalar LOGICAL" in reason:  # without a type their value is a REAL
        return "call functions of the Omni compiler's own library"
    return {
        "passed": "pass",
        "part of a program": "are parts of programs",
        "not linked": "are parts of programs",
        "not compiled by gfortran": "are refused by gfortran",
        "refused": "are refused by `peerway fc`",
        "failed": "fail",
    }[outcome]


def test_coarray_programs_of_the_peer_compiler() -> None:
    programs = lines("xacc/fortran-coarrays.jsonl")
    counts = Counter(map(outcome_of, programs))
    checking = sum(line["checks"] for line in programs if line["outcome"] == "passed")
    text = page("docs/xacc/fortran.md")
    assert f"the other {len(programs)} coarray programs" in text
    for outcome, count in counts.items():
        assert f"| {outcome} | {count} |" in text
    assert f"| pass | {counts['pass']} | {checking} of them check what they compute" in text


def test_fortran_programs_of_the_peer_compiler() -> None:
    programs = lines("xacc/fortran-peers.jsonl")

    def of(*outcomes: str, among: str = "") -> int:
        return sum(line["outcome"] in outcomes and among in line["program"] for line in programs)

    text = page("docs/xacc/fortran.md")
    assert f"{of('passed')} of {len(programs)} of its own test programs" in text
    assert (
        f"{of('passed')} pass, {of('refused')} are refused by `peerway fc` as above, "
        f"{of('not compiled by gfortran')} are refused by gfortran, {of('not linked')} are modules of one of "
        f"those that pass, and {of('failed')} fail"
    ) in text
    assert f"the nine programs with OpenACC among them {of('passed', among='XACC/')} pass" in text
