"""apps/stencil2d: the fields of all variants that run without a GPU, and a check that can fail."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launching import BUILD, ROOT, Run, clean_environment, library_folder, peerway

from peerway import _core
from peerway_measure import records

APP = ROOT / "apps" / "stencil2d"
BITS = "the same bits as a serial run"

# Grid and cells, and the borders that are always tested: grids in each direction and in both, with even and
# uneven parts. The others are for long runs.
GRIDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "1 rank": ("1x1", "17x9", ("periodic",)),
    "2 ranks": ("1x2", "8x16", ("fixed",)),
    "2 ranks uneven": ("2x1", "15x6", ()),
    "3 ranks uneven": ("3x1", "10x7", ()),
    "3 ranks uneven columns": ("1x3", "3x8", ("periodic",)),
    "4 ranks uneven": ("2x2", "63x50", ("fixed",)),
    "one row a rank": ("4x1", "4x5", ("periodic",)),
}
BORDERS = ("periodic", "fixed")


def build(*options: str) -> list[str]:
    """Build apps/stencil2d; returns its programs."""
    command = [sys.executable, str(APP / "build.py"), *options]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PEERWAY_BUILD": str(BUILD)}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture(scope="module")
def program() -> str:
    library_folder()
    return build("--device", "host", "--only", "peerway")[0]


def ranks_of(grid: str) -> int:
    ny, _, nx = grid.partition("x")
    return int(ny) * int(nx)


def stencil(program: str, grid: str, *options: str) -> list[str]:
    return [*peerway("run", "-n", str(ranks_of(grid)), "--"), program, "--grid", grid, *options]


@pytest.mark.parametrize(
    ("grid", "cells", "border"),
    [
        pytest.param(
            grid, cells, border, id=f"{name}-{border}", marks=[] if border in always else [pytest.mark.long]
        )
        for name, (grid, cells, always) in GRIDS.items()
        for border in BORDERS
    ],
)
def test_all_variants_compute_what_a_serial_run_does(
    run: Run, program: str, grid: str, cells: str, border: str
) -> None:
    variants = "host-driven,host-driven/serial,stream,stream/serial"
    steps = ["--iterations", "33", "--batch", "11", "--warmup", "1"]
    command = stencil(program, grid, "--global", cells, "--border", border, "--variant", variants, *steps)
    done = run([*command, "--check"])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(BITS) == 4, done.stdout


def test_the_check_sees_a_missing_exchange(run: Run, program: str) -> None:
    done = run(stencil(program, "2x2", "--local", "32x32", "--variant", "none", "--check"))
    assert done.returncode == 1
    assert "check FAILED" in done.stdout
    assert "cells differ from a serial run" in done.stdout


def test_the_eigenmodes_alone_see_a_missing_exchange(run: Run, program: str) -> None:
    options = ["--local", "600x600", "--iterations", "160", "--batch", "160", "--warmup", "0", "--check"]
    done = run(stencil(program, "2x1", *options, "--variant", "none,stream"))
    assert done.returncode == 1
    assert done.stdout.count("too large for a serial run") == 2
    assert "check FAILED" in done.stdout
    assert "check passed" in done.stdout


def test_phases_are_timed(run: Run, program: str) -> None:
    done = run(stencil(program, "1x2", "--local", "32x32", "--phases"))
    assert done.returncode == 0, done.stderr
    assert "alone, us: interior" in done.stdout


@pytest.mark.parametrize(
    ("grid", "options", "expected"),
    [
        ("1x2", ["--grid", "2x2"], "--grid 2x2 needs 4 ranks, and there are 2"),
        ("3x1", ["--global", "4x9"], "4 rows in blocks of 2 leave nothing for the last of 3 ranks"),
        ("1x1", ["--variant", "fast"], "--variant is 'fast'; give stream, "),
        ("1x1", ["--local", "12"], "two numbers joined by x"),
        ("1x1", ["--local", "0x4"], "a whole number from 1 to"),
        ("1x1", ["--iterations", "7", "--batch", "2"], "a multiple of --batch, which is 2"),
        ("1x1", ["--local", "8x8", "--global", "8x8"], "exclude each other"),
        ("1x1", ["--device", "cuda"], "built for host only"),
    ],
)
def test_what_cannot_be_is_refused(
    run: Run, program: str, grid: str, options: list[str], expected: str
) -> None:
    done = run(stencil(program, grid, *options))
    assert done.returncode != 0
    assert expected in done.stderr


def test_a_lost_rank_ends_the_others(run: Run, program: str) -> None:
    long = ["--local", "64x64", "--iterations", "1000000000", "--batch", "1000000000", "--warmup", "0"]
    script = f'if [ "$PEERWAY_RANK" = 1 ]; then (sleep 1; kill -9 $$) & fi; exec {shlex.quote(program)} "$@"'
    command = [*peerway("run", "-n", "2", "--"), "/bin/sh", "-c", script, "sh", "--grid", "1x2", *long]
    done = run([*command, "--variant", "host-driven"])
    assert done.returncode == 128 + 9
    assert "rank 1" in done.stderr


def test_records(tmp_path: Path, program: str) -> None:
    out = tmp_path / "records.jsonl"
    options = ["--grid", "1x2", "--local", "16x24", "--variant", "stream,none", "--check", "--phases"]
    command = [sys.executable, str(APP / "run.py"), "--out", str(out), *options]
    environment = clean_environment(PEERWAY_BUILD=str(BUILD))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 1, done.stderr  # the variant "none" is wrong, and this is reported
    stream, none = records.read(out)
    assert (stream.test, stream.via, stream.ranks, stream.bytes) == ("stencil2d", "stream", 2, 192)
    assert stream.validated
    assert not none.validated
    assert set(stream.extra["phases_us"]) == {"interior", "boundary", "all", "exchange"}
    assert stream.extra["global"] == [16, 48]


@pytest.mark.long
def test_the_study_draws_what_it_measured(tmp_path: Path, program: str) -> None:
    options = ["--device", "host", "--ranks", "2", "--edges", "8,16", "--variants", "stream,none"]
    command = [sys.executable, str(APP / "study.py"), *options, "--out", str(tmp_path)]
    environment = clean_environment(PEERWAY_BUILD=str(BUILD))
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert {record.shape for record in records.read(tmp_path / "records.jsonl")} == {"8x8", "16x16"}
    page = (tmp_path / "stencil2d.html").read_text()
    assert "weak scaling" in page
    assert "stream" in page


@pytest.mark.skipif(shutil.which("mpicxx") is None, reason="no mpicxx (apt-get install libopenmpi-dev)")
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.long
def test_mpi(border: str) -> None:
    options = [
        "--grid",
        "2x2",
        "--global",
        "33x21",
        "--border",
        border,
        "--iterations",
        "40",
        "--batch",
        "20",
    ]
    command = [sys.executable, str(APP / "run.py"), *options, "--variant", "mpi,mpi-overlap", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr
    assert [records.parse(line).via for line in done.stdout.splitlines()] == ["mpi", "mpi-overlap"]
    assert all(records.parse(line).validated for line in done.stdout.splitlines())


@pytest.mark.long
def test_the_persistent_kernel_on_threads_of_the_cpu(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "in_kernel_test"
    sources = [str(APP / name) for name in ("in_kernel_test.cpp", "field.cpp", "lattice.cpp")]
    flags = ["-std=c++20", "-O1", "-pthread", "-fsanitize=undefined", f"-I{ROOT / 'library' / 'include'}"]
    subprocess.run(["c++", *flags, *sources, "-o", str(program)], check=True)
    done = run([str(program)])
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(": 0 cells differ") == 8
    assert "a packet that never comes: timeout" in done.stdout


def run_py(*options: str) -> list[str]:
    return [sys.executable, str(APP / "run.py"), *options]


def test_planned_and_mpi_variants_in_one_call(run: Run, program: str, tmp_path: Path) -> None:
    if shutil.which("mpicxx") is None:
        pytest.skip("no mpicxx")
    out = tmp_path / "records.jsonl"
    size = ["--grid", "1x2", "--local", "32x32", "--iterations", "20", "--batch", "10", "--check"]
    variants = ["mpi-overlap", "stream", "none", "mpi"]
    environment = clean_environment(PEERWAY_BUILD=str(BUILD))
    # It also builds the MPI program, so the time limit is longer.
    done = run(
        run_py("--variant", ",".join(variants), *size, "--out", str(out)), env=environment, timeout=600
    )
    assert [r.via for r in records.read(out)] == variants, done.stderr
    assert [r.validated for r in records.read(out)] == [True, True, False, True]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--variant", "fast,mpi"], "--variant is 'fast'; give stream, "),
        (["--iterations", "7", "--batch", "2"], "a multiple of --batch"),
        (["--nonsense"], "'--nonsense' is no option"),
    ],
)
def test_a_refused_option_is_said_once(run: Run, program: str, options: list[str], message: str) -> None:
    done = run(run_py("--grid", "1x2", *options), env=clean_environment(PEERWAY_BUILD=str(BUILD)))
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert message in done.stderr


@pytest.mark.skipif(len(_core.devices()) > 1, reason="there is a GPU: make gpu-test runs it")
def test_the_documented_command_is_refused_once_for_want_of_a_gpu(run: Run, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "apps" / "stencil2d.md").read_text()
    (line,) = [line for line in page.splitlines() if "--device cuda" in line and "run.py" in line]
    words = shlex.split(line.removeprefix("$ "), comments=True)
    assert words[:2] == ["python", "apps/stencil2d/run.py"]
    assert "graph,mpi-overlap" in words
    done = run(run_py(*words[2:]), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: there is no device cuda here. "), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not list(tmp_path.iterdir())
