"""Names of paths, as they are asked for, and what each path is made for."""

from __future__ import annotations


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
