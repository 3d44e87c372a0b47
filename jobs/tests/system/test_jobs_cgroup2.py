"""The agent reads a step in version 2 cgroups of this machine's kernel, in Slurm's layout.

Slurm's own plugin for version 2 refuses a machine that also has version 1 hierarchies, so the test makes the
folders itself. Controllers that version 1 uses have no files in version 2.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from peerway_jobs.agent.cgroups import Cgroups
from peerway_jobs.agent.processes import Processes
from peerway_jobs.agent.steps import Step, Steps

MIB = 1 << 20
JOB = 4_000_000_041
# One task computes, one holds memory, and one leaves the process tree of its slurmstepd.
DAEMON = f"""
import ctypes, os, subprocess, sys, time
ctypes.CDLL(None).prctl(15, b"slurmstepd", 0, 0, 0)
python = sys.argv[1]  # it has no name for itself, being named as a slurmstepd
busy = subprocess.Popen([python, "-c", "while True: pass"])
holds = "data = b'x' * ({100 * MIB}); import time; print(flush=True); time.sleep(600)"
large = subprocess.Popen([python, "-c", holds], stdout=subprocess.PIPE)
large.stdout.readline()
gone = subprocess.run(["sh", "-c", "setsid sleep 600 >&- & echo $!"], stdout=subprocess.PIPE)
print(busy.pid, large.pid, int(gone.stdout), flush=True)
time.sleep(600)
"""


def mounted() -> Path | None:
    """The mount point of the kernel's version 2 hierarchy."""
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] == "cgroup2":
            return Path(before.split()[4])
    return None


@dataclass
class Made:
    """The step's folder and its processes."""

    folder: Path
    daemon: int
    tasks: list[int]


@pytest.fixture
def cgroups() -> Iterator[Made]:
    top = mounted()
    if top is None or os.geteuid() != 0:
        pytest.skip("this takes root and a mounted hierarchy of version 2: mount -t cgroup2 none FOLDER")
    whole = top / f"peerway-test-{os.getpid()}.scope"
    step = whole / f"job_{JOB}" / "step_batch"
    parts = [whole, whole / f"job_{JOB}", step, step / "slurm", step / "user", step / "user" / "task_0"]
    for part in parts:
        part.mkdir()
    for part in parts[:3]:  # as Slurm does; no controllers if version 1 uses them
        offered = (part / "cgroup.controllers").read_text().split()
        wanted = " ".join(f"+{each}" for each in ("cpu", "memory") if each in offered)
        (part / "cgroup.subtree_control").write_text(wanted)
    title = f'exec -a "slurmstepd: [{JOB}.batch]" {shlex.quote(sys.executable)} -c "$0" "$1"'
    command = ["bash", "-c", title, DAEMON, sys.executable]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    tasks = [int(word) for word in program.stdout.readline().split()]
    (step / "slurm" / "cgroup.procs").write_text(str(program.pid))
    for task in tasks:
        (step / "user" / "task_0" / "cgroup.procs").write_text(str(task))
    try:
        yield Made(step, program.pid, tasks)
    finally:
        (whole / "cgroup.kill").write_text("1")
        program.communicate()
        for part in reversed(parts):
            while "populated 1" in (part / "cgroup.events").read_text():
                time.sleep(0.01)
            part.rmdir()


def sampled(steps: Steps, processes: Processes) -> Step:
    processes.scan()
    (found,) = [each for each in steps.sample() if each.job == JOB]
    return found


def test_a_step_in_cgroups_of_version_2(cgroups: Made) -> None:
    processes = Processes("/")
    steps = Steps(processes, Cgroups("/"))
    first = sampled(steps, processes)
    assert first.cgroup is not None
    assert (first.cgroup.version, first.cgroup.folders) == (2, {"all": str(cgroups.folder)})
    assert first.step == "batch"
    # The last task has left the tree of its slurmstepd, but not the cgroup.
    assert cgroups.tasks[2] not in processes.below(cgroups.daemon)
    assert first.pids == sorted(cgroups.tasks)
    before = first.figures["step_cpu_user_seconds_total"]
    kernel = dict(line.split() for line in (cgroups.folder / "cpu.stat").read_text().splitlines())
    while (later := sampled(steps, processes).figures)["step_cpu_user_seconds_total"] < before + 0.2:
        time.sleep(0.05)
    assert later["step_cpu_user_seconds_total"] >= int(kernel["user_usec"]) / 1e6
    assert later["step_cpu_system_seconds_total"] >= int(kernel["system_usec"]) / 1e6
    assert (cgroups.folder / "cpu.pressure").exists() == ("step_cpu_pressure_seconds_total" in later)
    # From memory.stat, or from the processes if version 1 has the controller.
    assert 100 * MIB <= later["step_memory_bytes"] < 200 * MIB
    assert (cgroups.folder / "memory.stat").exists() == ("step_memory_cache_bytes" in later)


def test_the_limit_of_a_job_in_version_2(cgroups: Made) -> None:
    file = cgroups.folder.parent / "memory.max"
    if not file.exists():
        pytest.skip("hierarchies of version 1 have the controller of memory")
    file.write_text(str(300 * MIB))
    processes = Processes("/")
    found = sampled(Steps(processes, Cgroups("/")), processes)
    assert found.figures["step_memory_limit_bytes"] == 300 * MIB
    assert found.figures["step_oom_kills_total"] == 0
