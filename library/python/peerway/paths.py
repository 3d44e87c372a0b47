"""The paths between two memories: their names, what they are for, and why some cannot be used."""

from __future__ import annotations

from typing import NamedTuple

from peerway import _core


class PathInfo(NamedTuple):
    """One path, and whether it can serve a pair of memories; `why_not` says why not.

    `suited` is False for a path that is not meant for such memories, so that nothing on this machine could
    help.
    """

    name: str
    available: bool
    why_not: str
    suited: bool = True


def paths_for(context: _core.Context, remote: _core.Remote, region: _core.Region, op: str) -> list[PathInfo]:
    """Every path, for one operation ("put" or "get") between a region and a remote."""
    return [PathInfo(*path) for path in _core.paths_for(context, remote, region, op)]


def covers(wanted: str, name: str) -> bool:
    """Whether a requested path includes this path: "peer" includes all of "peer/..."."""
    return name == wanted or name.startswith(wanted + "/")
