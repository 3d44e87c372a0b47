"""The settings of compiled programs: the run-time library declares them (xacc/runtime/base/settings.cpp)."""

from __future__ import annotations

import ctypes

from peerway_xacc.installed import prefix


def declare() -> None:
    """Load the run-time library, so that `peerway config` lists its settings."""
    ctypes.CDLL(str(prefix() / "lib" / "libpeerway_xacc.so"))
