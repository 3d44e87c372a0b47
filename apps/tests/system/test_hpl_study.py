"""apps/hpl: the study stores each run with its command; its tables; how it reads clocks and power."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from launching import ROOT, Run
from mpi_stacks import STACKS
from test_hpl import APP, blas, build

sys.path.insert(0, str(ROOT / "apps"))

from hpl import cpu_study, meters, tables


@pytest.fixture(scope="module")
def with_mpi() -> str:
    if not STACKS["openmpi-debian"][1].exists():
        pytest.skip("Open MPI is not here: make setup as root")
    return build("program", "peerway", "mpi")


def study(run: Run, *options: str) -> subprocess.CompletedProcess[str]:
    return run([sys.executable, str(APP / "study.py"), "--blas", blas(), "--nb", "16", *options])


def kept(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


@pytest.mark.long
def test_each_run_is_kept_with_its_command(run: Run, with_mpi: str, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    programs = ["--programs", "peerway,mpi,peerway+trace", "--times", "1", "--rpeak", "50"]
    done = study(run, "--n", "100,132", "--grid", "1x1,1x2", *programs, "--out", str(out))
    assert done.returncode == 0, done.stderr
    found = kept(out)
    assert [(one["program"], one["n"], one["q"]) for one in found] == [
        (f"hpl/{program}", n, q)
        for n in (100, 132)
        for q in (1, 2)
        for program in ("peerway", "mpi", "peerway+trace")
    ]
    assert all(one["passed"] and one["rpeak_gflops"] == 50 * one["q"] for one in found)
    command = "peerway run -n 2 -- build/hpl/hpl --n 100 --nb 16 --grid 1x2 --blas libscipy_openblas"
    assert found[3]["command"].startswith(command)
    assert found[5]["command"].startswith("peerway trace -- " + command)
    assert all(one["trace_events"] > 10 for one in found if "trace_events" in one and one["q"] == 2)
    assert "N = 132, 1 x 2, peerway+trace: median" in done.stdout
    assert done.stdout.count("of peerway+trace") == 3 * 4


def test_weak_scaling_keeps_the_matrix_of_a_rank(run: Run, with_mpi: str, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    options = ["--n", "320", "--weak", "--grid", "1x1,1x2,2x2", "--programs", "peerway", "--times", "1"]
    done = study(run, *options, "--out", str(out))
    assert done.returncode == 0, done.stderr
    assert [(one["p"] * one["q"], one["n"]) for one in kept(out)] == [(1, 320), (2, 448), (4, 640)]


@pytest.mark.long
def test_a_run_of_each_network_has_its_report(
    run: Run, with_mpi: str, shared_cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(shared_cache).parent))
    curve = ROOT / "results" / "cpu-2" / "host.jsonl"
    options = ["--n", "200", "--grid", "1x2", "--programs", "peerway", "--times", "1"]
    done = study(run, *options, "--report", str(tmp_path / "out"), "--bench", str(curve))
    assert done.returncode == 0, done.stderr
    for name, call in (("peerway", "put"), ("mpi", "MPI_")):
        assert call in (tmp_path / "out" / f"{name}.txt").read_text()
        assert (tmp_path / "out" / f"{name}.html").stat().st_size > 10_000


@pytest.mark.long
def test_one_command_runs_the_whole_study(
    with_mpi: str, shared_cache: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With small systems, and with a curve that was measured before."""
    if shutil.which("hpcc") is None:
        pytest.skip("hpcc is not here: make setup as root")
    small = [(n // 20, ranks, programs) for n, ranks, programs in cpu_study.RUNS]
    monkeypatch.setattr(cpu_study, "RUNS", small)
    monkeypatch.setenv("XDG_CACHE_HOME", str(Path(shared_cache).parent))
    curve = ROOT / "results" / "cpu-2" / "host.jsonl"
    options = ["--out", str(tmp_path), "--blas", blas(), "--minutes", "0", "--bench", str(curve)]
    done = CliRunner().invoke(cpu_study.main, options)
    assert done.exit_code == 0, done.output
    found = [(one["n"], one["q"], one["program"]) for one in kept(tmp_path / "hpl.jsonl")]
    recorded = {"peerway": "hpl/peerway", "mpi": "hpl/mpi", "peerway+trace": "hpl/peerway+trace"}
    assert found == [
        (n, ranks, recorded.get(program, program)) for n, ranks, programs in small for program in programs
    ]
    written = (tmp_path / "tables.md").read_text()
    for row in (
        "| hpl over Peerway | 1 → 2 | 200 |",  # strong
        "| hpl over Peerway | 1 → 2 | – | – | – | 400 |",  # weak, from 282
        "N = 400, 1 × 2: ",  # the cost of a trace
        "| HPL of hpcc | 200 | 192 | 1 × 2 |",
    ):
        assert row in written
    assert "<svg" in (tmp_path / "hpl-cpu.svg").read_text()
    for name in ("peerway", "mpi"):
        assert (tmp_path / f"{name}.html").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--grid", "2"], "'2'; give P x Q as 1x2"),
        (["--n", "1k"], "'1k'; give numbers joined by commas"),
        (["--programs", "peerway,ucx"], "'peerway,ucx'; give some of peerway, mpi, peerway+trace, hpcc"),
    ],
)
def test_what_cannot_be_is_refused(run: Run, options: list[str], message: str) -> None:
    done = study(run, *options)
    assert done.returncode == 2
    assert message in done.stderr


def record_of(program: str, n: int, q: int, gflops: float, **more: Any) -> dict[str, Any]:
    return {
        "program": program, "n": n, "nb": 192, "p": 1, "q": q, "gflops": gflops, "residual": 2e-3,
        "passed": True, "seconds": 0.5, "gemm_gflops_rank": 50.0, "memory_share": 0.25, "rpeak_gflops": 0,
        "cpu": "2 x CPU", **more,
    }  # fmt: skip


OF_OURS = ("gemm_gflops_rank", "memory_share", "rpeak_gflops")  # hpcc does not report them
RUNS = [
    record_of("hpl/peerway", 4000, 1, 40.0),
    record_of("hpl/peerway", 4000, 2, 70.0),
    record_of("hpl/peerway", 4000, 2, 72.0),
    record_of("hpl/peerway", 4000, 2, 60.0),
    record_of("hpl/peerway", 5664, 2, 76.0),
    record_of("hpl/peerway+trace", 4000, 2, 69.3, trace_events=300),
    {key: value for key, value in record_of("hpcc", 4000, 2, 66.0).items() if key not in OF_OURS},
]


def test_tables_have_the_form_of_published_ones() -> None:
    first, *rows = [*tables.rows(RUNS)]
    assert first == tables.HEAD
    assert "| hpl over Peerway | 4,000 | 192 | 1 × 2 | 25 % | 3 | 72.0 | 70.0 | 70 % | – | 2.0e-03 |" in rows
    assert "| HPL of hpcc | 4,000 | 192 | 1 × 2 | – | 1 | 66.0 | 66.0 | – | – | 2.0e-03 |" in rows
    assert len({row.count("|") for row in (first, *rows)}) == 1
    assert list(tables.scaling(RUNS))[2:] == [
        "| hpl over Peerway | 1 → 2 | 4,000 | 1.75 | 0.88 | 5,664 | 1.90 | 0.95 |"
    ]
    assert list(tables.traced(RUNS)) == [
        "N = 4,000, 1 × 2: +1.00 % of the Gflops by the medians; "
        "by the 300 events, of 27 ns each, at most 0.0016 %"
    ]


def test_a_run_that_failed_is_seen() -> None:
    (_, _, row) = tables.rows([record_of("hpl/peerway", 100, 1, 1.0) | {"passed": False, "residual": 1e3}])
    assert row.endswith("| 1.0e+03, FAILED |")


def test_the_picture_has_every_run() -> None:
    figure = tables.picture(RUNS)
    assert sum(len(trace.x) for trace in figure.data) == len(RUNS)


def test_tables_of_no_runs_are_refused(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "empty.jsonl"
    file.write_text("")
    done = run([sys.executable, str(APP / "tables.py"), str(file)])
    assert done.returncode == 1
    assert "no run of hpl is in" in done.stderr


def machine(folder: Path, zones: dict[str, tuple[int, int]], khz: tuple[int, ...] = ()) -> Path:
    """A root folder with these RAPL zones (energy and largest energy) and CPU clocks."""
    for name, (energy, largest) in zones.items():
        zone = folder / "sys" / "class" / "powercap" / name
        zone.mkdir(parents=True)
        (zone / "energy_uj").write_text(f"{energy}\n")
        (zone / "max_energy_range_uj").write_text(f"{largest}\n")
    for number, clock in enumerate(khz):
        cpu = folder / "sys" / "devices" / "system" / "cpu" / f"cpu{number}" / "cpufreq"
        cpu.mkdir(parents=True)
        (cpu / "scaling_cur_freq").write_text(f"{clock}\n")
    (folder / "proc").mkdir()
    (folder / "proc" / "cpuinfo").write_text("cpu MHz\t\t: 2000.5\ncpu MHz\t\t: 3000.5\n")
    return folder


def test_cpus_have_the_energy_of_their_packages_alone(tmp_path: Path) -> None:
    zones = {"intel-rapl:0": (0, 10**12), "intel-rapl:1": (0, 10**12), "intel-rapl:0:0": (0, 10**12)}
    root = machine(tmp_path, zones, (2_000_000, 3_000_000))
    meter = meters.CpuMeter(root)
    for step in range(11):
        for zone in zones:  # 10 J per step and zone
            (root / "sys/class/powercap" / zone / "energy_uj").write_text(str(step * 10**7))
        meter.look(1000 + 0.1 * step)
    meter.conclude()
    assert meter.values == {"cpu_clock_mhz": 2500, "cpu_power_w": 200}


def test_a_counter_of_energy_begins_anew() -> None:
    assert meters.used(90, 10, 100) == 20
    assert meters.used(10, 90, 100) == 80


def test_without_counters_there_is_no_power(tmp_path: Path) -> None:
    meter = meters.CpuMeter(machine(tmp_path, {}))
    for now_s in (1, 2):
        meter.look(now_s)
    meter.conclude()
    assert meter.values == {"cpu_clock_mhz": 2500}  # from /proc/cpuinfo: 2500.5 rounded to even


def test_the_upper_half_is_the_run() -> None:
    assert meters.busy([(1000, 10), (2000, 100), (2100, 110), (1000, 9)]) == (2050, 105)
