"""Code that the verbs of `peerway trace` share for reading a trace."""

from __future__ import annotations

from pathlib import Path

from peerway_common.cli.options import BadInput
from peerway_trace.store import BadTrace, Trace, load


def read(folder: Path) -> Trace:
    """Read a trace. Raises BadInput if it cannot be read."""
    try:
        return load(folder)
    except BadTrace as error:
        raise BadInput(str(error)) from error
