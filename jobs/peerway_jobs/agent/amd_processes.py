"""Finds the processes that compute on AMD GPUs, in the files of the kernel's compute driver (KFD).

/sys/class/kfd/kfd/proc has a folder for each process that uses ROCm, by its pid on the host, and anyone may
read it. The alternative, the lines drm-* of /proc/PID/fdinfo, needs every open file of every process in each
round and the right to trace them, and leaves out most memory of ROCm. It would also show programs that draw
or decode video, which are not seen here.
"""

from __future__ import annotations

from peerway_jobs.agent import files

_MOST_QUEUES = 4096  # of one process


class KfdProcesses:
    """Reads below `root`, which is / except in tests."""

    def __init__(self, root: str) -> None:
        self._kfd = f"{root.rstrip('/')}/sys/class/kfd/kfd"
        self._address_of: dict[str, str] = {}  # KFD's id of a GPU or of a part of one -> PCI address

    def find_gpus(self) -> dict[str, int]:
        """Read the GPUs' ids; the number of parts into which the GPU at each PCI address is divided."""
        parts: dict[str, int] = {}
        nodes = f"{self._kfd}/topology/nodes"
        for node in files.names(nodes):
            gpu_id = (files.text(f"{nodes}/{node}/gpu_id", 32) or "").strip()
            properties = files.keyed(f"{nodes}/{node}/properties")
            if gpu_id in ("", "0") or "location_id" not in properties:  # "0" is a CPU
                continue
            address = _pci_address(properties.get("domain", 0), properties["location_id"])
            self._address_of[gpu_id] = address
            parts[address] = parts.get(address, 0) + 1
        return parts

    def users(self) -> dict[str, set[int]]:
        """The processes with a queue or with memory on each GPU that KFD knows, by the GPU's PCI address.

        A process of ROCm opens all GPUs that it may open, and uses only some of them.
        """
        users: dict[str, set[int]] = {address: set() for address in self._address_of.values()}
        folder = f"{self._kfd}/proc"
        for name in files.names(folder):
            if name.isdigit():
                for gpu_id in self._used(f"{folder}/{name}"):
                    if gpu_id in self._address_of:
                        users[self._address_of[gpu_id]].add(int(name))
        return users

    def _used(self, folder: str) -> set[str]:
        used: set[str] = set()
        for name in files.names(folder):
            kind, _, gpu_id = name.partition("_")
            if kind == "vram" and (files.number(f"{folder}/{name}") or 0) > 0:
                used.add(gpu_id)
        for queue in files.names(f"{folder}/queues")[:_MOST_QUEUES]:
            used.add((files.text(f"{folder}/queues/{queue}/gpuid", 32) or "").strip())
        return used


def _pci_address(domain: int, location: int) -> str:
    """The address as Linux writes it. The upper bits of the location number the parts of a divided GPU."""
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"
