"""Ports of this host for servers that tests start."""

from __future__ import annotations

import contextlib
import socket


def free_port() -> int:
    """A port at which nobody listens."""
    (port,) = free_ports(1)
    return port


def free_ports(count: int) -> list[int]:
    """So many different ports at which nobody listens."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [int(probe.getsockname()[1]) for probe in probes]
