"""Which paths there are between two memories, and why some cannot be used."""

from __future__ import annotations

from typing import NamedTuple

from peerway import _core


class PathInfo(NamedTuple):
    """One path and whether it can serve a pair of memories; `why_not` says what stands in the way."""

    name: str
    available: bool
    why_not: str


def paths_for(context: _core.Context, remote: _core.Remote, region: _core.Region, op: str) -> list[PathInfo]:
    """Every path, for one operation ("put" or "get") between a region and a remote."""
    return [PathInfo(*path) for path in _core.paths_for(context, remote, region, op)]
