"""Paths: which there are between two memories and why some cannot be used, their names and purposes."""

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


def covers(wanted: str, name: str) -> bool:
    """Whether a path asked for means this path: "peer" means all of "peer/..."."""
    return name == wanted or name.startswith(wanted + "/")


def made_for(name: str, source: str, target: str) -> bool:
    """Whether a path is meant for two such memories of one host ("host", "host:malloc", "cuda:0") at all.

    Where it is, but cannot be used, something on this machine stands in the way, and a user will want to
    know what.
    """
    gpus = sum(memory.startswith("cuda") for memory in (source, target))
    match name:
        case "peer/shm" | "peer/shm-nt":  # maps what peers can map
            return gpus == 0 and "host:malloc" not in (source, target)
        case "peer/cma":
            return gpus == 0
        case "peer/copy" | "peer/store":
            return gpus > 0
        case "mapped":  # GPU memory can be mapped by the processor of its own rank only
            return gpus == 1
        case "ucx/direct" | "ucx/staged":  # to other hosts
            return False
    return True
