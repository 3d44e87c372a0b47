"""Compiles programs with `peerway cc`, for the tests with several processes and those on GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "xacc" / "tests" / "system" / "programs"
SAMPLES = ROOT / "examples" / "xacc"
PEERWAY = Path(sys.executable).with_name("peerway")
PARTS = (
    "mapping", "communication", "compute", "clauses", "own", "data", "operators", "between", "declarators",
    "intrinsics", "newer", "data_newer", "main",
)  # fmt: skip
SMALL: dict[str, list[str]] = {"laplace": [], "himeno": [], "cg": [], "stream": ["-DN=100000"]}
LIMIT = 600  # seconds after which a program counts as hanging


def run(*command: object, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


def compiled(folder: Path, *words: object, errors: str = "") -> Path:
    """Run `peerway cc` with these words, and return the program.

    It must print nothing, or at least `errors`.
    """
    compilation = run(PEERWAY, "cc", *words, "-lm", "-o", "program", folder=folder)
    assert compilation.returncode == 0, compilation.stderr
    assert compilation.stderr == errors if errors == "" else errors in compilation.stderr
    return folder / "program"


def of_all_directives(folder: Path, *options: str) -> Path:
    """Compile each part of xacc_cc separately, and link them to one program."""
    for source in (PROGRAMS / "xacc_cc").iterdir():
        shutil.copy(source, folder)
    for part in PARTS:
        words = ["-Wall", "-Wextra", "-O1", "-g", *options, "-c", f"{part}.c"]
        compilation = run(PEERWAY, "cc", *words, folder=folder)
        assert (compilation.returncode, compilation.stdout, compilation.stderr) == (0, "", "")
    return compiled(folder, *options, *(f"{part}.o" for part in PARTS))


def sequential(folder: Path, sample: str) -> str:
    """The output of a sample that is compiled without its directives."""
    plain = [
        "gcc",
        "-O2",
        *SMALL[sample],
        "-I",
        ROOT / "xacc" / "include" / "peerway" / "xacc",
        SAMPLES / f"{sample}.c",
    ]
    assert run(*plain, "-lm", "-o", "plain", folder=folder).returncode == 0
    wanted = run("./plain", folder=folder)
    assert wanted.returncode == 0
    return wanted.stdout


def assert_alike(text: str, wanted: str, relative: float = 1e-5) -> None:
    """The words of two texts are the same, and numbers nearly so."""
    words, right = text.split(), wanted.split()
    assert len(words) == len(right), text
    for word, expected in zip(words, right, strict=True):
        try:
            near = abs(float(word) - float(expected)) <= relative * abs(float(expected))
        except ValueError:
            near = False
        assert word == expected or near, f"{word} instead of {expected} in\n{text}"
