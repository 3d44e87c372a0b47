"""A rank is killed under a real MPI, or UCX, over the torus NIC: the others get an error, and the job
ends.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
from pathlib import Path

import pytest
from hosts import Network, address
from launching import Run, source_of
from mpi_stacks import build, environment, over

from peerway import _core
from peerway.launch.preload import preload

TRANSPORT = Path(_core.__file__).parent / "lib" / "libpeerway_uct.so"
SIZES = ["1000", "200000"]  # copied at once; fetched by the receiver


@pytest.fixture(scope="module")
def ucp_death(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/ucp_death.c, compiled with the system's UCX."""
    if not Path("/usr/include/ucp/api/ucp.h").exists():
        pytest.skip("no headers of UCX: apt-get install libucx-dev")
    target = tmp_path_factory.mktemp("ucp") / "ucp_death"
    flags = ["-O1", "-Wall", "-Wextra", "-std=c11", "-D_GNU_SOURCE"]
    command = ["cc", *flags, source_of("ucp_death.c"), "-o", target, "-lucp", "-lucs"]
    subprocess.run(command, check=True)
    return target


def outcome_of(program: Path, mode: str, run: Run, nic: str, *spaces: str) -> dict[str, object]:
    """The argument of UCX's error handler, and how the outstanding request ended."""
    settings = {"UCX_TLS": "peerway", "UCX_ADDRESS_VERSION": "v2", **preload(TRANSPORT, {})}
    job, secret = str(os.getpid()), secrets.token_hex(16)
    done = run(
        [str(program), mode, *spaces],
        env=environment(PEERWAY_NIC=nic, PEERWAY_NIC_JOB=job, PEERWAY_NIC_SECRET=secret, **settings),
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, object] = json.loads(done.stdout)
    return found


# The death of a silent peer is noticed by the heartbeats that UCX and the transport require.
REQUESTS = {"talking": "Connection reset by remote peer", "silent": "Success"}


@pytest.mark.parametrize("mode", REQUESTS)
def test_ucx_calls_the_error_handler(mode: str, ucp_death: Path, run: Run) -> None:
    found = outcome_of(ucp_death, mode, run, "torus")
    assert found["told"] == "Connection reset by remote peer"
    assert found["request"] == REQUESTS[mode]


@pytest.mark.parametrize("mode", ["silent", pytest.param("talking", marks=pytest.mark.long)])
def test_ucx_calls_the_error_handler_between_hosts(
    mode: str, ucp_death: Path, hosts: Network, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "torus.json"
    file.write_text(json.dumps({"extents": [2], "nodes": {"0": address(0), "1": address(1)}}))
    found = outcome_of(ucp_death, mode, run, f"torus?{file}", *hosts.names[:2])
    assert found["told"] == "Connection reset by remote peer"
    assert found["request"] == REQUESTS[mode]


@pytest.mark.parametrize("stack", ["openmpi-debian", "mpich-debian"])
def test_the_job_ends(stack: str, mpi_folder: Path, run: Run) -> None:
    program = build(stack, "mpi_death", mpi_folder)
    done = run(over(stack, "torus", 3, program, SIZES[1]), env=environment())
    assert done.returncode != 0
    assert "signal 9" in done.stdout + done.stderr or "was told" in done.stdout


@pytest.mark.parametrize("size", SIZES)
def test_ranks_that_take_errors_get_one(size: str, mpi_folder: Path, run: Run) -> None:
    """Open MPI's launcher lets the others continue if asked to; MPI's error gives no better reason."""
    program = build("openmpi-debian", "mpi_death", mpi_folder)
    command = over("openmpi-debian", "torus", 3, program, size, more=["-enable-recovery"])
    done = run(command, env=environment())
    assert sorted(done.stdout.splitlines()) == [
        f"rank {rank} was told: MPI_ERR_OTHER: known error not in list" for rank in (0, 2)
    ]
    assert "peerway: the connection to endpoint " in done.stderr
