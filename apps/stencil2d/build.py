"""Build stencil2d and stencil2d_mpi into build/stencil2d: python apps/stencil2d/build.py --device cuda.

A file is compiled again when one of the sources or the command has changed since.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from peerway_measure.bench.peers import gpus

sys.path.append(str(Path(__file__).resolve().parents[1]))

import compiling

HERE = Path(__file__).resolve().parent
OUT = compiling.ROOT / "build" / "stencil2d"
SHARED = ("check.cpp", "field.cpp", "host.cpp", "lattice.cpp", "options.cpp", "program.cpp")
CUDA_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


@dataclass(frozen=True, slots=True)
class Target:
    """A program for a device, "host" or "cuda"; `mpi` is the C++ compiler of Open MPI or MPICH, or ""."""

    device: str
    mpi: str = ""
    architecture: str = ""

    @property
    def program(self) -> Path:
        return OUT / self.device / ("stencil2d_mpi" if self.mpi else "stencil2d")

    @property
    def sources(self) -> list[Path]:
        own = ["mpi.cpp"] if self.mpi else ["main.cpp", "plans.cpp"]
        device = ["cuda.cu"] if self.device == "cuda" else ["backend_host.cpp"]
        if self.device == "cuda" and not self.mpi:
            device.append("in_kernel.cu")
        return [HERE / name for name in (*SHARED, *own, *device)]


def build(target: Target) -> Path:
    """Compile what has changed and link; returns the program."""
    folder = target.program.parent / f"{target.program.name}.objects"
    folder.mkdir(parents=True, exist_ok=True)
    sources = compiling.at_once(target.sources, folder)
    commands = {folder / f"{source.name}.o": _compile(target, source) for source in sources}
    link = _link(target, list(commands))
    objects = compiling.make_all(commands, compiling.inputs_of(HERE))
    compiling.make(target.program, link, objects)
    return target.program


def _compile(target: Target, source: Path) -> list[str]:
    defines = ["-DSTENCIL2D_CUDA"] if target.device == "cuda" else []
    common = ["-std=c++20", "-O3", f"-I{compiling.HEADERS}", *defines, "-c", str(source)]
    if source.suffix == ".cu":
        nvcc = str(compiling.cuda_root() / "bin" / "nvcc")
        return [nvcc, f"-arch={target.architecture or gpus.present().architecture or 'sm_90'}", *common]
    host = target.mpi or compiling.host_compiler()
    return [host, *compiling.WARNINGS, *common, *compiling.more_flags()]


def _link(target: Target, objects: list[Path]) -> list[str]:
    library = [] if target.mpi else compiling.with_library()
    command = [target.mpi or compiling.host_compiler(), *map(str, objects), "-pthread", *library]
    if target.device == "cuda":
        folders = [compiling.cuda_root() / name for name in CUDA_FOLDERS]
        command += [f"-L{folder}" for folder in folders if folder.is_dir()]
        command += ["-lcudart_static", "-ldl", "-lrt"]
    return command


@click.command()
@click.option("--device", type=click.Choice(["host", "cuda"]), default="host", show_default=True)
@click.option("--architecture", default="", help="Such as sm_90. [default: that of the GPU here, else sm_90]")
@click.option("--only", type=click.Choice(["peerway", "mpi"]), help="One of the two programs.")
def main(*, device: str, architecture: str, only: str | None) -> None:
    """Build stencil2d (Peerway's variants) and stencil2d_mpi."""
    if only != "mpi":
        click.echo(build(Target(device, architecture=architecture)))
    if only != "peerway":
        click.echo(build(Target(device, compiling.mpi_compiler(), architecture)))


if __name__ == "__main__":
    main()
