"""Keepers as processes of this host, which reach nodes by ssh."""

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
    """Keepers on this host, in sessions of their own: they outlive the runner.

    They are forked from it: starting an interpreter for each would be most of a campaign's own work.
    """

    _POLL_S = 0.05  # for keepers of an earlier runner, whose end only their locks tell

    def __init__(self, plan: Plan, journal: Journal) -> None:
        self._plan, self._journal = plan, journal
        self._children: dict[str, tuple[int, int]] = {}  # process, and the descriptor that tells its end

    def start(self, task: Task) -> None:
        """Start a keeper. Raises OSError."""
        argv = ["sh", "-c", task.test.shell]
        if self._plan.agent or not is_this_host(task.node):
            # The node ends it, too: what ssh leaves behind when it is killed would go on there.
            known = f"{NODES}={shlex.quote(','.join(task.nodes))}"
            remote_command = (
                f"{known} timeout -k 5 {self._plan.time_s:g} sh -c {shlex.quote(task.test.shell)}"
            )
            argv = [*(self._plan.agent or SSH), task.node, remote_command]
        pid = keep.forked(self._journal, keeper_request(self._plan, task, argv))
        self._children[task.id] = (pid, os.pidfd_open(pid))

    def running(self, names: Set[str]) -> set[str]:
        """The keepers of this runner, and those of an earlier one whose locks are held."""
        for name, (pid, end) in [*self._children.items()]:
            if os.waitpid(pid, os.WNOHANG)[0]:
                os.close(end)
                del self._children[name]
        return {name for name in names if name in self._children or self._journal.is_kept(name)}

    def returned(self, names: Set[str], others: Callable[[], Set[str]]) -> set[str]:
        """Always none, because each was started at once."""
        return set()

    def away(self) -> Mapping[str, str]:
        """Always none: whether a node is available is found out by trying."""
        return {}

    def occupied(self) -> Set[str]:
        """Always none, because it is not known."""
        return set()

    def lost(self, name: str) -> str:
        """Always empty, because nothing reports it."""
        return "this host went down meanwhile, or its keeper was killed"

    def wait(self) -> None:
        """Wait until one of this runner's keepers ends."""
        select.select([end for _, end in self._children.values()], [], [], self._POLL_S)

    def share_busy(self) -> float | None:
        """Not known."""
        return None
