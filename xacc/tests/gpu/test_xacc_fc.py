"""Fortran programs compiled by `peerway fc` on a real GPU.

A host without gfortran can run programs that were compiled elsewhere: PEERWAY_FORTRAN_PROGRAMS names a folder
with the files that `xacc/tests/shared/fc_carried.py FOLDER` makes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from fc_carried import HOP, carry
from xacc_compiled import PEERWAY, assert_alike, run


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    carried = os.environ.get("PEERWAY_FORTRAN_PROGRAMS")
    if carried:
        return Path(carried)
    if shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed, and PEERWAY_FORTRAN_PROGRAMS is not set")
    folder = tmp_path_factory.mktemp("fc")
    carry(folder)
    return folder


@pytest.mark.parametrize("nodes", [1, 2, 4])
@pytest.mark.parametrize("name", ["acc", "types", "laplace", "himeno", "cg", "ep"])
def test_loops_run_on_gpus(programs: Path, kernels: Path, tmp_path: Path, name: str, nodes: int) -> None:
    settings = {"PEERWAY_CACHE": str(kernels), "PEERWAY_ACC": "gpu"}
    command = [PEERWAY, "run", "-n", nodes, "--grace", 60, "--", programs / name]
    done = run(*command, folder=tmp_path, **settings)
    assert done.returncode == 0, done.stderr
    assert_alike(done.stdout, (programs / f"{name}.txt").read_text(), 1e-4)  # himeno is in single precision


def test_the_hop_has_the_bits_of_the_one_in_c(programs: Path, kernels: Path, tmp_path: Path) -> None:
    settings = {"PEERWAY_CACHE": str(kernels), "PEERWAY_ACC": "gpu"}
    texts = []
    for form in ("c", "fortran"):
        command = [PEERWAY, "run", "-n", 1, "--", programs / f"{HOP.name}-{form}"]
        done = run(*command, folder=tmp_path, **settings)
        assert done.returncode == 0, done.stderr
        texts.append(done.stdout)
    assert texts[0].startswith("bits ")
    assert texts[0] == texts[1]
