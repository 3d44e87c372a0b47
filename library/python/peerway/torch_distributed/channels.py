"""Messages between two ranks of a group, which the other ranks take no part in.

A channel leads from one rank to another. It has memory and a plan for each of a few sizes, which are prepared
when the engine is made, for only then do all ranks take part. A message is cut into pieces of these sizes.
"""

from __future__ import annotations

from collections import defaultdict, deque
from typing import Any, NamedTuple

import torch

from peerway.torch_distributed.engine import Engine
from peerway.torch_distributed.operations import copy_back, flat

SIZES = (4 << 10, 256 << 10, 4 << 20)  # bytes of a piece
_HEADER = 16  # bytes: of the message, and its tag, as two int64


class Place(NamedTuple):
    """The memory of a size, and the plan that sends or receives it."""

    memory: torch.Tensor
    plan: Any


class Channel:
    """One end of a channel to or from `peer`. Making it is collective over the two ranks."""

    def __init__(self, engine: Engine, peer: int, sends: bool) -> None:
        self._engine = engine
        self.peer, self.sends = peer, sends
        self._places = [self._place(size) for size in SIZES]

    def move(self, tensor: torch.Tensor, tag: int) -> None:
        """Sends a tensor to the peer or receives it from there: on a GPU in the current stream, on the host
        at once. Raises ValueError if a message on the host has another size.
        """
        elements = flat(tensor)
        data = elements.view(torch.uint8)
        if self.sends:
            self.send(data, tag)
        else:
            self.receive(data, tag)
            copy_back(tensor, elements)

    def send(self, data: torch.Tensor, tag: int) -> None:
        """Sends bytes."""
        raise NotImplementedError

    def receive(self, data: torch.Tensor, tag: int) -> None:
        """Receives bytes."""
        raise NotImplementedError

    def _place(self, size: int) -> Place:
        engine = self._engine
        memory = engine.allocate(size)
        builder = engine.ctx.plan(engine.device_name)
        region = engine.region_of(memory)
        if self.sends:
            builder.send(self.peer, 0, region[0, size])
        else:
            builder.receive(self.peer, 0, region[0, size])
        plan = builder.prepare_among(sorted((self.peer, engine.rank)))
        engine.adopt(plan)
        return Place(memory, plan)

    def _place_for(self, size: int) -> Place:
        """The smallest place for a piece, or the largest there is."""
        return next((place for place in self._places if place.memory.numel() >= size), self._places[-1])

    def _send_pieces(self, data: torch.Tensor) -> None:
        while data.numel():
            place = self._place_for(data.numel())
            piece = data[: place.memory.numel()]
            place.memory[: piece.numel()].copy_(piece)
            self._engine.run(place.plan)
            data = data[piece.numel() :]

    def _receive_pieces(self, data: torch.Tensor) -> None:
        while data.numel():
            place = self._place_for(data.numel())
            piece = data[: place.memory.numel()]
            self._engine.run(place.plan)
            piece.copy_(place.memory[: piece.numel()])
            data = data[piece.numel() :]


class StreamChannel(Channel):
    """A channel on a GPU: both ranks must give tensors of the same size, and tags are not compared."""

    def send(self, data: torch.Tensor, tag: int) -> None:
        del tag
        self._send_pieces(data)

    def receive(self, data: torch.Tensor, tag: int) -> None:
        del tag
        self._receive_pieces(data)


class HostChannel(Channel):
    """A channel on the host. Each message says how long it is and which tag it has; a receiver that waits for
    another tag keeps it for later.
    """

    def __init__(self, engine: Engine, peer: int, sends: bool) -> None:
        super().__init__(engine, peer, sends)
        self._early: dict[int, deque[torch.Tensor]] = defaultdict(deque)
        self._header = self._places[0].memory[:_HEADER].view(torch.int64)
        self._first = self._places[0].memory[_HEADER:]

    def send(self, data: torch.Tensor, tag: int) -> None:
        first = data[: self._first.numel()]
        self._header[0], self._header[1] = data.numel(), tag
        self._first[: first.numel()].copy_(first)
        self._engine.run(self._places[0].plan)
        self._send_pieces(data[first.numel() :])

    def receive(self, data: torch.Tensor, tag: int) -> None:
        if self._early[tag]:
            _copy_message(data, self._early[tag].popleft(), self.peer)
            return
        while True:
            self._engine.run(self._places[0].plan)
            size, its_tag = self._header.tolist()
            fits = its_tag == tag and size == data.numel()
            message = data if fits else torch.empty(size, dtype=torch.uint8)
            first = message[: self._first.numel()]
            first.copy_(self._first[: first.numel()])
            self._receive_pieces(message[first.numel() :])
            if fits:
                return
            if its_tag == tag:
                _copy_message(data, message, self.peer)
            self._early[its_tag].append(message)


def _copy_message(data: torch.Tensor, message: torch.Tensor, peer: int) -> None:
    if data.numel() != message.numel():
        raise ValueError(
            f"peerway: a tensor of {data.numel()} bytes receives from rank {peer} of the group, which sends "
            f"{message.numel()}; both ranks must give tensors of the same size."
        )
    data.copy_(message)


def open_channels(engine: Engine, kind: type[Channel]) -> dict[tuple[int, bool], Channel]:
    """The channels of this rank to and from all others, by (peer, whether it sends). Collective: all ranks go
    through the pairs in the same order.
    """
    channels = {}
    for low in range(engine.size):
        for high in range(low + 1, engine.size):
            if engine.rank not in (low, high):
                continue
            peer = low + high - engine.rank
            for sender in (low, high):
                sends = sender == engine.rank
                channels[peer, sends] = kind(engine, peer, sends)
    return channels
