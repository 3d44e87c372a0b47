"""A measurement on this node, or on several nodes. On several, each node has a rank of `peerway run`, and
rank 0 writes all records.
"""

from __future__ import annotations

import os
import time
from dataclasses import asdict, dataclass
from json import dumps
from typing import Any

from peerway_common.printable import shell_word
from peerway_measure.bench import host_state, machine, progress
from peerway_measure.bench import session as sessions
from peerway_measure.bench.results import Results
from peerway_measure.records import RUN
from peerway_measure.storage import facts
from peerway_measure.storage.folder import RunFolder, clean
from peerway_measure.storage.measure import Measurement, Step
from peerway_measure.storage.node_group import NodeGroup, SingleNode, by_node
from peerway_measure.storage.operation import OperationFailed
from peerway_measure.storage.request import Request
from peerway_measure.storage.results import Sink


def measure_here(request: Request, results: Results) -> None:
    """All runs on this node. Raises BadRequest, OperationFailed and WriteFailed."""
    for number, stamp in enumerate(stamps(request), start=1):
        results.stamp = stamp
        suffix = f", run {number} of {request.repeat}" if request.repeat > 1 else ""
        with progress.shown(f"measuring{suffix}") as step:
            one_run(request, SingleNode(), results, step)


def stamps(request: Request) -> list[dict[str, Any]]:
    """The facts about each run for its records. The state of the host is that at the start of the run."""
    began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    return [{RUN: f"{began}-{os.getpid()}.{number}"} for number in range(1, request.repeat + 1)]


def one_run(request: Request, group: NodeGroup, results: Results, step: Step) -> None:
    """One run of one node, from making its folder to removing it. Raises BadRequest and OperationFailed."""
    token, problem = "", ""
    folder, node = None, None
    try:
        if group.rank == 0:
            for line in clean(request.place, request.limit_s):
                results.note(line)
        node = facts.gather(request, group.size)
        for line in node.notes:
            results.note(line)
        folder = RunFolder.make(request.place, request.limit_s) if group.rank == 0 else None
        token = folder.token if folder else ""
    except (OperationFailed, ValueError) as error:
        problem = str(error)
    try:
        problem = "; ".join(by_node(group, [problem] if problem else []))
        token = group.from_first_node(token)
        if problem or node is None:
            raise OperationFailed(problem)
        shared = RunFolder(request.place, token, request.limit_s)
        host = {name: value for name, value in host_state.host_state().items() if name != "numa"}
        sink = Sink(results, machine.known(), {**node.extra, **host}, group.size)
        Measurement(request, node, shared, group, sink).run(step)
        group.barrier()
    finally:
        if folder:
            _remove(folder, results)


def _remove(folder: RunFolder, results: Results) -> None:
    try:
        foreign = folder.remove()
    except OperationFailed as error:
        results.note(
            f"{folder.place} could not be cleaned ({error}); "
            f"`peerway storage clean {shell_word(folder.place)}` does it later"
        )
        return
    if foreign:
        results.note(
            f"{folder.place}/peerway-storage-{folder.token} has files that are not ours, and was "
            f"left: {', '.join(foreign)}"
        )


@dataclass(frozen=True)
class StoragePlan:
    """The plan of a measurement on several nodes, with the interface that sessions need."""

    request: Request
    ranks: int
    command: str

    @property
    def launch(self) -> list[str]:
        """The options of `peerway run` that name the hosts."""
        return list(self.request.launch)

    @property
    def timeout_s(self) -> float:
        """The seconds that the ranks may take to end after their last message."""
        return self.request.limit_s

    def as_json(self) -> str:
        """The text for the standard input of rank 0."""
        values = asdict(self.request) | {"place": str(self.request.place)}
        return dumps({"request": values, "command": self.command})


def measure_on(request: Request, nodes: int, results: Results) -> None:
    """All runs on several nodes together. Raises PlanRefused, SessionFailed and WriteFailed."""
    plan = StoragePlan(request, nodes, machine.command())
    with (
        progress.shown(f"measuring on {nodes} nodes") as step,
        sessions.started(plan, module="peerway_measure.storage.worker") as messages,
    ):
        results.follow(messages, step)
