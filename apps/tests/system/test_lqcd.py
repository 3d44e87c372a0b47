"""Lattice QCD: the directive programs give the sequential program's results, on every grid of processes.

They run on CPUs, and with their kernels on the fake GPU.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from launching import LIMIT, ROOT

APP = ROOT / "apps" / "lqcd"
PEERWAY = Path(sys.executable).with_name("peerway")
GRIDS = [(1, 1), (1, 2), (2, 2)]  # along t and z
PROGRAMS = [(name, grid) for name in ("xacc", "xacc_nowait") for grid in GRIDS]
# One process has no halo to wait for late, and four processes have all kinds of halos.
ALWAYS = [("xacc", (1, 1)), ("xacc_nowait", (2, 2))]
ON_GPU = [("xacc", (1, 1))]  # each process compiles the kernels itself
GAUGES = ["unit", "random:1", "transform:7"]
# The kernels are the same for each field: a random one shows a wrong link at any site and in any direction.
CASES = [
    pytest.param(device, gauge, marks=[] if gauge.startswith("random") else [pytest.mark.long])
    for device in ("cpu", "gpu")
    for gauge in GAUGES
]

Records = list[dict[str, Any]]


def run(*command: object, **settings: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False)


def solved(*command: object, gauge: str, sources: int = 2, **settings: str) -> Records:
    """The records of a run that found no error in itself."""
    done = run(*command, "--gauge", gauge, "--check", "--sources", sources, **settings)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in done.stdout.splitlines()]
    assert all(one["ok"] for one in records if one["record"] == "check")
    assert any(one["record"] == "check" for one in records)
    return records


def of(records: Records, kind: str, name: str) -> list[Any]:
    return [one[name] for one in records if one["record"] == kind]


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("lqcd") / "serial"
    includes = [f"-I{APP}", f"-I{ROOT / 'xacc' / 'include' / 'peerway' / 'xacc'}"]
    done = run("gcc", "-O2", "-DEDGE=4", *includes, APP / "serial.c", "-lm", "-o", made)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(scope="module")
def programs(
    tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config
) -> dict[tuple[str, tuple[int, int]], Path]:
    """The directive programs, by name and grid."""
    folder = tmp_path_factory.mktemp("lqcd")
    made = {}
    for name, grid in PROGRAMS if pytestconfig.getoption("--long") else ALWAYS:
        made[name, grid] = folder / f"{name}_{grid[0]}x{grid[1]}"
        defines = ["-DEDGE=4", f"-DPT={grid[0]}", f"-DPZ={grid[1]}"]
        done = run(
            PEERWAY, "cc", "-O1", *defines, f"-I{APP}", APP / f"{name}.c", "-lm", "-o", made[name, grid]
        )
        assert done.returncode == 0, done.stderr
    return made


@pytest.mark.parametrize(("device", "gauge"), CASES)
def test_directives_give_the_iterations_and_the_correlator_of_the_sequential_program(
    gauge: str,
    device: str,
    serial: Path,
    programs: dict[tuple[str, tuple[int, int]], Path],
    fake_gpu: dict[str, str],
    pytestconfig: pytest.Config,
) -> None:
    settings = fake_gpu if device == "gpu" else {"PEERWAY_ACC": "host"}
    right = {sources: solved(serial, gauge=gauge, sources=sources) for sources in (1, 2)}
    for (name, (t, z)), program in programs.items():
        if device == "gpu" and (t, z) == (1, 2):
            continue
        if device == "gpu" and (name, (t, z)) not in ON_GPU and not pytestconfig.getoption("--long"):
            continue
        # A solve is slow on the fake GPU; one process suffices to show what the first solve leaves behind.
        sources = 1 if device == "gpu" and t * z > 1 else 2
        wanted = right[sources]
        found = solved(PEERWAY, "run", "-n", t * z, "--", program, gauge=gauge, sources=sources, **settings)
        assert of(found, "program", "device") == ["GPU" if device == "gpu" else "CPU"]
        steps = zip(of(found, "solve", "nconv"), of(wanted, "solve", "nconv"), strict=True)
        # On a unit field CG ends by itself, when only rounding is left: one step more or less.
        slack = 0 if gauge.startswith("random") else 1
        assert all(abs(one - other) <= slack for one, other in steps), (name, t, z)
        (values,), (same,) = of(found, "correlator", "values"), of(wanted, "correlator", "values")
        assert values == pytest.approx(same, rel=1e-7), (name, t, z)


def test_a_gauge_field_of_a_file_is_the_field_that_it_holds(
    serial: Path, programs: dict[tuple[str, tuple[int, int]], Path], tmp_path: Path
) -> None:
    """Each link of the file is a rotation by an angle of its own; a second file has the unit field."""

    def written(name: str, angle: Callable[[int], float]) -> str:
        numbers = []
        for number in range(8 * 8 * 8 * 16 * 4):
            c, s = math.cos(angle(number)), math.sin(angle(number))
            matrix = [c, 0, s, 0, 0, 0, -s, 0, c, 0, 0, 0, 0, 0, 0, 0, 1, 0]
            numbers.append(" ".join(f"{one:.17g}" for one in matrix))
        (tmp_path / name).write_text("\n".join(numbers))
        return f"file:{tmp_path / name}"

    unit = written("unit", lambda _number: 0)
    for program in (serial, programs["xacc", (1, 1)]):
        by_file, by_name = (solved(program, gauge=gauge, PEERWAY_ACC="host") for gauge in (unit, "unit"))
        assert of(by_file, "correlator", "values") == of(by_name, "correlator", "values")
    turned = written("turned", lambda number: number % 11 / 7)
    wanted = solved(serial, gauge=turned)
    found = solved(
        PEERWAY, "run", "-n", 4, "--", programs["xacc_nowait", (2, 2)], gauge=turned, PEERWAY_ACC="host"
    )
    assert of(found, "solve", "nconv") == of(wanted, "solve", "nconv")
    assert of(found, "correlator", "values")[0] == pytest.approx(
        of(wanted, "correlator", "values")[0], rel=1e-7
    )
    (tmp_path / "short").write_text("1 2 3")
    done = run(serial, "--gauge", f"file:{tmp_path / 'short'}")
    assert done.returncode != 0
    assert "has 3 numbers, but 8 x 8 x 8 x 16 links are 589824; give the whole file" in done.stderr


@pytest.mark.long
def test_an_evaluation_runs_all_programs_and_draws_them(tmp_path: Path) -> None:
    kept = tmp_path / "kept.jsonl"
    options = ["--edges", 4, "--grids", "1x1,1x2", "--layouts", "rows", "--sources", 1, "--repeat", 2]
    options += ["--programs", "serial,xacc,cuda-mpi,openacc-mpi", "--rounds", 2, "--out", kept]
    done = run(sys.executable, APP / "evaluate.py", *options)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in kept.read_text().splitlines()]
    ran = [(one["program"], one["ranks"], one["round"]) for one in records if one["record"] == "lqcd"]
    parallel = ["xacc", "openacc-mpi"]
    once = [("serial", 1), *((name, ranks) for ranks in (1, 2) for name in parallel)]
    assert sorted(ran) == sorted((*one, number) for one in once for number in (1, 2))
    assert {one["program"] for one in records if one["record"] == "left out"} == {"cuda-mpi"}
    delta = {one["program"]: one["delta"] for one in records if one["record"] == "sloc"}
    assert delta["xacc"] <= 0.1 * delta["cuda-mpi"]
    done = run(sys.executable, APP / "draw.py", kept, tmp_path / "pictures")
    assert done.returncode == 0, done.stderr
    assert "| 4⁴, rows | `xacc` | 2 |" in done.stdout
    assert "openacc-mpi" in (tmp_path / "pictures" / "lqcd-scaling.svg").read_text()


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--edges", "16,x", "'x' is not a valid integer range"),
        ("--edges", "1", "1 is not in the range"),
        ("--grids", "1x1,2by2", "'2by2' is no grid; give processes along t and z, as 2x4"),
        ("--grids", "0x1", "'0x1' is no grid"),
        ("--layouts", "row", "'row' is not one of 'rows', 'sites'"),
        pytest.param("--programs", "xac", "'xac' is not one of", marks=pytest.mark.long),
        ("--sources", "13", "13 is not in the range"),
        pytest.param("--repeat", "0", "0 is not in the range", marks=pytest.mark.long),
    ],
)
def test_an_evaluation_refuses(option: str, value: str, message: str, tmp_path: Path) -> None:
    done = run(sys.executable, APP / "evaluate.py", option, value, "--out", tmp_path / "kept.jsonl")
    assert done.returncode == 2
    assert message in done.stderr
    assert not (tmp_path / "kept.jsonl").exists()


def test_an_evaluation_tells_what_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(APP)
    import evaluate  # type: ignore[import-not-found]  # of the folder of the application

    good = {"program": "xacc", "layout": "rows", "grid": [1, 1], "lattice": [4] * 4, "nconv": [7, 9]}
    good["correlator"] = [1.0, 0.5]
    assert list(evaluate.differences([good, good | {"correlator": [1.0 + 1e-9, 0.5]}])) == []
    late = good | {"program": "cuda-mpi", "nconv": [7, 10]}
    far = good | {"correlator": [1.0, float("nan")]}
    assert list(evaluate.differences([good, late, far])) == [
        "cuda-mpi, rows, 1 x 1, 4⁴: iterations [7, 10], of xacc [7, 9]",
        "xacc, rows, 1 x 1, 4⁴: its correlator is off that of xacc, relatively by 0.0e+00, nan",
    ]
