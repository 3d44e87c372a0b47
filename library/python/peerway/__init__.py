"""Peerway: one-sided communication between GPUs and hosts, over the fastest path that was measured.

    with peerway.Context() as ctx:                         # rank and size from the launcher
        region = ctx.allocate("host", 1 << 20)
        keys = ctx.team.all_gather(region.key())
        right = ctx.import_key(keys[(ctx.rank + 1) % ctx.size])
        ctx.put(right[0:4096], region[4096:8192])
        ctx.flush()
        ctx.team.barrier()                                 # nobody closes what a neighbour still uses

The names below are loaded when they are first used, so that tools that only read records need no library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from peerway import packages
from peerway.errors import (
    BadConfig,
    BadKey,
    BadTable,
    Closed,
    Denied,
    DeviceFailure,
    Error,
    ForeignKey,
    Internal,
    Interrupted,
    InvalidArgument,
    NoMemory,
    OutOfRange,
    PeerLost,
    StaleKey,
    SystemFailure,
    Timeout,
    Unavailable,
    Unsupported,
)

if TYPE_CHECKING:
    from peerway import trace as trace
    from peerway.collective import Collective
    from peerway.context import Context
    from peerway.halo import Halo, block_of
    from peerway.memory import Region, Remote, Signal
    from peerway.operations import ANY_RANK
    from peerway.plan import Fifo, Plan, PlanBuilder
    from peerway.request import Request, wait_all, wait_any
    from peerway.stream import Stream
    from peerway.team import Team
    from peerway.views import Span, View

    __version__: str

_LAZY = {
    "ANY_RANK": "peerway.operations", "Collective": "peerway.collective",
    "Context": "peerway.context", "Team": "peerway.team",
    "Region": "peerway.memory", "Remote": "peerway.memory", "Signal": "peerway.memory",
    "Request": "peerway.request", "wait_all": "peerway.request", "wait_any": "peerway.request",
    "Fifo": "peerway.plan", "Plan": "peerway.plan", "PlanBuilder": "peerway.plan",
    "Halo": "peerway.halo", "block_of": "peerway.halo",
    "Span": "peerway.views", "Stream": "peerway.stream", "View": "peerway.views",
}  # fmt: skip

__all__ = [
    "ANY_RANK", "BadConfig", "BadKey", "BadTable", "Closed", "Collective", "Context", "Denied",
    "DeviceFailure", "Error", "Fifo", "ForeignKey", "Halo", "Internal", "Interrupted", "InvalidArgument",
    "NoMemory", "OutOfRange", "PeerLost", "Plan", "PlanBuilder", "Region", "Remote", "Request", "Signal",
    "Span", "StaleKey", "Stream", "SystemFailure", "Team", "Timeout", "Unavailable", "Unsupported", "View",
    "__version__", "block_of", "wait_all", "wait_any",
]  # fmt: skip

packages.announce()


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("peerway._core").version()
    if name == "trace":
        return importlib.import_module("peerway.trace")
    if name not in _LAZY:
        raise AttributeError(f"module 'peerway' has no attribute '{name}'")
    return getattr(importlib.import_module(_LAZY[name]), name)
