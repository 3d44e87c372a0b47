"""The builds of UCX that the tests between processes use, and the transports that each may use."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

WHEEL = next((f for p in sys.path if (f := Path(p) / "libucx" / "lib" / "libucp.so.0").exists()), None)
SYSTEM = next((f for f in Path("/usr/lib").glob("*-linux-gnu/libucp.so.0")), None)
MISSING = {
    name: pytest.mark.skipif(library is None, reason=f"no UCX of the {name} here; {remedy}")
    for name, library, remedy in (
        ("system", SYSTEM, "apt-get install libucx0"),
        ("wheel", WHEEL, "pip install libucx-cu13"),
    )
}
LIBRARIES = [
    pytest.param(library, id=name, marks=MISSING[name])
    for name, library in (("system", SYSTEM), ("wheel", WHEEL))
]
SOME = WHEEL or SYSTEM
needs_some = pytest.mark.skipif(SOME is None, reason="no UCX here; install libucx0 or libucx-cu13")
PATHS = ["ucx/direct", "ucx/staged"]
TRANSPORTS = {"all": "all", "tcp": "tcp,self"}
# Library, transports and path: each pair of values is always tested, all combinations in long runs.
PAIRS = [
    pytest.param(
        *one.values, transports, path,
        id=f"{one.id}-{transports}-{path}",
        marks=[*one.marks, *([] if (at + by + way) % 2 == 0 else [pytest.mark.long])],
    )
    for at, one in enumerate(LIBRARIES)
    for by, transports in enumerate(TRANSPORTS)
    for way, path in enumerate(PATHS)
]  # fmt: skip
TCP = {"PEERWAY_UCX": "on", "UCX_TLS": TRANSPORTS["tcp"]}


def settings_of(library: Path | None, transports: str) -> dict[str, str]:
    """The environment variables with which ranks use this build and these transports."""
    return {
        "PEERWAY_UCX": "on",
        "PEERWAY_UCX_LIBRARY": str(library),
        "UCX_TLS": TRANSPORTS[transports],
    }
