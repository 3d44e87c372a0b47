"""Where PCI devices are, and how far apart two of them are.

A device's place is the list of bridges above it, from the root complex down, as sysfs shows it:
["pci0000:16", "0000:16:01.0", "0000:17:00.0", "0000:18:00.0"].
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .system import System

# Nearest first. "switch": a PCI switch (or one multi-function NIC) joins them, and data need not pass the
# CPU. "root": they meet in one root complex. "node": different root complexes of one NUMA node.
# "across": different NUMA nodes.
DISTANCES = ("switch", "root", "node", "across", "unknown")
DESCRIPTIONS = {
    "switch": "same PCIe switch",
    "root": "same root complex",
    "node": "same NUMA node",
    "across": "across NUMA nodes",
    "unknown": "distance unknown",
}

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")
_ROOT = re.compile(r"pci[0-9a-f]{4,}:[0-9a-f]{2}$")


def bus_id(text: str) -> str:
    """A PCI address in the form of sysfs: "00000000:3B:00.0" becomes "0000:3b:00.0". "" stays ""."""
    parts = text.strip().lower().split(":")
    if len(parts) == 2:
        parts.insert(0, "0")
    if len(parts) != 3:
        return text.strip().lower()
    try:
        return f"{int(parts[0], 16):04x}:{parts[1]}:{parts[2]}"
    except ValueError:
        return text.strip().lower()


def place(system: System, address: str) -> list[str]:
    """The bridges above a PCI device; [] if sysfs does not show it."""
    return _chain(system.resolve(f"/sys/bus/pci/devices/{address}"))[:-1]


def device_address(system: System, name: str) -> str:
    """The PCI address of a class device (/sys/class/net/eth0); "" if it has none."""
    chain = [part for part in _chain(system.resolve(name)) if not part.startswith("pci")]
    return chain[-1] if chain else ""


def numa_node(system: System, address: str) -> int | None:
    """The NUMA node of a PCI device. It is 0 if the firmware does not say it and the machine has only one
    node.
    """
    node = system.number(f"/sys/bus/pci/devices/{address}/numa_node")
    if node is not None and node >= 0:
        return node
    return 0 if address and numa_nodes(system) == 1 else None


def numa_nodes(system: System) -> int:
    """Count NUMA nodes that have CPUs."""
    nodes = [n for n in system.list("/sys/devices/system/node") if re.fullmatch(r"node\d+", n)]
    with_cores = [n for n in nodes if system.read(f"/sys/devices/system/node/{n}/cpulist")]
    return len(with_cores) or len(nodes) or 1  # memory-only nodes are GPUs or expanders, not sockets


def distance(first: list[str], second: list[str], first_node: int | None, second_node: int | None) -> str:
    """One of DISTANCES for two devices, each given by its bridges and its NUMA node."""
    if not first or not second:
        return "unknown"
    if first[0] == second[0]:
        return "switch" if len(first) > 1 and first[1:2] == second[1:2] else "root"
    if first_node is None or second_node is None:
        return "unknown"
    return "node" if first_node == second_node else "across"


def _chain(path: str) -> list[str]:
    return [part for part in path.split("/") if _ADDRESS.match(part) or _ROOT.match(part)]
