"""Whole programs through `peerway cc`: each directive on several numbers of processes, and the samples."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from launching import LIMIT, PROGRAMS, ROOT

SAMPLES = ROOT / "examples" / "xacc"
PEERWAY = Path(sys.executable).with_name("peerway")
PARTS = ("mapping", "communication", "compute", "main")


def run(*command: object, folder: Path, **settings: str) -> subprocess.CompletedProcess[str]:
    words = [str(word) for word in command]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **settings}
    return subprocess.run(
        words, cwd=folder, env=environment, capture_output=True, text=True, timeout=LIMIT, check=False
    )


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The parts of xacc_cc, each compiled by itself, linked together."""
    folder = tmp_path_factory.mktemp("xacc")
    for source in (PROGRAMS / "xacc_cc").iterdir():
        shutil.copy(source, folder)
    for part in PARTS:
        made = run(PEERWAY, "cc", "-Wall", "-Wextra", "-O1", "-g", "-c", f"{part}.c", folder=folder)
        assert (made.returncode, made.stdout, made.stderr) == (0, "", "")
    objects = [f"{part}.o" for part in PARTS]
    made = run(PEERWAY, "cc", *objects, "-lm", "-o", "all", folder=folder)
    assert (made.returncode, made.stderr) == (0, "")
    return folder / "all"


@pytest.mark.parametrize(("nodes", "threads"), [(1, 2), (2, 1), (3, 1), (4, 1), (8, 1)])
def test_every_directive_gives_what_a_sequential_program_has(program: Path, nodes: int, threads: int) -> None:
    done = run(
        PEERWAY, "run", "-n", nodes, "--", program,
        folder=program.parent, NODES=str(nodes), OMP_NUM_THREADS=str(threads),
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


@pytest.mark.parametrize("nodes", [1, 2, 4])
def test_every_directive_gives_the_same_on_a_gpu(program: Path, fake_gpu: dict[str, str], nodes: int) -> None:
    settings = {**fake_gpu, "NODES": str(nodes)}
    done = run(PEERWAY, "run", "-n", nodes, "--", program, folder=program.parent, **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{nodes} nodes, 0 wrong\n", "")


SMALL = {"laplace": [], "himeno": [], "cg": [], "stream": ["-DN=100000"]}


@pytest.mark.parametrize("sample", SMALL)
def test_a_sample_gives_on_all_numbers_of_nodes_what_it_gives_without_directives(
    tmp_path: Path, sample: str, fake_gpu: dict[str, str]
) -> None:
    source = SAMPLES / f"{sample}.c"
    plain = ["gcc", "-O2", *SMALL[sample], "-I", ROOT / "include" / "peerway" / "xacc", source]
    assert run(*plain, "-lm", "-o", "plain", folder=tmp_path).returncode == 0
    wanted = run("./plain", folder=tmp_path)
    assert wanted.returncode == 0
    made = run(PEERWAY, "cc", "-O2", *SMALL[sample], source, "-lm", "-o", "made", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    for nodes in (1, 2, 4):
        done = run(PEERWAY, "run", "-n", nodes, "./made", folder=tmp_path)
        assert (done.returncode, done.stdout) == (0, wanted.stdout)
    if sample == "laplace":  # its 7,616 steps are long on a GPU that is none
        return
    for nodes in (1, 2):
        done = run(PEERWAY, "run", "-n", nodes, "./made", folder=tmp_path, **fake_gpu)
        assert (done.returncode, done.stdout) == (0, wanted.stdout)


def test_cg_of_class_w_has_the_zeta_that_nasa_publishes(tmp_path: Path) -> None:
    made = run(PEERWAY, "cc", "-O2", "-DCLASS_W", SAMPLES / "cg.c", "-lm", "-o", "cg", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    for nodes in (1, 2, 4):
        done = run(PEERWAY, "run", "-n", nodes, "./cg", folder=tmp_path, PEERWAY_ACC="host")
        assert (done.returncode, done.stdout) == (0, "zeta 10.3625950871, as published\n")


def test_laplace_on_a_gpu_takes_the_steps_that_it_takes_on_cpus(
    tmp_path: Path, fake_gpu: dict[str, str]
) -> None:
    made = run(PEERWAY, "cc", "-O2", SAMPLES / "laplace.c", "-lm", "-o", "laplace", folder=tmp_path)
    assert (made.returncode, made.stderr) == (0, "")
    wanted = run("./laplace", "100", folder=tmp_path, PEERWAY_ACC="host")
    for nodes in (1, 2):
        done = run(PEERWAY, "run", "-n", nodes, "--", "./laplace", "100", folder=tmp_path, **fake_gpu)
        assert (done.returncode, done.stdout) == (wanted.returncode, wanted.stdout)
