"""The Linpack of Debian's hpcc, unmodified, over the torus: its residual passes, and the NIC carried it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from launching import Run
from mpi_stacks import Carried, check_lanes, environment, over

# HPL's 31 lines, and those of PTRANS; hpcc's other benchmarks derive their sizes from N.
INPUT = """\
input
of hpcc
HPL.out      output file name
8            device out
1            # of problem sizes
{n}          Ns
1            # of NBs
32           NBs
0            PMAP
1            # of grids
{p}          Ps
{q}          Qs
16.0         threshold
1            # of panel fact
2            PFACTs
1            # of recursive stopping criteria
4            NBMINs
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs
1            # of broadcasts
1            BCASTs
1            # of lookahead depths
1            DEPTHs
2            SWAP
64           swapping threshold
0            L1
0            U
1            Equilibration
8            memory alignment
##### separator #####
0            additional sizes for PTRANS
1200         N
0            additional blockings for PTRANS
40           NB
"""


@pytest.mark.parametrize(
    ("p", "q", "n"),
    [
        (1, 2, 300),
        pytest.param(2, 2, 300, marks=pytest.mark.long),
        pytest.param(2, 4, 300, marks=pytest.mark.long),
        pytest.param(2, 2, 1500, marks=pytest.mark.long),
    ],
)
def test_its_residual_passes_over_the_torus(run: Run, tmp_path: Path, p: int, q: int, n: int) -> None:
    program = shutil.which("hpcc")
    if program is None:
        pytest.skip("hpcc is not here: make setup as root")
    (tmp_path / "hpccinf.txt").write_text(INPUT.format(n=n, p=p, q=q))
    carried = Carried(tmp_path)
    command = over("openmpi-debian", carried.nic, p * q, program, UCX_LOG_LEVEL="info")
    done = run(command, cwd=tmp_path, env=environment(OPENBLAS_NUM_THREADS="1"))
    assert done.returncode == 0, done.stdout + done.stderr
    printed = (tmp_path / "hpccoutf.txt").read_text()
    (value,) = re.findall(r"^\|\|Ax-b\|\|_oo/\(eps.*\)= +(\S+) \.\.\.\.\.\. PASSED$", printed, re.MULTILINE)
    assert 0 < float(value) < 16
    assert re.search(rf"^WR\S+ +{n} +32 +{p} +{q} ", printed, re.MULTILINE)
    check_lanes(p * q, done.stdout + done.stderr)
    assert sum(carried.links().values()) > n * n * 4  # the panels alone
