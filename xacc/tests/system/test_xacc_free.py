"""A reflect of an array that was not written since the last one does nothing; else it is executed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from xacc_compiled import PEERWAY, PROGRAMS, run


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = tmp_path_factory.mktemp("xacc_free")
    for source in (PROGRAMS / "xacc_free").iterdir():
        shutil.copy(source, copy)
    return copy


# Short runs have each program, each device and each number of nodes.
ALWAYS = {("main", "CPUs", 1), ("main", "CPUs", 4), ("acc", "CPUs", 2), ("acc", "a GPU", 4)}


@pytest.mark.parametrize(
    ("program", "on", "nodes"),
    [
        pytest.param(program, on, nodes, marks=[] if (program, on, nodes) in ALWAYS else [pytest.mark.long])
        for program, on in (("main", "CPUs"), ("acc", "CPUs"), ("acc", "a GPU"))
        for nodes in (1, 2, 4)
    ],
)
def test_a_spoiled_halo_stays_until_something_writes_the_array(
    folder: Path, fake_gpu: dict[str, str], program: str, on: str, nodes: int
) -> None:
    executable = f"{program}{nodes}"
    options = [f"-DNODES={nodes}", *(["-DGPU"] if on == "a GPU" else [])]
    done = run(PEERWAY, "cc", "-Wall", *options, f"{program}.c", "spoil.c", "-o", executable, folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    settings = fake_gpu if on == "a GPU" else {"PEERWAY_ACC": "host"}
    done = run(PEERWAY, "run", "-n", nodes, "--", f"./{executable}", folder=folder, **settings)
    assert (done.returncode, done.stdout, done.stderr) == (0, "0 wrong\n", "")
