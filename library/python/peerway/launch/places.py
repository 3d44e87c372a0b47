"""Decide which cores and which GPU each rank gets. `assign` is pure; `read_host` reads sysfs."""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


@dataclass(frozen=True)
class Host:
    """The cores that may be used on this host, in an order in which neighbours share most, and which cores
    are near which NUMA node and GPU.
    """

    cores: tuple[int, ...]
    nodes: tuple[frozenset[int], ...] = ()
    gpus: tuple[frozenset[int], ...] = ()  # for each visible GPU the cores near it; empty: not known


@dataclass(frozen=True)
class Place:
    """The cores and the GPU of one rank."""

    cores: frozenset[int] = field(default_factory=frozenset)
    through: tuple[str, ...] = ()  # the words before the rank's program, which start it
    settings: tuple[tuple[str, str], ...] = ()  # variables of this rank alone
    host: str = ""  # the host's name as the user gave it, if there are several hosts


def assign(ranks: int, host: Host) -> list[Place]:
    """Place each rank near its GPU, which is the rank's number modulo the number of GPUs. Without GPUs, ranks
    are spread over the NUMA nodes in blocks.

    Ranks with the same set of cores divide it evenly; if there are fewer cores than ranks, they share all of
    them.
    """
    everything = frozenset(host.cores)
    if host.gpus:
        near = [host.gpus[rank % len(host.gpus)] & everything or everything for rank in range(ranks)]
    else:
        near = over_nodes(
            ranks, [node & everything for node in host.nodes if node & everything] or [everything]
        )
    sharing: defaultdict[frozenset[int], list[int]] = defaultdict(list)
    for rank, cores in enumerate(near):
        sharing[cores].append(rank)
    places = [Place()] * ranks
    for cores, sharers in sharing.items():
        ordered = [core for core in host.cores if core in cores]
        for rank, share in zip(sharers, split(ordered, len(sharers)), strict=True):
            places[rank] = Place(frozenset(share))
    return places


def over_nodes(ranks: int, nodes: Sequence[frozenset[int]]) -> list[frozenset[int]]:
    """Give one node to each rank, in blocks, or several nodes to each if there are fewer ranks than nodes."""
    if ranks >= len(nodes):
        return [nodes[rank * len(nodes) // ranks] for rank in range(ranks)]
    bounds = [rank * len(nodes) // ranks for rank in range(ranks + 1)]
    pairs = itertools.pairwise(bounds)
    return [frozenset[int]().union(*nodes[low:high]) for low, high in pairs]


def split(cores: Sequence[int], parts: int) -> list[Sequence[int]]:
    """Cut the cores into contiguous blocks; if there are too few, give all of them to each rank."""
    if len(cores) < parts:
        return [cores] * parts
    bounds = [part * len(cores) // parts for part in range(parts + 1)]
    return [cores[low:high] for low, high in itertools.pairwise(bounds)]


def parse_list(text: str) -> frozenset[int]:
    """Read the kernel's list format: "0-3,8" is 0, 1, 2, 3, 8."""
    numbers: set[int] = set()
    for part in text.strip().split(","):
        if part:
            low, _, high = part.partition("-")
            numbers.update(range(int(low), int(high or low) + 1))
    return frozenset(numbers)


def read_list(path: Path) -> frozenset[int]:
    """Read such a list from a file; empty if it cannot be read, because sysfs differs from host to host."""
    try:
        return parse_list(path.read_text())
    except (OSError, ValueError):
        return frozenset()


def read_host(
    allowed: Iterable[int] | None = None, visible: str | None = None, root: Path = Path("/")
) -> Host:
    """Read this host. `visible` is CUDA_VISIBLE_DEVICES, or None when it is not set."""
    system = root / "sys/devices/system"

    def siblings(core: int) -> tuple[int, int]:
        together = read_list(system / f"cpu/cpu{core}/topology/thread_siblings_list")
        return (min(together, default=core), core)

    cores = sorted(allowed if allowed is not None else os.sched_getaffinity(0), key=siblings)
    folders = sorted(system.glob("node/node[0-9]*"), key=lambda folder: int(folder.name[4:]))
    nodes = tuple(read_list(folder / "cpulist") for folder in folders)
    return Host(tuple(cores), nodes, visible_gpus(read_gpus(root), visible))


def read_gpus(root: Path) -> list[frozenset[int]]:
    """Find the cores near each NVIDIA GPU, in PCI order."""
    folders = sorted((root / "proc/driver/nvidia/gpus").glob("*"))
    return [read_list(root / "sys/bus/pci/devices" / folder.name / "local_cpulist") for folder in folders]


def visible_gpus(gpus: Sequence[frozenset[int]], visible: str | None) -> tuple[frozenset[int], ...]:
    """Keep the GPUs that a process will see. The place of a GPU named by its UUID stays unknown."""
    if visible is None:
        return tuple(gpus)
    seen: list[frozenset[int]] = []
    for name in filter(None, visible.split(",")):
        if name.strip().lstrip("-").isdigit():
            index = int(name)
            if not 0 <= index < len(gpus):
                break  # as the driver does, which hides all GPUs after an invalid one
            seen.append(gpus[index])
        else:
            seen.append(frozenset())
    return tuple(seen)
