"""Time QUDA's Wilson operator and its conjugate gradients beside those of `xacc`, in turn on one GPU.

    python apps/lqcd/quda.py build --source QUDA --folder build/quda      # with nvcc and Eigen 3
    python apps/lqcd/quda.py run --folder build/quda --edges 16,32 --out quda.jsonl

QUDA is built from a clone of its repository, with the Wilson operator alone, in double precision and
without compressed links, as the programs of this folder compute. Its own tests time the operator and compare
it with a plain implementation. The gauge fields are random in both, but not the same, so solves are compared
by the time of an iteration.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import click
from evaluate import Listed, WrongRun, run
from programs import EDGE, CannotBuild, Program

from peerway import _core
from peerway_measure.bench import machine

KAPPA = 0.15  # as in lattice.h
TOLERANCE = 1e-12  # of QUDA's solves, so that they have several hundred iterations
TESTS = ("dslash_test", "invert_test")
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=RELEASE", "-DQUDA_GPU_ARCH=sm_90", "-DQUDA_PRECISION=8", "-DQUDA_RECONSTRUCT=4",
    "-DQUDA_DIRAC_DEFAULT_OFF=ON", "-DQUDA_DIRAC_WILSON=ON", "-DQUDA_DOWNLOAD_EIGEN=OFF",
    "-DQUDA_BUILD_NATIVE_LAPACK=OFF", "-DQUDA_BUILD_NATIVE_FFT=OFF", "-DQUDA_INTERFACE_MILC=OFF",
    "-DQUDA_BUILD_ALL_TESTS=OFF",
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
    options = (*OPTIONS, f"-DEIGEN_INCLUDE_DIR_HINTS={eigen}")
    subprocess.run(["cmake", "-S", str(copy), "-B", out, "-G", "Ninja", *options], check=True)
    subprocess.run(["cmake", "--build", out, "--target", *TESTS], check=True)


def test_command(folder: Path, test: str, edge: int, *options: object) -> list[str]:
    """The command that runs one of QUDA's tests on a lattice of edge⁴ sites."""
    sizes = ["--dim", *[str(edge)] * 4, "--prec", "double", "--prec-sloppy", "double"]
    links = ["--recon", "18", "--recon-sloppy", "18"]
    operator = ["--dslash-type", "wilson", "--kappa", str(KAPPA)]
    return [str(folder / "build" / "tests" / test), *sizes, *links, *operator, *map(str, options)]


def output_of(folder: Path, command: list[str]) -> str:
    """What a test prints. It keeps its choice of launches in FOLDER. Raises CannotBuild if it was not built,
    and WrongRun if it fails.
    """
    if not Path(command[0]).exists():
        raise CannotBuild(f"there is no {command[0]}; first run: python apps/lqcd/quda.py build")
    environment = {**os.environ, "QUDA_RESOURCE_PATH": str(folder)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        last = "\n".join((done.stdout + done.stderr).strip().splitlines()[-8:])
        raise WrongRun(f"{' '.join(command)} ended with status {done.returncode}:\n{last}")
    return done.stdout


def number_in(pattern: str, text: str) -> float:
    """The number that a test prints where the pattern has its group. Raises WrongRun."""
    match = re.search(pattern, text)
    if match is None:
        raise WrongRun(f"QUDA's test printed nothing like {pattern!r}")
    return float(match[1])


def hop_of(text: str) -> dict[str, float]:
    """Time, rate and error of the operator, from what dslash_test printed."""
    return {
        "hop_us": number_in(r"([\d.]+)us per kernel call", text),
        "hop_gflop": number_in(r"GFLOPS = ([\d.]+)", text),
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


def measure(folder: Path, edge: int, repeat: int) -> dict[str, Any]:
    """Time the operator and a solve of QUDA."""
    hop = test_command(folder, "dslash_test", edge, "--test", "Mat", "--niter", repeat)
    solve = test_command(
        folder, "invert_test", edge, "--inv-type", "cg", "--solve-type", "normop", "--solution-type", "mat",
        "--tol", TOLERANCE, "--niter", 10000, "--nsrc", 3, "--verify", "false",
    )  # fmt: skip
    return {**hop_of(output_of(folder, hop)), **solve_of(output_of(folder, solve))}


@main.command("run")
@click.option("--folder", type=click.Path(exists=True, file_okay=False, path_type=Path), required=True)
@click.option("--edges", type=Listed(EDGE), default="16,32", show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--repeat", type=click.IntRange(1), default=1000, show_default=True)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), required=True)
def compare(folder: Path, edges: list[int], rounds: int, repeat: int, out: Path) -> None:
    """Time QUDA and `xacc` in turn, and write a line for each run."""
    run_facts = {"host": machine.known()["host"], "driver": machine.cuda_driver(), "version": _core.version()}
    run_facts |= {
        "device": machine.device_name("cuda:0"),
        "command": machine.command().replace("quda.py", "python apps/lqcd/quda.py", 1),
    }
    options = ["--gauge", "random:1", "--sources", "3", "--repeat", str(repeat)]
    with out.open("a") as file:
        for number in range(1, rounds + 1):
            for edge in edges:
                program = Program("xacc", edge, "rows", (1, 1), "gpu")
                try:
                    results = [{"program": "quda", **measure(folder, edge, repeat)}, run(program, options)]
                except (CannotBuild, WrongRun) as why:
                    raise click.ClickException(str(why)) from None
                for result in results:
                    lattice = {"record": "quda", "lattice": [edge] * 4, "round": number}
                    print(json.dumps({**result, **lattice, **run_facts}), file=file, flush=True)
                    click.echo(
                        f"{result['program']:5s} {edge:3d}⁴  hop {result['hop_us']:8.2f}  "
                        f"iteration {result['iteration_us']:9.2f} us"
                    )


if __name__ == "__main__":
    main()
