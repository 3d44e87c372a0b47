"""apps/mpi: the comparison tool, with one transport and few iterations."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from launching import ROOT, Run

from peerway_measure import records

TOOL = ROOT / "apps" / "mpi" / "compare.py"
pytestmark = pytest.mark.skipif(
    not all(shutil.which(name) for name in ("mpirun.openmpi", "mpicc.openmpi")),
    reason="Debian's Open MPI is not here: make setup as root",
)


@pytest.mark.long
def test_every_byte_is_right_and_every_size_has_a_record(run: Run, tmp_path: Path) -> None:
    done = run([sys.executable, str(TOOL), "--transport", "nic:torus", "--quick", "--out", str(tmp_path)])
    assert done.returncode == 0, done.stdout + done.stderr
    found = records.read(tmp_path / "records.jsonl")
    assert {record.via for record in found} == {"nic:torus"}
    assert {record.test for record in found} == {"mpi_latency", "mpi_bw", "mpi_fresh_bw"}
    assert all(record.validated for record in found)
    assert "| `nic:torus` |" in done.stdout


def test_mistakes_are_told(run: Run) -> None:
    done = run([sys.executable, str(TOOL), "--mpirun", "nosuchmpirun"])
    assert done.returncode == 1
    assert "there is no command nosuchmpirun" in done.stderr
