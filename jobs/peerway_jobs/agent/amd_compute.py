"""Finds partitions of AMD GPUs, and the processes on them, in the files of the kernel's compute driver (KFD).

/sys/class/kfd/kfd/topology/nodes has a folder for each GPU, or for each partition of one (DPX to CPX).
/sys/class/kfd/kfd/proc has a folder for each process that uses ROCm, by its pid on the host, and anyone may
read it. The alternative, the lines drm-* of /proc/PID/fdinfo, needs every open file of every process in each
round and the right to trace them, and leaves out most memory of ROCm. It would also show programs that draw
or decode video, which are not seen here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from peerway_jobs.agent import files
from peerway_jobs.batch_check import MOST_MINOR

_MOST_QUEUES = 4096  # of one process


@dataclass(frozen=True, slots=True)
class KfdGpu:
    """A GPU, or a partition of one."""

    id: str  # KFD's
    minor: int | None  # N of /dev/dri/renderDN
    folder: str  # of its memory


@dataclass(slots=True)
class Use:
    """The processes on a GPU or partition, and the bytes of its memory that they hold."""

    pids: set[int] = field(default_factory=set)
    memory_bytes: int = 0


class Kfd:
    """Reads below `root`, which is / except in tests."""

    def __init__(self, root: str) -> None:
        self._kfd = f"{root.rstrip('/')}/sys/class/kfd/kfd"
        self._ids: set[str] = set()

    def find_gpus(self, addresses: Collection[str]) -> dict[str, list[KfdGpu]]:
        """Read the topology again: the GPU at each of these addresses on PCI, or its partitions in order."""
        gpus: dict[str, list[KfdGpu]] = {}
        nodes = f"{self._kfd}/topology/nodes"
        for node in sorted(files.names(nodes), key=lambda name: (len(name), name)):
            gpu_id = (files.text(f"{nodes}/{node}/gpu_id", 32) or "").strip()
            properties = files.keyed(f"{nodes}/{node}/properties")
            if gpu_id in ("", "0") or "location_id" not in properties:  # "0" is a CPU
                continue
            address = _pci_address(properties.get("domain", 0), properties["location_id"], addresses)
            minor = properties.get("drm_render_minor", 0)
            gpus.setdefault(address, []).append(
                KfdGpu(gpu_id, minor if 0 < minor < MOST_MINOR else None, f"{nodes}/{node}/mem_banks/0")
            )
        self._ids = {gpu.id for parts in gpus.values() for gpu in parts}
        return gpus

    def uses(self) -> dict[str, Use]:
        """The processes with a queue or with memory on each GPU or partition that KFD knows, by KFD's id.

        A process of ROCm opens all GPUs that it may open, and uses only some of them.
        """
        uses = {gpu_id: Use() for gpu_id in self._ids}
        folder = f"{self._kfd}/proc"
        for name in files.names(folder):
            if name.isdigit():
                for gpu_id, held in self._used(f"{folder}/{name}").items():
                    if gpu_id in uses:
                        uses[gpu_id].pids.add(int(name))
                        uses[gpu_id].memory_bytes += held
        return uses

    def _used(self, folder: str) -> dict[str, int]:
        """The bytes that a process holds of each GPU on which it has memory or a queue."""
        used: dict[str, int] = {}
        for name in files.names(folder):
            kind, _, gpu_id = name.partition("_")
            if kind == "vram" and (held := files.number(f"{folder}/{name}") or 0) > 0:
                used[gpu_id] = held
        for queue in files.names(f"{folder}/queues")[:_MOST_QUEUES]:
            used.setdefault((files.text(f"{folder}/queues/{queue}/gpuid", 32) or "").strip(), 0)
        return used


def _pci_address(domain: int, location: int, addresses: Collection[str]) -> str:
    """The address as Linux writes it, of the GPU or of the GPU to which a partition belongs.

    The number of a partition is in the upper four bits of the location, or in those of PCI's function,
    depending on the kernel; a GPU's own function is 0 unless it is a virtual one.
    """
    place = f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}"
    exact = f"{place}.{location & 7}"
    return exact if exact in addresses else f"{place}.0"
