"""Whole programs through `peerway fc`: every directive on several numbers of processes, and the example."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from xacc_compiled import PEERWAY, PROGRAMS, SAMPLES, run

pytestmark = pytest.mark.skipif(
    shutil.which("gfortran") is None,
    reason="gfortran is not installed (Debian: apt install gfortran), which peerway fc compiles with",
)
FORTRAN = PROGRAMS / "xacc_fc"


def compiled(folder: Path, *words: object) -> Path:
    """What `peerway fc` makes of these words; neither it nor the Fortran compiler warns."""
    made = run(PEERWAY, "fc", *words, "-o", "made", folder=folder)
    assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    return folder / "made"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compiled once, by -Wall and with the checks of bounds that gfortran has."""
    folder = tmp_path_factory.mktemp("fc")
    return compiled(folder, "-Wall", "-O1", "-g", "-fcheck=bounds,do,mem,pointer", FORTRAN / "directives.f90")


@pytest.mark.parametrize(
    "nodes", [1, 4, *(pytest.param(nodes, marks=pytest.mark.long) for nodes in (2, 3, 8))]
)
def test_every_directive_gives_what_a_sequential_program_has(program: Path, nodes: int) -> None:
    done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=program.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


def test_the_example_is_a_sequential_program_without_its_directives(tmp_path: Path) -> None:
    plain = run("gfortran", "-O2", SAMPLES / "laplace.f90", "-o", "plain", folder=tmp_path)
    assert plain.returncode == 0, plain.stderr
    parallel = compiled(tmp_path, "-O2", SAMPLES / "laplace.f90")
    done = run(PEERWAY, "run", "-n", 2, "--", parallel, folder=tmp_path)
    assert (done.stdout, done.stderr) == (run("./plain", folder=tmp_path).stdout, "")
