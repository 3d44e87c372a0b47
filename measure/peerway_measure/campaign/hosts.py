"""Starts keepers as processes of this host, which reach the nodes by ssh."""

from __future__ import annotations

import os
import select
import shlex
from collections.abc import Callable, Mapping, Set

from peerway.launch.hosts import SSH, is_this_host
from peerway_measure.campaign import keep
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.plan import NODES, Plan, Task
from peerway_measure.campaign.starters import keeper_request


class Hosts:
    """Keepers on this host, in sessions of their own, so that they outlive the runner.

    They are forked from the runner: starting an interpreter for each would be most of a campaign's own work.
    """

    _POLL_S = 0.05  # between checks of an earlier runner's keepers, whose end shows only in their locks

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        # Measurement -> its process, and the descriptor that becomes readable when the process ends.
        self._children: dict[str, tuple[int, int]] = {}

    def start(self, task: Task) -> None:
        """Start a keeper. Raises OSError."""
        argv = ["sh", "-c", task.test.shell]
        if self._plan.agent or not is_this_host(task.node):
            # `timeout` ends it on the node as well: when ssh is killed, its command there would go on.
            known = f"{NODES}={shlex.quote(','.join(task.nodes))}"
            remote_command = (
                f"{known} timeout -k 5 {self._plan.time_s:g} sh -c {shlex.quote(task.test.shell)}"
            )
            argv = [*(self._plan.agent or SSH), task.node, remote_command]
        pid = keep.forked(self._journal, keeper_request(self._plan, task, argv))
        self._children[task.id] = (pid, os.pidfd_open(pid))

    def running(self, names: Set[str]) -> set[str]:
        """Those measurements with a keeper of this runner, or of an earlier one that still holds its lock."""
        for name, (pid, end) in [*self._children.items()]:
            if os.waitpid(pid, os.WNOHANG)[0]:
                os.close(end)
                del self._children[name]
        return {name for name in names if name in self._children or self._journal.is_kept(name)}

    def returned(self, names: Set[str], others: Callable[[], Set[str]]) -> set[str]:
        """Always empty, because each keeper was started at once."""
        return set()

    def away(self) -> Mapping[str, str]:
        """Always empty: whether a node is available shows only when it is tried."""
        return {}

    def occupied(self) -> Set[str]:
        """Always empty, because it is not known."""
        return set()

    def lost(self, name: str) -> str:
        """Always empty, because nothing reports it."""
        return "this host went down meanwhile, or its keeper was killed"

    def wait(self) -> None:
        """Wait until one of this runner's keepers ends."""
        select.select([end for _, end in self._children.values()], [], [], self._POLL_S)

    def share_busy(self) -> float | None:
        """Always None, because it is not known."""
        return None
