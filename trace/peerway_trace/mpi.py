"""The library that records the calls of an MPI: compiled once for each MPI by its own mpicc, and kept in
the cache.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
import subprocess
from pathlib import Path

from peerway_trace.mpi_wrappers import source


class MpiError(Exception):
    """An MPI's calls cannot be recorded; the message says why."""


def library(mpicc: str) -> Path:
    """The library for the MPI of a compiler, from the cache or compiled now. Raises MpiError."""
    from peerway import _core

    here = Path(__file__).parent
    include = Path(_core.__file__).parent / "include"
    header = _run([mpicc, "-E", "-x", "c", "-include", "mpi.h", "/dev/null"], "has no mpi.h")
    text = source(header)
    read = [*sorted(here.glob("*.c")), *sorted((include / "peerway" / "trace").rglob("*.h"))]
    parts = (text, header, mpicc, *(file.read_text() for file in read))
    digest = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]
    folder = _cache() / "trace"
    target = folder / f"mpi-{digest}.so"
    if target.exists():
        return target
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{secrets.token_hex(8)}"
    draft.with_suffix(".c").write_text(text)
    try:
        words = ["-O2", "-w", "-fPIC", "-shared", "-std=gnu11", "-pthread", f"-I{here}", f"-I{include}"]
        _run(
            [mpicc, *words, str(draft.with_suffix(".c")), "-o", f"{draft}.so", "-ldl"],
            "cannot compile the wrappers",
        )
        Path(f"{draft}.so").replace(target)
    finally:
        draft.with_suffix(".c").unlink(missing_ok=True)
        Path(f"{draft}.so").unlink(missing_ok=True)
    return target


def _cache() -> Path:
    from peerway import _core

    setting = next(known for known in _core.settings() if known.name == "cache")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(setting.value) if setting.value else Path(base) / "peerway"


def _run(command: list[str], purpose: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise MpiError(
            f"{command[0]} cannot be run: {error.strerror}; --mpicc names the compiler of the MPI"
        ) from error
    if done.returncode != 0:
        raise MpiError(f"{command[0]} {purpose}:\n{done.stderr.strip()[-2000:]}")
    return done.stdout


def compiler_of(command: list[str]) -> str | None:
    """The mpicc beside the mpirun that a command names; None if it names none. Raises MpiError."""
    name = Path(command[0]).name
    if name.startswith("python") and command[1:3] == ["-m", "peerway"]:
        name, command = "peerway", command[2:]
    launcher = command[0] if re.match(r"mpi(run|exec)", name) else None
    if name == "peerway" and command[1:2] == ["mpirun"]:
        options = command[2 : command.index("--")] if "--" in command else command[2:]
        launcher = next(
            (options[i + 1] for i, word in enumerate(options[:-1]) if word == "--mpirun"), "mpirun"
        )
    if launcher is None:
        return None
    path = shutil.which(launcher)
    if path is None:
        return None  # the error will be reported when the command is run
    suffix = re.sub(r"^mpi(run|exec)", "", Path(path).name).replace(".hydra", "")
    for folder in dict.fromkeys([Path(path).parent, Path(path).resolve().parent]):
        if (mpicc := folder / f"mpicc{suffix}").exists():
            return str(mpicc)
    raise MpiError(
        f"there is no mpicc{suffix} beside {path} to compile the library that records MPI calls. Install "
        "the MPI's development package, name its compiler with --mpicc, or trace without MPI: --mpicc none"
    )
