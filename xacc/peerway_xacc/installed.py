"""Finds the headers and libraries of this installation."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def prefix() -> Path:
    """The folder of this installation that has include/ and lib/."""
    core = importlib.util.find_spec("peerway._core")
    assert core is not None
    assert core.origin is not None
    return Path(core.origin).parent
