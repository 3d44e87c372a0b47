"""Names of paths, as they are asked for."""

from __future__ import annotations


def covers(wanted: str, name: str) -> bool:
    """Whether a path asked for means this path: "peer" means all of "peer/..."."""
    return name == wanted or name.startswith(wanted + "/")
