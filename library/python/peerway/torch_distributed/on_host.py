"""Operations on tensors of the host: in the queue of the group, and in queues of the channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch

from peerway.torch_distributed.channels import HostChannel, open_channels
from peerway.torch_distributed.engine import Copy, Engine, Key
from peerway.torch_distributed.operations import copy_within
from peerway.torch_distributed.work import HostQueue, HostWork, Title


class HostEngine(Engine):
    """The operations of one group on the host."""

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(store, rank, size, torch.device("cpu"), timeout)
        self._queue = HostQueue("peerway collectives")
        self.channels |= open_channels(self, HostChannel)
        self._queues = {key: HostQueue("peerway messages") for key in self.channels}

    def submit(
        self,
        call: Callable[[], None],
        tensors: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        title: Title,
        waits: bool = False,
    ) -> HostWork:
        """Adds a collective to the queue of the group."""
        del tensors  # `call` keeps them
        return self._queue.add(HostWork(call, outputs, title), waits)

    def run_between(self, plan: Any, before: Copy, after: Copy) -> bool:
        return self._queue.run_now(partial(plan.run_between, before, after, self.seconds))

    def transfer(self, peer: int, sends: bool, tensor: torch.Tensor, title: Title, tag: int) -> HostWork:
        """Adds a message to the queue of its channel."""
        channel = self.channels[peer, sends]
        work = HostWork(partial(channel.move, tensor, tag), [tensor], title)
        return self._queues[peer, sends].add(work)

    def copy(self, to: torch.Tensor, source: torch.Tensor, title: Title) -> HostWork:
        """Copies a tensor within this rank."""
        work = HostWork(partial(copy_within, to, source), [to], title)
        work.run()
        return work

    def check(self) -> None:
        """Nothing: each operation reports its own error."""

    def close(self) -> None:
        for queue in (self._queue, *self._queues.values()):
            queue.close()
        super().close()

    def _check_making(self, key: Key) -> None:
        """Nothing: the host makes plans at any time."""
