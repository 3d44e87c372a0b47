"""Compiles a peer's program when it is first needed, into a cache whose key includes everything that the
program depends on.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
COMPILE_S = 300.0


class BuildError(RuntimeError):
    """A program could not be built. The message is the compiler's first error. `remedy` says what to do, if
    installing what the program needs would not help.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.remedy = remedy


def cache_folder() -> Path:
    """The folder of built programs, beside Peerway's compiled device code."""
    home = os.environ.get("PEERWAY_CACHE")
    if home:
        return Path(home) / "peers"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "peerway" / "peers"


def build(source: str, compiler: list[str], flags: list[str], depends_on: str) -> Path:
    """Compile `source` (a file in programs/) unless the cache has it, and return the program.

    The words of `compiler` come before the source, `flags` (libraries) after it. `depends_on` is the version
    of the library that the program is built against. Raises BuildError.
    """
    key = _key(source, [*compiler, *flags], _version_of(compiler[0]) + depends_on)
    folder = cache_folder()
    built = folder / f"{Path(source).stem}-{key}"
    if built.is_file():
        return built
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as draft:
            output = Path(draft) / "program"
            _compile([*compiler, str(PROGRAMS / source), "-o", str(output), *flags])
            output.replace(built)
    except OSError as error:
        why = f"cannot keep compiled programs in {folder}: {error.strerror or error}"
        raise BuildError(why, "set PEERWAY_CACHE to a folder that you may write to") from None
    return built


def first_error(text: str) -> str:
    """The first line of a compiler's output that says what is wrong."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wrong = [
        line for line in lines if re.search(r"\berror\b|cannot find|undefined reference", line, re.IGNORECASE)
    ]
    return (wrong or lines or ["it printed nothing"])[0]


def _compile(command: list[str]) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=COMPILE_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise BuildError(f"{command[0]} did not end within {COMPILE_S:.0f} s") from None
    except OSError as error:
        raise BuildError(f"{command[0]} cannot be started: {error.strerror}") from None
    if done.returncode:
        raise BuildError(f"{Path(command[0]).name}: {first_error(done.stderr + done.stdout)}")


def _key(source: str, command: list[str], versions: str) -> str:
    digest = hashlib.sha256("\0".join([source, *command, versions]).encode())
    for path in sorted(PROGRAMS.iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _version_of(compiler: str) -> str:
    try:
        done = subprocess.run(
            [compiler, "--version"], capture_output=True, text=True, timeout=30, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BuildError(f"{compiler} cannot be started: {error}") from None
    return done.stdout
