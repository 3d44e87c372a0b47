"""`--openacc-backend=gcc`: gcc compiles the acc directives for the host, and only xmp becomes calls."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from test_xacc_acc import checks_of
from test_xacc_runtime import compiled
from test_xacc_runtime import run as run_ranks
from xacc_compiled import PARTS, PEERWAY, PROGRAMS, SAMPLES, SMALL, run, sequential

GCC = ["cc", "--openacc-backend=gcc", "-foffload=disable", "-Wall", "-Wextra"]


@pytest.mark.parametrize(
    "sample",
    ["laplace", *(pytest.param(name, marks=pytest.mark.long) for name in SMALL if name != "laplace")],
)
def test_a_sample_gives_what_it_gives_without_directives(tmp_path: Path, sample: str) -> None:
    source = SAMPLES / f"{sample}.c"
    wanted = sequential(tmp_path, sample)
    compilation = run(PEERWAY, *GCC, "-O2", *SMALL[sample], source, "-lm", "-o", "program", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    for nodes in (1, 2, 4):
        done = run(PEERWAY, "run", "-n", nodes, "./program", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, wanted)


def test_every_directive_gives_what_a_sequential_program_has(tmp_path: Path) -> None:
    for source in (PROGRAMS / "xacc_cc").iterdir():
        shutil.copy(source, tmp_path)
    # gcc 12 does not know sections in private, nor features that are newer than OpenACC 2.6. With it, gmove
    # takes local arrays in host memory.
    sources = [f"{part}.c" for part in PARTS if part not in ("gmoves", "newer", "data_newer", "own")]
    compilation = run(PEERWAY, *GCC, "-O1", *sources, "-lm", "-o", "all", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    for nodes in (1, 2, 3):
        done = run(PEERWAY, "run", "-n", nodes, "--", "./all", folder=tmp_path, NODES=str(nodes))
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2])
def test_the_clause_acc_of_reflect_and_gmove(tmp_path: Path, nodes: int) -> None:
    for source in (PROGRAMS / "xacc_free").iterdir():
        shutil.copy(source, tmp_path)
    compilation = run(PEERWAY, *GCC, f"-DNODES={nodes}", "acc.c", "spoil.c", "-o", "acc", folder=tmp_path)
    assert (compilation.returncode, compilation.stderr) == (0, "")
    done = run(PEERWAY, "run", "-n", nodes, "./acc", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "0 wrong\n")


def test_acc_stays_and_a_construct_gets_the_address_on_the_device(tmp_path: Path) -> None:
    compilation = run(PEERWAY, *GCC, "--emit", SAMPLES / "laplace.c", folder=tmp_path)
    assert "#pragma acc parallel loop" in compilation.stdout
    assert "deviceptr(" in compilation.stdout
    assert "pwx_kernel" not in compilation.stdout
    assert "#pragma omp" not in compilation.stdout


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("outside"), "outside", "shapes")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_a_reflect_reaches_the_copy_that_another_run_time_made(
    ranks: int, outside: Path, fake_gpu: dict[str, str]
) -> None:
    assert checks_of(run_ranks(ranks, outside, **fake_gpu)) > 300


def test_an_array_that_the_other_run_time_does_not_have_is_an_error(
    outside: Path, fake_gpu: dict[str, str]
) -> None:
    done = run_ranks(1, outside, "absent", **fake_gpu)
    assert done.returncode == 1
    assert "prog.c:3: error: a is not present on the device; add it to a data construct" in done.stderr
