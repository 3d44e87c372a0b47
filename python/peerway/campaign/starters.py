"""How keepers are started: as processes of this host that reach the nodes by ssh, or as jobs of Slurm."""

from __future__ import annotations

import json
import os
import select
import shlex
import subprocess
import sys
import time
from typing import Any, Protocol

from peerway.campaign import keep
from peerway.campaign.journal import Journal
from peerway.campaign.plan import Plan, Task
from peerway.launch.hosts import SSH, is_this_host

_GRACE_S = 30  # for a node to say that its time was over, before its keeper stops waiting
_SLURM_S = 60


class Starter(Protocol):
    """What starts keepers, and tells of those that run."""

    def start(self, task: Task) -> None:
        """Start one. Raises OSError."""

    def running(self, names: set[str]) -> set[str]:
        """Which of these have a keeper, or will get one."""

    def wait(self) -> None:
        """Until one may have ended: soon where that can be told, else as long as it may be asked again."""

    def share_busy(self) -> float | None:
        """The share of the cluster's CPUs that is busy; None where it is not known."""


def starter(plan: Plan, journal: Journal) -> Starter:
    """The one that the plan asks for."""
    return Slurm(plan, journal) if plan.by == "slurm" else Hosts(plan, journal)


def told_to_keeper(plan: Plan, task: Task, argv: list[str]) -> dict[str, Any]:
    """What a keeper must know of its measurement."""
    return {
        "id": task.id,
        "node": task.node,
        "type": task.type,
        "round": task.round,
        "campaign": plan.name,
        "argv": argv,
        "limit_s": plan.time_s + (0 if argv[0] == "sh" else _GRACE_S),
    }


class Hosts:
    """Keepers on this host, in sessions of their own: they outlive the runner.

    They are forked from it: starting an interpreter for each would be most of a campaign's own work.
    """

    _POLL_S = 0.05  # for keepers of an earlier runner, whose end only their locks tell

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        self._children: dict[str, tuple[int, int]] = {}  # process, and the descriptor that tells its end

    def start(self, task: Task) -> None:
        """Start one. Raises OSError."""
        argv = ["sh", "-c", task.test.command]
        if self._plan.agent or not is_this_host(task.node):
            # The node ends it, too: what ssh leaves behind when it is killed would go on there.
            there = f"timeout -k 5 {self._plan.time_s:g} sh -c {shlex.quote(task.test.command)}"
            argv = [*(self._plan.agent or SSH), task.node, there]
        pid = keep.forked(self._journal, told_to_keeper(self._plan, task, argv))
        self._children[task.id] = (pid, os.pidfd_open(pid))

    def running(self, names: set[str]) -> set[str]:
        """Those of this runner, and those of an earlier one whose locks are held."""
        for name, (pid, end) in [*self._children.items()]:
            if os.waitpid(pid, os.WNOHANG)[0]:
                os.close(end)
                del self._children[name]
        return {name for name in names if name in self._children or self._journal.is_kept(name)}

    def wait(self) -> None:
        """Until one of this runner's ends."""
        select.select([end for _, end in self._children.values()], [], [], self._POLL_S)

    def share_busy(self) -> float | None:
        """Not known."""
        return None


class Slurm:
    """Keepers as jobs, one a measurement, on the node that it is of. The folder must be on a file system that
    the nodes share.
    """

    _POLL_S = 3.0  # the controller has others to serve
    _LOOK_S = 0.2  # a result is seen without asking it

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        self._jobs = dict(journal.past().jobs)
        self._seen = 0  # when a result had last arrived

    def start(self, task: Task) -> None:
        """Submit one. Raises OSError when Slurm refuses it."""
        told = json.dumps(told_to_keeper(self._plan, task, ["sh", "-c", task.test.command]))
        folder = str(self._journal.folder.absolute())
        keeper = shlex.join([sys.executable, "-m", "peerway.campaign.keep", folder, told])
        minutes = int((self._plan.time_s + _GRACE_S) // 60) + 1
        done = subprocess.run(
            [
                "sbatch",
                "--parsable",
                f"--nodelist={task.node}",
                "--nodes=1",
                "--ntasks=1",
                "--no-requeue",
                f"--time={minutes}",
                f"--job-name=peerway-{self._plan.name}"[:60],
                "--output=/dev/null",
                *self._plan.options,
                f"--wrap=exec {keeper}",
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SLURM_S,
        )
        if done.returncode:
            raise OSError(f"sbatch: {done.stderr.strip()[-400:]}")
        self._jobs[task.id] = done.stdout.strip().partition(";")[0]
        self._journal.note({"event": "submitted", "id": task.id, "job": self._jobs[task.id]})

    def running(self, names: set[str]) -> set[str]:
        """Those that Slurm has, waiting or running, and whose result is not there. When it does not answer,
        all may still run.
        """
        self._seen = self._journal.results.stat().st_mtime_ns
        finished = self._journal.finished()
        mine = {name: self._jobs[name] for name in names - finished if name in self._jobs}
        if not mine:
            return set()
        done = subprocess.run(
            ["squeue", "--noheader", "--format=%i", "--me"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SLURM_S,
        )
        if done.returncode:
            return set(mine)
        there = set(done.stdout.split())
        for name in [name for name, job in mine.items() if job not in there]:
            del self._jobs[name]
        return {name for name, job in mine.items() if job in there}

    def wait(self) -> None:
        """Until a result arrives, or for a while."""
        until = time.monotonic() + self._POLL_S
        while time.monotonic() < until and self._journal.results.stat().st_mtime_ns == self._seen:
            time.sleep(self._LOOK_S)

    def share_busy(self) -> float | None:
        """Allocated CPUs of all."""
        done = subprocess.run(
            ["sinfo", "--noheader", "--format=%C"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_SLURM_S,
        )
        allocated, total = 0, 0
        for line in done.stdout.split():
            parts = [int(part) for part in line.split("/") if part.isdecimal()]
            if len(parts) == 4:
                allocated, total = allocated + parts[0], total + parts[3]
        return allocated / total if total else None


def from_slurm() -> str:
    """The node types of a cluster, by partition and features, as the lines of a campaign's table. Raises
    OSError.
    """
    done = subprocess.run(
        ["sinfo", "--noheader", "--Node", "--format=%N|%R|%f"],
        capture_output=True,
        text=True,
        check=True,
        timeout=_SLURM_S,
    )
    kinds: dict[str, list[str]] = {}
    seen: set[str] = set()
    for line in done.stdout.splitlines():
        node, partition, features = [*line.split("|"), "", ""][:3]
        if node and node not in seen:  # a node of two partitions is of the first
            seen.add(node)
            name = partition if features in ("(null)", "") else f"{partition} {features}"
            kinds.setdefault(name, []).append(node)
    return "".join(f"{json.dumps(name)} = {json.dumps(nodes)}\n" for name, nodes in kinds.items())
