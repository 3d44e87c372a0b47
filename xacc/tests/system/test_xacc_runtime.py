"""The run-time library of XcalableACC: C programs call it as generated code does, on 1 to 8 processes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LIMIT

import peerway._core

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(__file__).parent / "programs" / "xacc"
LIBRARY = Path(peerway._core.__file__ or "").parent / "lib"
CC = [
    "cc",
    "-std=c11",
    "-D_XCALABLEMP=201411",
    "-O1",
    "-g",
    "-Wall",
    "-Wextra",
    "-Werror",
    f"-I{ROOT / 'library' / 'include'}",
    f"-I{ROOT / 'xacc' / 'include'}",
]


def compiled(folder: Path, *names: str) -> Path:
    program = folder / names[0]
    sources = [PROGRAMS / f"{name}.c" for name in names]
    libraries = [f"-L{LIBRARY}", f"-Wl,-rpath,{LIBRARY}", "-lpeerway_xacc", "-lpeerway"]
    subprocess.run([*CC, *map(str, sources), "-o", str(program), *libraries], check=True)
    return program


def run(ranks: int, *command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    launcher = [sys.executable, "-m", "peerway", "run", "-n", str(ranks)]
    return subprocess.run(
        [*launcher, *map(str, command)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env=os.environ | settings,
    )


@pytest.fixture(scope="module")
def scenarios(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("xacc"), "main", "shapes", "arrays", "reflect", "values", "moves")


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("xacc"), "wrong")


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
def test_each_call_gives_what_a_sequential_program_has(scenarios: Path, ranks: int) -> None:
    done = run(ranks, scenarios)
    assert done.returncode == 0, done.stderr
    checks, failed = (int(word) for word in done.stdout.split() if word.isdigit())
    assert failed == 0
    assert checks > 20000


def test_where_ranks_do_not_map_each_others_memory(scenarios: Path) -> None:
    done = run(4, scenarios, PEERWAY_PATHS="staged")
    assert done.returncode == 0, done.stderr


def test_without_a_launcher_there_is_one_node(scenarios: Path) -> None:
    done = subprocess.run([scenarios], capture_output=True, text=True, check=False, timeout=LIMIT)
    assert done.returncode == 0, done.stderr


WRONG = {
    "nodes": (
        3,
        "nodes p needs 7 processes, but there are 2; start more, or make it smaller",
    ),
    "none": (
        3,
        "nodes p has a size of 0; it must be at least 1",
    ),
    "unfixed": (
        6,
        "array a is aligned with template open, which is not fixed yet; do that before the array is"
        " allocated",
    ),
    "alignment": (
        12,
        "dimension 0 of a is aligned with indices 0 to 10 of template t, which has 0 to 9; make the"
        " template larger or change the alignment",
    ),
    "width": (
        20,
        "reflect of dimension 0 of a with a width of 1:2, but its shadow is 1:1; widen the shadow",
    ),
    "shadow": (
        21,
        "reflect of dimension 0 of a with a width of 0:1, but its shadow is 0:0; widen the shadow",
    ),
    "unrelated": (
        22,
        "parameter v: the argument is no distributed array; pass one, from its first element",
    ),
    "differs": (
        23,
        "parameter v: the argument is a, but the shadow of dimension 0 is 1:1, not 2:1; declare both alike",
    ),
    "expect": (
        24,
        "the code of a was generated for 99 elements in dimension 0 of a node's memory, but there are 7",
    ),
    "node": (
        25,
        "p(5) names node 5 of p, which has nodes 1 to 2 there",
    ),
    "section": (
        26,
        "gmove: subscripts 1 to 10 in dimension 0 of a at the right, which has 0 to 9",
    ),
    "outside": (
        33,
        "gmove with elements of a that node 2 owns, which does not execute it; do it outside of the task, or"
        " as gmove in or out",
    ),
    "freed": (
        36,
        "gmove in from a, which is no longer allocated at node 2; let a barrier, or post and wait, stand"
        " between this gmove and the end of a at that node",
    ),
    "ended": (
        38,
        "gmove in from a, which is no longer allocated at node 2; let a barrier, or post and wait, stand"
        " between this gmove and the end of a at that node",
    ),
    "operator": (
        27,
        "a reduction with an operator that its type does not have: bits are of integers, max and "
        "min not of complex numbers",
    ),
    "twice": (
        29,
        "reflect of a while the one before is under way; use wait_async first",
    ),
    "alone": (
        30,
        "index 4 is not in the on-clause",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_is_printed_once_and_ends_the_job(wrong: Path, name: str) -> None:
    done = run(2, wrong, name)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if not line.startswith(("peerway: ", "  ["))]
    line, text = WRONG[name]
    assert errors == [f"prog.c:{line}: error: {text}"]


def test_a_rank_that_ends_ends_the_job(wrong: Path) -> None:
    assert run(2, wrong, "exit").returncode == 3
