"""Arrays that compiled functions of JAX send to other ranks, and receive from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from peerway.context import Context
from peerway.jax.calls import ArrayType, PlanArrays, PlanCalls, register_targets


class Message(NamedTuple):
    """An array that another rank gets, or that comes from it."""

    rank: int
    tag: int  # distinguishes the messages between two ranks in one direction
    shape: tuple[int, ...]
    dtype: Any


class Exchange(PlanCalls):
    """A plan of sends and receives that functions compiled by JAX start and finish.

    Making one is collective over the team. Each start takes the arrays to send, in the order of `sends`; its
    finish returns those received, in the order of `receives`. It must be finished before it is started again:
    give a start what the finish before it returned as `after`, unless its arrays are computed from that
    anyway.

    Raises Unavailable if this build of Peerway has no calls for JAX.
    """

    noun = "exchange"

    def __init__(
        self, ctx: Context, sends: Sequence[Message], receives: Sequence[Message], device: str = "host"
    ) -> None:
        register_targets()
        sent = PlanArrays(ctx, device, (ArrayType.of(message.shape, message.dtype) for message in sends))
        received = PlanArrays(
            ctx, device, (ArrayType.of(message.shape, message.dtype) for message in receives)
        )
        builder = ctx.plan(device)
        for message, (offset, size) in zip(sends, sent.spans, strict=True):
            builder.send(message.rank, message.tag, sent.region[offset, size])
        for message, (offset, size) in zip(receives, received.spans, strict=True):
            builder.receive(message.rank, message.tag, received.region[offset, size])
        super().__init__(builder.prepare(), sent, received)
