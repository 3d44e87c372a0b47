"""Where this installation has its headers and libraries."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def prefix() -> Path:
    """The folder with include/ and lib/ of this installation."""
    core = importlib.util.find_spec("peerway._core")
    assert core is not None
    assert core.origin is not None
    return Path(core.origin).parent
