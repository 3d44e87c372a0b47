"""Build hpl and the parts that it loads into build/hpl: python apps/hpl/build.py.

A part is left out, with the reason, where this machine lacks what it stands on: MPI, or the compiler of CUDA
or HIP.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import click

from peerway_measure.bench.peers import places

sys.path.append(str(Path(__file__).resolve().parents[1]))

import compiling

HERE = Path(__file__).resolve().parent
OUT = compiling.ROOT / "build" / "hpl"
COMMON = ("-std=c++20", "-O3", "-fno-math-errno", "-fopenmp-simd", f"-I{compiling.HEADERS}")
PROGRAM = (
    "blas", "broadcast", "gpu_columns", "comm", "dat", "device_host", "factorize", "main", "options", "panel",
    "report", "solve", "staging", "swap", "system",
)  # fmt: skip
PARTS = ("program", "peerway", "mpi", "cuda", "hip")


@dataclass(frozen=True, slots=True)
class Part:
    """The program or a library that it loads; `compile` is the start of each compile command."""

    target: Path
    sources: list[Path]
    compile: list[str]
    link: list[str]


def build(part: Part) -> Path:
    """Compile what has changed and link; returns the program or the library."""
    folder = OUT / f"{part.target.name}.objects"
    folder.mkdir(parents=True, exist_ok=True)
    sources = compiling.at_once(part.sources, folder)
    commands = {folder / f"{source.name}.o": [*part.compile, "-c", str(source)] for source in sources}
    objects = compiling.make_all(commands, compiling.inputs_of(HERE))
    compiling.make(part.target, [part.compile[0], *map(str, objects), *part.link], objects)
    return part.target


def part(name: str, architecture: str = "sm_90", amd_architecture: str = "native") -> Part:
    """One part of the build, by name. Raises CannotBuild if this machine lacks what the part needs."""
    host = compiling.host_compiler()
    shared = [*compiling.WARNINGS, *COMMON, "-fPIC", *compiling.more_flags()]
    match name:
        case "program":
            sources = [HERE / f"{stem}.cpp" for stem in PROGRAM]
            command = [host, *compiling.WARNINGS, *COMMON, *compiling.more_flags()]
            return Part(OUT / "hpl", sources, command, ["-ldl", "-pthread"])
        case "peerway":
            link = ["-shared", "-pthread", *compiling.with_library()]
            return Part(OUT / "comm_peerway.so", [HERE / "comm_peerway.cpp"], [host, *shared], link)
        case "mpi":
            compiler = compiling.mpi_compiler()
            return Part(OUT / "comm_mpi.so", [HERE / "comm_mpi.cpp"], [compiler, *shared], ["-shared"])
        case "hip":
            flags = ["-std=c++20", "-O3", "-x", "hip", f"--offload-arch={amd_architecture}", "-fPIC"]
            return Part(
                OUT / "device_hip.so",
                [HERE / "device_gpu.cu"],
                [compiling.hip_compiler(), *flags],
                ["-shared", f"--offload-arch={amd_architecture}", "-ldl"],
            )
        case _:
            root = compiling.cuda_root()
            flags = ["-std=c++20", "-O3", f"-arch={architecture}", "-Xcompiler", "-fPIC"]
            link = ["-shared", *places.nvcc_flags(root), "-cudart", "static", "-ldl", "-lrt"]
            sources = [HERE / "device_gpu.cu", HERE / "panel_cuda.cu"]
            return Part(OUT / "device_cuda.so", sources, [str(root / "bin" / "nvcc"), *flags], link)


@click.command()
@click.option(
    "--only", type=click.Choice(PARTS), multiple=True, help="These parts. [default: all there can be]"
)
@click.option("--architecture", default="sm_90", show_default=True, help="Of the GPU.")
@click.option(
    "--amd-architecture", default="native", show_default=True, help="Of the AMD GPU, such as gfx90a."
)
def main(*, only: tuple[str, ...], architecture: str, amd_architecture: str) -> None:
    """Build the program and its parts."""
    for name in only or PARTS:
        try:
            wanted = part(name, architecture, amd_architecture)
        except compiling.CannotBuild as missing:
            if only:
                raise
            click.echo(f"without {name}: {missing.message}", err=True)
            continue
        click.echo(build(wanted))


if __name__ == "__main__":
    main()
