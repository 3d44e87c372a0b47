"""Time QUDA's Wilson operator and its conjugate gradients beside those of `xacc`, in turn on the same GPUs.

    python apps/lqcd/quda.py build --source QUDA --folder build/quda      # with nvcc, MPI and Eigen 3
    python apps/lqcd/quda.py run --folder build/quda --edges 16,32 --grids 1x1,1x2 --out quda.jsonl

QUDA is built from a clone of its repository, with the Wilson operator alone, in double precision and
without compressed links, as the programs of this folder compute. Its own tests time the operator and compare
it with a plain implementation. The gauge fields are random in both, but not the same, so solves are compared
by the time of an iteration.

On several GPUs QUDA's test times the operator with its halos (hop_with_halo_us), `xacc` without (hop_us).
Only the iterations are the same work there.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
from evaluate import HANG_S, Listed, WrongRun, fitting, mpirun, run
from programs import EDGE, CannotBuild, Grid, Program, find_tool

from peerway import _core
from peerway_measure.bench import machine
from peerway_measure.bench.peers import gpus

KAPPA = 0.15  # as in lattice.h
TOLERANCE = 1e-12  # of QUDA's solves, so that they have several hundred iterations
TESTS = ("dslash_test", "invert_test")
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=RELEASE", "-DQUDA_GPU_ARCH=sm_90", "-DQUDA_PRECISION=8", "-DQUDA_RECONSTRUCT=4",
    "-DQUDA_DIRAC_DEFAULT_OFF=ON", "-DQUDA_DIRAC_WILSON=ON", "-DQUDA_DOWNLOAD_EIGEN=OFF",
    "-DQUDA_BUILD_NATIVE_LAPACK=OFF", "-DQUDA_BUILD_NATIVE_FFT=OFF", "-DQUDA_INTERFACE_MILC=OFF",
    "-DQUDA_BUILD_ALL_TESTS=OFF", "-DQUDA_MPI=ON",
)  # fmt: skip
# Edits with which QUDA of October 2024 builds with CUDA 13 and without a network: the file, a regular
# expression, and what takes the place of each match.
CHANGES = (
    ("cmake/CPM.cmake", r"(?s).+", "function(CPMAddPackage)\nendfunction()\n"),
    ("lib/targets/cuda/device.cpp",
     r"(?s)void print_device_properties\(\)\n    \{.*?\n    \}\n", "void print_device_properties() { }\n"),
    ("lib/targets/cuda/quda_api.cpp", r"cudaMemPrefetchAsync\(ptr, count, dev_id, get_stream\(stream\)\)",
     "cudaMemPrefetchAsync(ptr, count, cudaMemLocation {dev_id < 0 ? cudaMemLocationTypeHost : "
     "cudaMemLocationTypeDevice, dev_id < 0 ? 0 : dev_id}, 0, get_stream(stream))"),
    ("include/targets/cuda/FFT_Plans.h",
     r".*CUFFT_(INCOMPLETE_PARAMETER_LIST|PARSE_ERROR|LICENSE_ERROR).*\n", ""),
    ("include/targets/cuda/block_reduce_helper.h", r", __COMPUTE_CAPABILITY__>", ">"),
)  # fmt: skip


@click.group(help=__doc__)
def main() -> None:
    """The commands below."""


def replaced(text: str, pattern: str, replacement: str) -> tuple[str, int]:
    """The text with every match replaced, as it is written, and the number of matches."""
    return re.subn(pattern, lambda _: replacement, text)


@main.command()
@click.option("--source", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--folder", type=click.Path(file_okay=False, path_type=Path), required=True)
@click.option("--eigen", default="/usr/include", show_default=True, help="Where eigen3/Eigen is.")
def build(source: Path, folder: Path, eigen: str) -> None:
    """Build QUDA's two tests in FOLDER from a copy of its SOURCE."""
    copy = folder.resolve() / "source"
    if copy.is_relative_to(source.resolve()):
        raise click.ClickException(f"{folder} is in {source}, which is copied there; give another folder")
    shutil.copytree(source, copy, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".git"))
    for name, pattern, replacement in CHANGES:
        file = copy / name
        text, changes = replaced(file.read_text(), pattern, replacement)
        if not changes:
            raise click.ClickException(
                f"{file} lacks what CUDA 13 refuses: {pattern}; is it another version?"
            )
        file.write_text(text)
    out = str(folder.resolve() / "build")
    try:
        options = [*OPTIONS, *mpi_options(), f"-DEIGEN_INCLUDE_DIR_HINTS={eigen}"]
    except CannotBuild as why:
        raise click.ClickException(str(why)) from None
    subprocess.run(["cmake", "-S", str(copy), "-B", out, "-G", "Ninja", *options], check=True)
    subprocess.run(["cmake", "--build", out, "--target", *TESTS], check=True)


def mpi_options() -> list[str]:
    """Options that build QUDA with the MPI that also starts it. Raises CannotBuild."""
    wrappers = {"C": "mpicc", "CXX": "mpicxx"}
    return [
        f"-DMPI_{language}_COMPILER={find_tool(wrapper, 'apt-get install libopenmpi-dev')}"
        for language, wrapper in wrappers.items()
    ]


def lattice_options(edge: int, grid: tuple[int, int]) -> list[str]:
    """Options that divide a lattice of edge⁴ sites as `xacc` does, over processes along t and z. Raises
    CannotBuild. QUDA's order is x, y, z, t, and its --dim is the lattice of a process.
    """
    processes = (1, 1, grid[1], grid[0])
    if any(edge % (2 * count) for count in processes):
        raise CannotBuild(
            f"QUDA needs an even number of sites in each direction of a process, which {edge}⁴ sites on "
            f"{grid[0]}x{grid[1]} do not give"
        )
    sites = [edge // count for count in processes]
    return ["--gridsize", *map(str, processes), "--dim", *map(str, sites)]


def test_command(folder: Path, test: str, edge: int, grid: tuple[int, int], *options: object) -> list[str]:
    """The command that runs one of QUDA's tests on a lattice of edge⁴ sites, without what starts the
    processes. Raises CannotBuild.
    """
    program = folder.resolve() / "build" / "tests" / test
    if not program.exists():
        raise CannotBuild(f"there is no {program}; first run: python apps/lqcd/quda.py build")
    precision = ["--prec", "double", "--prec-sloppy", "double", "--recon", "18", "--recon-sloppy", "18"]
    operator = ["--dslash-type", "wilson", "--kappa", str(KAPPA)]
    return [str(program), *lattice_options(edge, grid), *precision, *operator, *map(str, options)]


def output_of(folder: Path, command: list[str], ranks: int) -> str:
    """What a test on so many GPUs prints. QUDA keeps in FOLDER how it launches kernels and exchanges halos,
    once it has tried what is fastest. Raises CannotBuild, and WrongRun if the test fails.
    """
    job, settings = mpirun(ranks, "gpu")
    environment = {**os.environ, **settings, "QUDA_RESOURCE_PATH": str(folder.resolve())}
    try:
        done = subprocess.run(
            [*job, *command], env=environment, capture_output=True, text=True, timeout=HANG_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise WrongRun(f"{shlex.join(command)} did not end within {HANG_S:.0f} s") from None
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise WrongRun(f"{shlex.join(command)} ended with status {done.returncode}:\n{last}")
    return done.stdout


def number_in(pattern: str, text: str) -> float:
    """The number that a test prints where the pattern has its group. Raises WrongRun."""
    match = re.search(pattern, text)
    if match is None:
        raise WrongRun(f"QUDA's test printed nothing like {pattern!r}")
    return float(match[1])


def hop_of(text: str, ranks: int) -> dict[str, float]:
    """Time, rate and error of the operator on so many GPUs, from what dslash_test printed, and whether GPUs
    write to each other. The test prints the rate of one GPU.
    """
    return {
        "hop_us" if ranks == 1 else "hop_with_halo_us": number_in(r"([\d.]+)us per kernel call", text),
        **({"peer_to_peer": "Peer-to-peer enabled" in text} if ranks > 1 else {}),
        "hop_gflop": ranks * number_in(r"GFLOPS = ([\d.]+)", text),
        "deviation": number_in(r"L2 relative deviation = ([-+.\de]+)", text),
    }


def solve_of(text: str) -> dict[str, float]:
    """The time of an iteration, from what invert_test printed of its last solve."""
    solves = re.findall(r"Done: (\d+) iter / ([-+.\de]+) secs = ([-+.\de]+) Gflops", text)
    if not solves:
        raise WrongRun("QUDA's invert_test printed no solve")
    iterations, seconds, gflop = solves[-1]
    return {
        "iteration_us": float(seconds) / int(iterations) * 1e6,
        "iterations": int(iterations),
        "solver_gflop": float(gflop),
    }


def measure(folder: Path, edge: int, grid: tuple[int, int], repeat: int) -> dict[str, Any]:
    """Time the operator and a solve of QUDA. Raises CannotBuild and WrongRun."""
    hop = test_command(folder, "dslash_test", edge, grid, "--test", "Mat", "--niter", repeat)
    solve = test_command(
        folder, "invert_test", edge, grid,
        "--inv-type", "cg", "--solve-type", "normop", "--solution-type", "mat",
        "--tol", TOLERANCE, "--niter", 10000, "--nsrc", 3, "--verify", "false",
    )  # fmt: skip
    ranks = grid[0] * grid[1]
    of_hop, of_solve = hop_of(output_of(folder, hop, ranks), ranks), solve_of(output_of(folder, solve, ranks))
    return {"program": "quda", "grid": list(grid), "ranks": ranks, **of_hop, **of_solve}


def line_of(result: dict[str, Any], edge: int) -> str:
    """A run as one line of text."""
    with_halo = result.get("hop_with_halo_us")
    hop = f"{with_halo:8.2f} with halo" if with_halo else f"{result['hop_us']:8.2f}          "
    label = f"{result['program']:5s} {edge:3d}⁴ {result['grid'][0]}x{result['grid'][1]}"
    return f"{label}  hop {hop}  iteration {result['iteration_us']:9.2f} us"


@main.command("run")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--edges", type=Listed(EDGE), default="16,32", show_default=True)
@click.option(
    "--grids",
    type=Listed(Grid()),
    help="Processes along t and z, as 1x1,2x2. [default: up to one a GPU]",
)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--repeat", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def compare(
    *,
    folder: Path,
    edges: list[int],
    grids: list[tuple[int, int]] | None,
    rounds: int,
    repeat: int,
    out: Path,
) -> None:
    """Time QUDA and `xacc` in turn, and write a line for each run."""
    run_facts: dict[str, Any] = {
        "host": machine.known()["host"],
        "driver": machine.cuda_driver(),
        "version": _core.version(),
        "device": machine.device_name("cuda:0"),
        "command": machine.command().replace("quda.py", "python apps/lqcd/quda.py", 1),
        "settings": {name: value for name, value in os.environ.items() if name.startswith("QUDA_")},
    }
    options = ["--gauge", "random:1", "--sources", "3", "--repeat", str(repeat)]
    cases = [(edge, grid) for edge in edges for grid in grids or fitting(gpus.present().count)]
    with out.open("a") as file:
        for number in range(1, rounds + 1):
            for edge, grid in cases:
                program = Program("xacc", edge, "rows", grid, "gpu")
                try:
                    results = [measure(folder, edge, grid, repeat), run(program, options)]
                except (CannotBuild, WrongRun) as why:
                    raise click.ClickException(str(why)) from None
                for result in results:
                    lattice = {"record": "quda", "lattice": [edge] * 4, "round": number}
                    print(json.dumps({**result, **lattice, **run_facts}), file=file, flush=True)
                    click.echo(line_of(result, edge))


if __name__ == "__main__":
    main()
