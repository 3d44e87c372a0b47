"""The secret of a job under `peerway mpirun`: all ranks have it, and no command line of this host does."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from hosts import Network, mpi_words
from launching import LIMIT
from mpi_stacks import STACKS, environment, needs_daemons, over

# Prints its secret to a file that only its user can read, and waits until it was looked at.
RANK = """#!/bin/sh
umask 077
cd {folder} || exit 1
rank=${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}}
echo "$PEERWAY_NIC_SECRET" > said.$rank.part && mv said.$rank.part said.$rank
for turn in $(seq 300); do [ -e go ] && exit 0; sleep 0.1; done
exit 1
"""


def looked_at(command: list[str], folder: Path) -> tuple[list[str], dict[int, str]]:
    """The secrets of two ranks, and every command line on this host meanwhile."""
    job = subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    try:
        outputs = [folder / f"said.{rank}" for rank in range(2)]
        deadline = time.monotonic() + LIMIT
        while (
            not all(file.exists() for file in outputs) and job.poll() is None and time.monotonic() < deadline
        ):
            time.sleep(0.05)
        assert all(file.exists() for file in outputs), f"the job ended with status {job.poll()}"
        lines = command_lines()
        (folder / "go").touch()
        assert job.wait(LIMIT) == 0
        return [file.read_text().strip() for file in outputs], lines
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
        job.communicate()


def command_lines() -> dict[int, str]:
    by_process = {}
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            words = (folder / "cmdline").read_bytes()
            assert (folder / "environ").stat().st_mode & 0o077 == 0
        except OSError:
            continue  # it has ended
        by_process[int(folder.name)] = words.replace(b"\0", b" ").decode(errors="replace")
    return by_process


def check(output: list[str], lines: dict[int, str]) -> None:
    assert len(set(output)) == 1
    assert len(output[0]) == 32
    assert int(output[0], 16) != 0
    assert any("PEERWAY_NIC_JOB" in line for line in lines.values())  # so the command lines were really read
    leaks = [line for line in lines.values() if output[0] in line]
    assert not leaks, leaks


def program(folder: Path) -> Path:
    script = folder / "rank"
    script.write_text(RANK.format(folder=folder))
    script.chmod(0o700)
    return script


# Each MPI, and each of its builds, once in short runs.
WITHIN_A_HOST = [
    pytest.param(stack, marks=[pytest.mark.long] if stack.endswith("wheel") else []) for stack in STACKS
]
BETWEEN_HOSTS = [
    pytest.param(stack, marks=[] if stack.endswith("wheel") else [pytest.mark.long]) for stack in STACKS
]


@pytest.mark.parametrize("stack", WITHIN_A_HOST)
def test_no_command_line_has_the_secret(stack: str, tmp_path: Path) -> None:
    if not STACKS[stack][0].exists():
        pytest.skip(f"{STACKS[stack][0]} is not here: make setup as root")
    check(*looked_at(over(stack, "torus", 2, program(tmp_path)), tmp_path))


@pytest.mark.parametrize("stack", BETWEEN_HOSTS)
def test_no_command_line_has_the_secret_between_hosts(stack: str, hosts: Network, tmp_path: Path) -> None:
    if not STACKS[stack][0].exists():
        pytest.skip(f"{STACKS[stack][0]} is not here: make setup as root")
    needs_daemons(stack)
    there = mpi_words(stack.startswith("openmpi"), hosts.names[:2], hosts.agent(tmp_path))
    command = over(stack, "torus", 2, program(tmp_path), more=there)
    check(*looked_at(hosts.from_head(command), tmp_path))
