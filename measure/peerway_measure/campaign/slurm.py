"""Starts keepers as jobs of Slurm, one for each measurement, on its node.

Slurm's queue says what became of them. A job is known by its comment, which has the name of the measurement
and the campaign's folder. So a submitted job is found again even if the submission got no answer, or if the
runner was killed before it could note the job's number.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from peerway_common.printable import one_line, printable
from peerway_measure.campaign.failures import away_lines
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.plan import Plan, Task
from peerway_measure.campaign.starters import GRACE_S, Unusable, keeper_request

_SLURM_S = 60
_POLL_S = 3.0  # between queries, to spare Slurm's controller
_NODES_S = 10.0
_LOOK_S = 0.2  # between checks for a result, which do not query it
_PATIENCE_S = 30.0  # how long a job may wait for its node while another node is free
_FULL_S = 600.0  # how long a node where a job waited in vain counts as occupied
_AWAY = ("down", "drain", "fail", "error", "unknown", "reboot", "inval", "powering_down", "future")
_NO_ANSWER = ("unable to contact slurm controller", "socket timed out", "connection refused")


class NoAnswer(OSError):
    """Slurm's controller did not answer."""


@dataclass(frozen=True)
class Node:
    """Slurm's report on a node."""

    state: str
    reason: str

    @property
    def is_idle(self) -> bool:
        """Whether a job would begin at once, even if the node must be powered up first."""
        return self.state.rstrip("~#$") == "idle"

    @property
    def away(self) -> str:
        """Why the node accepts no job now; "" if it does."""
        if not self.state.endswith("*") and not self.state.startswith(_AWAY):
            return ""
        return f"Slurm has it {self.state}" + (f" ({self.reason})" if self.reason not in ("", "none") else "")


@dataclass
class Job:
    """A job in the queue. `since` is when it was first seen waiting."""

    number: str
    waits: bool
    since: float


class Slurm:
    """Starts keepers as jobs. The folder must be on a file system that the nodes share. Raises Unusable."""

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        self._folder = str(journal.folder.absolute())
        # Jobs by measurement, for sites that replace our comment by one of their own.
        self._numbers = dict(journal.past().jobs)
        self._nodes_of = {task.id: task.nodes for task in plan.tasks()}
        self._queue: dict[str, Job] = {}
        # Measurements whose submission got no answer, or whose job was cancelled while it waited. If such a
        # job is not in the queue, its measurement has not failed.
        self._unsure: set[str] = set()
        self._full: dict[str, float] = {}
        self._nodes: dict[str, Node] = {}
        self._nodes_at = -_NODES_S
        self._seen = 0  # the modification time of results/, which changes when a result arrives
        self._silent = ""
        self._look()
        if self._silent:
            raise Unusable(f"{self._silent}; run it again when Slurm answers")

    def start(self, task: Task) -> None:
        """Submit a job. Raises OSError if Slurm refuses it."""
        request = json.dumps(keeper_request(self._plan, task, ["sh", "-c", task.test.shell]))
        keeper = shlex.join([sys.executable, "-m", "peerway_measure.campaign.keep", self._folder, request])
        minutes = int((self._plan.time_s + GRACE_S) // 60) + 1
        words = [
            "--parsable",
            f"--nodelist={','.join(task.nodes)}",
            f"--nodes={len(task.nodes)}",
            f"--ntasks={len(task.nodes)}",
            "--ntasks-per-node=1",
            "--no-requeue",
            f"--time={minutes}",
            f"--job-name=peerway-{self._plan.name}"[:60],
            f"--comment={task.id} {self._folder}",
            f"--output={str(self._output_path(task.id)).replace('%', '%%')}",
            *self._plan.options,
            f"--wrap=exec {keeper}",
        ]
        try:
            number = _ask("sbatch", *words).strip().partition(";")[0]
        except NoAnswer as error:
            self._unsure.add(task.id)
            self._silent = str(error)
            return
        self._queue[task.id] = Job(number, True, time.monotonic())
        self._numbers[task.id] = number
        self._journal.note({"event": "submitted", "id": task.id, "job": number})

    def running(self, names: Set[str]) -> set[str]:
        """The measurements that have no result yet, and whose job is in the queue or whose lock is held. If
        Slurm does not answer, none has ended.
        """
        self._seen = self._journal.results.stat().st_mtime_ns
        self._look()
        known = self._queue.keys() | self._unsure
        unfinished = names - self._journal.finished()
        return {name for name in unfinished if name in known or self._journal.is_kept(name)}

    def returned(self, names: Set[str], others: Callable[[], Set[str]]) -> set[str]:
        """The measurements that Slurm does not have after all.

        A waiting job is cancelled if its node is away, if the window closes, or if it waits long while one of
        the `others` is free.
        """
        if self._silent:
            return set()
        back = {n for n in names & self._unsure if n not in self._queue and not self._journal.is_kept(n)}
        self._unsure -= back
        away, now = self.away(), time.monotonic()
        waiting = [name for name in sorted(names & self._queue.keys()) if self._queue[name].waits]
        late: list[str] = []
        for name in waiting:
            if not self._plan.is_open or not away.keys().isdisjoint(self._nodes_of[name]):
                self._cancel(name)
            elif now - self._queue[name].since > _PATIENCE_S and not self._all_idle(name):
                late.append(name)
        free = len((others() & self._nodes.keys()) - away.keys() - self.occupied()) if late else 0
        for name in late[:free]:
            self._full |= dict.fromkeys(self._nodes_of[name], now + _FULL_S)
            self._cancel(name)
        return back

    def away(self) -> Mapping[str, str]:
        """The nodes that accept no job now, with the reason."""
        if self._silent:
            return {node: self._silent for kind in self._plan.nodes.values() for node in kind}
        if time.monotonic() - self._nodes_at >= _NODES_S:
            try:
                self._nodes = nodes()
            except OSError as error:
                self._silent = str(error)
                return self.away()
            self._nodes_at = time.monotonic()
        return {name: node.away for name, node in self._nodes.items() if node.away}

    def occupied(self) -> Set[str]:
        """The nodes where a job would wait for jobs of other users."""
        now = time.monotonic()
        return {
            name
            for name, node in self._nodes.items()
            if not self._is_idle(name) and (node.state != "mixed" or self._full.get(name, now) > now)
        }

    def lost(self, name: str) -> str:
        """Why a job ended without a report: its output from before the keeper started, for example that its
        node has no Python.
        """
        job, path = self._numbers.get(name, ""), self._output_path(name)
        with suppress(OSError):
            output = one_line("sh", path.read_text(errors="replace"))
            path.unlink()
            if output:
                return f"its job said: {output}"
        ask = f"; `scontrol show job {job}` may tell" if job else ""
        return f"its node went down meanwhile, or does not see {self._folder}{ask}"

    def _output_path(self, name: str) -> Path:
        return self._journal.running.absolute() / f"{name}.job"

    def wait(self) -> None:
        """Wait until a result arrives, at most for a while."""
        until = time.monotonic() + _POLL_S
        while time.monotonic() < until and self._journal.results.stat().st_mtime_ns == self._seen:
            time.sleep(_LOOK_S)

    def share_busy(self) -> float | None:
        """The share of all CPUs that are allocated; None if Slurm does not answer."""
        allocated, total = 0, 0
        try:
            output = _ask("sinfo", "--noheader", "--format=%C")
        except OSError as error:
            self._silent = str(error)
            return None
        for line in output.split():
            parts = [int(part) for part in line.split("/") if part.isdecimal()]
            if len(parts) == 4:
                allocated, total = allocated + parts[0], total + parts[3]
        return allocated / total if total else None

    def _is_idle(self, node: str) -> bool:
        return node in self._nodes and self._nodes[node].is_idle

    def _all_idle(self, name: str) -> bool:
        return all(map(self._is_idle, self._nodes_of[name]))

    def _look(self) -> None:
        """Read the queue. If there is no answer, it is assumed to be unchanged."""
        try:
            output = _ask("squeue", "--noheader", "--me", "--format=%i|%T|%k")
        except OSError as error:
            self._silent = str(error)
            return
        self._silent = ""
        before, now = self._queue, time.monotonic()
        by_number = {number: name for name, number in self._numbers.items()}
        self._queue = {}
        for line in output.splitlines():
            number, state, comment = [*line.split("|", 2), "", ""][:3]
            name, _, folder = comment.partition(" ")
            if folder != self._folder:
                name = by_number.get(number, "")
            if not name:
                continue
            waits = state == "PENDING"
            self._queue[name] = Job(number, waits, before[name].since if waits and name in before else now)
            if not waits:
                self._unsure.discard(name)

    def _cancel(self, name: str) -> None:
        """Cancel a job only if it still waits. A job that began meanwhile goes on, and the queue shows later
        what became of it.
        """
        self._unsure.add(name)
        with suppress(OSError):
            _ask("scancel", "--state=PENDING", self._queue[name].number)


def nodes() -> dict[str, Node]:
    """All nodes of the cluster. Raises OSError and Unusable."""
    by_name = {}
    for line in _ask("sinfo", "--noheader", "--Node", "--format=%N|%T|%E").splitlines():
        name, state, reason = [*line.split("|", 2), "", ""][:3]
        by_name[name] = Node(state.strip(), printable(reason.strip()))
    return by_name


def away_lines_of(plan: Plan) -> list[str]:
    """Lines about the nodes of a plan that accept no job now; or a line that says why this is not known."""
    try:
        away = {name: node.away for name, node in nodes().items() if node.away and name in plan.type_of()}
    except (OSError, Unusable) as error:
        return [f"which nodes take no job now is not known: {error}"]
    return [f"no job now on {line}" for line in away_lines(away)]


@dataclass
class NodeType:
    """Nodes with the same partition and features, and the smallest number of GPUs among them."""

    name: str
    nodes: list[str]
    gpus: int = 0


def node_types() -> list[NodeType]:
    """The node types of a cluster, with printable names that TOML accepts. Raises OSError and Unusable."""
    kinds: dict[str, NodeType] = {}
    seen: set[str] = set()
    for line in _ask("sinfo", "--noheader", "--Node", "--format=%N|%R|%f|%G").splitlines():
        node, partition, features, gres = [*line.split("|", 3), "", "", ""][:4]
        if node and node not in seen:  # a node of two partitions counts for the first
            seen.add(node)
            name = printable(partition if features in ("(null)", "") else f"{partition} {features}")
            kind = kinds.setdefault(name, NodeType(name, [], _gpus(gres)))
            kind.nodes.append(printable(node))
            kind.gpus = min(kind.gpus, _gpus(gres))
    return [*kinds.values()]


def _gpus(gres: str) -> int:
    """The number of GPUs in a node's generic resources: "gpu:h100:4(S:0-1),gpu:1,shard:8" -> 5."""
    return sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^:,(]+)?:(\d+)(?=[,(]|$)", gres))


def _ask(program: str, *words: str) -> str:
    """The output of a Slurm command. Raises NoAnswer, OSError if it refuses, Unusable if it is not
    installed.
    """
    try:
        done = subprocess.run(
            [program, *words], capture_output=True, text=True, errors="replace", check=False, timeout=_SLURM_S
        )
    except FileNotFoundError:
        raise Unusable(
            f'there is no {program} here; run this where Slurm\'s commands are, or say launch.by = "hosts"'
        ) from None
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"Slurm does not answer: {program} gave no output for {_SLURM_S:g} s") from None
    why = one_line(program, done.stderr)
    if done.returncode and any(text in why.lower() for text in _NO_ANSWER):
        raise NoAnswer(f"Slurm does not answer: {program}: {why}")
    if done.returncode:
        raise OSError(f"{program}: {why or f'status {done.returncode}'}")
    return done.stdout
