"""Helpers of the tests between real processes: C programs built with the library, and ways to run them."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from rank_server import Rank

ROOT = Path(__file__).resolve().parents[2]
# Read here, because the tests remove the PEERWAY_ variables.
BUILD = Path(os.environ.get("PEERWAY_BUILD", ROOT / "build" / "editable"))
LIMIT = 600.0  # seconds after which a test program counts as hanging, even on a busy machine

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@contextlib.contextmanager
def made_once(folder: Path) -> Iterator[bool]:
    """Whether the caller must fill the folder. A lock makes sure that only one process does so,
    and only once.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "made").open("a+") as marker:
        fcntl.flock(marker, fcntl.LOCK_EX)
        marker.seek(0, os.SEEK_END)
        make = marker.tell() == 0
        yield make
        if make:
            marker.write("made\n")


def seeing(first: str, second: str) -> list[str]:
    """Words to put before a program so that each of two ranks sees its own GPUs."""
    choose = f'[ "$PEERWAY_LOCAL_RANK" = 0 ] && gpus={first} || gpus={second}'
    return ["sh", "-c", f'{choose}; CUDA_VISIBLE_DEVICES=$gpus exec "$@"', "sh"]


def source_of(program: str) -> Path:
    """The file or folder of this name among the tests' programs."""
    (path,) = [
        path for folder in ("tests", "*/tests") for path in ROOT.glob(f"{folder}/system/programs/{program}")
    ]
    return path


def built(name: str) -> Path:
    """A file that `make build` made, in PEERWAY_BUILD or the folder of the editable installation.

    Without the file the test fails instead of being skipped: otherwise nobody would notice that a file has
    moved.
    """
    file = BUILD / name
    if not file.exists():
        pytest.fail(f"there is no {file}: run `make build`, or set PEERWAY_BUILD")
    return file


def library_folder() -> Path:
    """The folder with libpeerway.so."""
    return built("library/src/libpeerway.so").parent


def compile_program(name: str, target: Path, *options: str, compiler: str = "cc") -> Path:
    library = library_folder()
    command = [
        compiler,
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        f"-I{ROOT / 'library' / 'include'}",
        str(source_of(f"{name}.c")),
        *options,
    ]
    command += ["-o", str(target), f"-L{library}", "-lpeerway", f"-Wl,-rpath,{library}"]
    subprocess.run(command, check=True)
    return target


def compile_double(name: str, folder: Path) -> Path:
    """Build a double of the C++ tests as a library, without the sanitizers of the tests' own build."""
    library = folder / f"{name}.so"
    source = ROOT / "library" / "tests" / "unit" / name / f"{name}.cpp"
    flags = ["-std=c++20", "-O1", "-shared", "-fPIC", "-Wno-unknown-pragmas"]
    flags += [f"-I{ROOT / 'library' / 'src'}", f"-I{ROOT / 'library' / 'include'}"]
    if name == "fake_nvrtc":
        flags.append(f'-DFAKE_NVRTC_OPTIONS="{precompiled_for_kernels(source.parent, folder)}"')
        flags.append(f'-DFAKE_NVRTC_CACHE="{folder}"')
    subprocess.run(["c++", *flags, str(source), "-o", str(library)], check=True)
    return library


def precompiled_for_kernels(headers: Path, folder: Path) -> str:
    """The options with which gcc uses a precompiled header for kernels on the CPU, compiled once in
    `folder`.
    """
    options = ["-std=c++20", "-O0", "-fPIC", "-w", "-fno-threadsafe-statics"]  # most kernels run once
    header = headers / "device_on_cpu.h"
    compiled = folder / f"{header.name}.gch"
    subprocess.run(["cc", *options, "-x", "c++-header", str(header), "-o", str(compiled)], check=True)
    return shlex.join([*options, f"-I{folder}", f"-I{headers}", f"-I{ROOT / 'library' / 'include'}"])


def compile_nic(source: Path, folder: Path) -> Path:
    """Build a NIC's plugin, which needs only nic.h."""
    library = folder / f"lib{source.stem}.so"
    compiler = ["c++", "-std=c++20"] if source.suffix == ".cpp" else ["cc", "-std=c11", "-D_GNU_SOURCE"]
    flags = ["-O1", "-Wall", "-Wextra", "-shared", "-fPIC", "-pthread", f"-I{ROOT / 'library' / 'include'}"]
    subprocess.run([*compiler, *flags, str(source), "-o", str(library)], check=True)
    return library


def clean_environment(**extra: str) -> dict[str, str]:
    """The environment without variables of a launcher that started the tests; ranks wait as conftest.py
    says.
    """
    launchers = ("PEERWAY_", "OMPI_", "PMIX_", "PMI_", "SLURM_")
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == "PEERWAY_WAIT" or not name.startswith(launchers)
    }
    return {**kept, **extra}


def peerway(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "peerway", *arguments]


def run_command(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    timeout: float = LIMIT,
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. `peerway` is forked from a server that has imported what it needs, unless
    PYTHONPATH may name other modules.
    """
    variables = os.environ if environment is None else environment
    if list(command[:3]) == peerway() and "PYTHONPATH" not in variables:
        script = str(Path(sys.executable).with_name("peerway"))
        forked = Rank([script, *command[3:]], variables, "commands", str(folder or ""))
        return subprocess.CompletedProcess(command, *forked.completed(timeout))
    return subprocess.run(
        command, env=variables, cwd=folder, capture_output=True, text=True, check=False, timeout=timeout
    )


def ranks(program: str, count: int = 2) -> str:
    """Run a Python program as ranks, which must all succeed; returns their output."""
    command = peerway("run", "-n", str(count), "--", sys.executable, "-c", textwrap.dedent(program))
    done = run_command(command)
    assert done.returncode == 0, done.stderr
    return done.stdout
