"""Builds the lattice QCD programs, each once for a lattice, a layout and a grid of processes.

    python apps/lqcd/programs.py --edge 16 --grid 1x1 --layout rows xacc cuda-mpi

A file's name depends on everything that its program is made of, so that a host without a compiler finds a
program that another host built.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import click

import peerway_xacc
from peerway_measure.bench.peers import gpus, places

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "lqcd"
HEADERS = ("gauge.h", "hop.h", "lattice.h", "program.h")
SOURCES = {
    "serial": "serial.c",
    "xacc": "xacc.c",
    "xacc-nowait": "xacc_nowait.c",
    "cuda-mpi": "cuda_mpi.cu",
    "openacc-mpi": "openacc_mpi.c",
}
LAYOUTS = ("rows", "sites")
# The newest GPU and PTX version that gcc 12 knows; the driver translates the PTX for the actual GPU.
OFFLOAD = "-foffload=nvptx-none=-O3 -misa=sm_80 -mptx=7.0"


class CannotBuild(Exception):
    """A program cannot be built.

    The message says what is missing, or what the compiler said, and what to do.
    """


@dataclass(frozen=True, slots=True)
class Program:
    """A program for a lattice of edge⁴ sites, with its processes along t and z, on "gpu" or "cpu"."""

    name: str
    edge: int
    layout: str
    grid: tuple[int, int]
    device: str

    @property
    def ranks(self) -> int:
        return self.grid[0] * self.grid[1]

    @property
    def defines(self) -> list[str]:
        rows = ["-DROWS"] if self.layout == "rows" else []
        return [f"-DEDGE={self.edge}", f"-DPT={self.grid[0]}", f"-DPZ={self.grid[1]}", *rows]

    @property
    def file(self) -> Path:
        inputs = "".join((HERE / name).read_text() for name in (SOURCES[self.name], *HEADERS))
        inputs += " ".join([*self.defines, self.device])
        if self.name.startswith("xacc"):  # depends on our compiler, and on the headers of its generated code
            inputs += "".join(file.read_text() for file in _compiler())
        return FOLDER / f"{self.name}-{self.edge}-{hashlib.sha256(inputs.encode()).hexdigest()[:12]}"


@functools.cache
def _compiler() -> list[Path]:
    package = Path(peerway_xacc.__file__).parent
    headers = ROOT / "xacc" / "include" / "peerway" / "xacc"
    return sorted([*package.rglob("*.py"), *headers.glob("*.h")])


def build(program: Program) -> Path:
    """Compile the program unless it exists, and return its file. Raises CannotBuild."""
    if not program.file.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        draft = program.file.with_suffix(f".{os.getpid()}")
        command, settings = _command(program)
        done = subprocess.run(
            [*command, *program.defines, str(HERE / SOURCES[program.name]), "-o", str(draft), "-lm"],
            env={**os.environ, **settings},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            last = "\n".join(done.stderr.strip().splitlines()[-6:])
            raise CannotBuild(f"{command[0]} ended with status {done.returncode}:\n{last}")
        draft.rename(program.file)
    return program.file


def _command(program: Program) -> tuple[list[str], dict[str, str]]:
    if program.name == "serial":
        return [os.environ.get("CC", "cc"), "-O3"], {}
    if program.name.startswith("xacc"):
        return [sys.executable, "-m", "peerway", "cc", "-O3"], {}
    if program.name == "cuda-mpi":
        return _nvcc(program), {}
    compiler = offloading_compiler() if program.device == "gpu" else os.environ.get("CC", "cc")
    offload = [OFFLOAD, "-no-pie"] if program.device == "gpu" else []
    wrapped = {"OMPI_CC": compiler, "MPICH_CC": compiler}
    return [find_tool("mpicc", "apt-get install libopenmpi-dev"), "-O3", "-fopenacc", *offload], wrapped


def _nvcc(program: Program) -> list[str]:
    root = places.cuda_root()
    if program.device == "cpu":
        raise CannotBuild("it runs on GPUs only")
    if root is None:
        raise CannotBuild("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    architecture = gpus.present().architecture or "sm_90"
    mpicxx = find_tool("mpicxx", "apt-get install libopenmpi-dev")
    link = places.nvcc_flags(root)
    return [
        str(root / "bin" / "nvcc"),
        "-ccbin",
        mpicxx,
        "-std=c++17",
        "-O3",
        f"-arch={architecture}",
        *link,
    ]


def find_tool(tool: str, install: str) -> str:
    """Find a tool on PATH, or else beside this Python. Raises CannotBuild."""
    path = places.tool(tool)
    if path is None:
        raise CannotBuild(f"{tool} was not found; {install}")
    return path


@functools.cache
def offloading_compiler() -> str:
    """Find a gcc that compiles OpenACC for GPUs. Raises CannotBuild."""
    for name in (os.environ.get("CC", "gcc"), "gcc", "gcc-12", "gcc-13", "gcc-14"):
        path = shutil.which(name)
        if path is None:
            continue
        command = [path, "-print-file-name=accel/nvptx-none/mkoffload"]
        if Path(
            subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        ).is_absolute():
            return path
    raise CannotBuild("no gcc here compiles OpenACC for GPUs; apt-get install gcc-12-offload-nvptx")


class Grid(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click alone
    """The numbers of processes along t and z, such as "2x4"."""

    name = "grid"

    def convert(
        self, value: object, param: click.Parameter | None, context: click.Context | None
    ) -> tuple[int, int]:
        """Parse a grid. Raises click.BadParameter."""
        numbers = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", str(value))
        if numbers is None:
            self.fail(f"{value!r} is no grid; give processes along t and z, as 2x4", param, context)
        return int(numbers[1]), int(numbers[2])


EDGE = click.IntRange(2, 256)


@click.command()
@click.option("--edge", type=EDGE, default=16, show_default=True, help="Sites in each direction.")
@click.option(
    "--grid", type=Grid(), default="1x1", show_default=True, help="Processes along t and z, as 2x2."
)
@click.option("--layout", type=click.Choice(LAYOUTS), default="rows", show_default=True)
@click.option("--device", type=click.Choice(["gpu", "cpu"]), help="[default: gpu where there is one]")
@click.argument("names", nargs=-1, type=click.Choice(list(SOURCES)), required=True)
def main(
    *, edge: int, grid: tuple[int, int], layout: str, device: str | None, names: tuple[str, ...]
) -> None:
    """Build programs, and print their files."""
    for name in names:
        where = device or ("gpu" if gpus.present().count else "cpu")
        try:
            click.echo(build(Program(name, edge, layout, grid, where)))
        except CannotBuild as why:
            raise click.ClickException(f"{name}: {why}") from None


if __name__ == "__main__":
    main()
