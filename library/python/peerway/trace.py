"""Traces of programs: what `peerway trace` records, and regions by which a program names its parts.

    with peerway.trace.region("solve"):
        ...

costs a call of a function where nothing is traced.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def region(name: str) -> Iterator[None]:
    """Names this part of the program in its trace, until the end of the block."""
    from peerway import _core

    if not _core.tracing():
        yield
        return
    open_region = _core.TraceRegion(name)
    try:
        yield
    finally:
        open_region.end()
