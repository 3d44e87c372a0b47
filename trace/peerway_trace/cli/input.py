"""What the verbs of `peerway trace` that read a trace share."""

from __future__ import annotations

from pathlib import Path

from peerway_common.cli.options import BadInput
from peerway_trace.store import BadTrace, Trace, load


def read(folder: Path) -> Trace:
    """Read a trace; BadInput where it cannot be."""
    try:
        return load(folder)
    except BadTrace as error:
        raise BadInput(str(error)) from error
