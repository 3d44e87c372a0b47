"""AMD GPUs. The kernel's driver describes them and their links in /sys/class/kfd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..facts import Amd, AmdGpu

if TYPE_CHECKING:
    from ..system import System

_AMD = "0x1002"
_NODES = "/sys/class/kfd/kfd/topology/nodes"
_PUBLIC, _PRIVATE = 1, 2  # kinds of memory: GPU memory that the CPU reaches, or does not
_XGMI = 11  # kind of a link


def probe(system: System) -> Amd:
    """Find out about the driver, ROCm and the GPUs."""
    facts = Amd(
        module=system.exists("/sys/module/amdgpu"),
        module_version=system.read("/sys/module/amdgpu/version"),
        kfd=system.exists("/dev/kfd"),
        kfd_usable=system.usable("/dev/kfd"),
        rocm_version=system.read("/opt/rocm/.info/version"),
        no_retry=system.number("/sys/module/amdgpu/parameters/noretry"),
    )
    for address in system.list("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{address}"
        kind = system.read(f"{folder}/class")
        # Display controllers, and accelerators without a display.
        if system.read(f"{folder}/vendor") == _AMD and kind.startswith(("0x03", "0x1200")):
            facts.pci_gpus[address] = system.resolve(f"{folder}/driver").rpartition("/")[2]
    nodes = sorted(int(name) for name in system.list(_NODES) if name.isdecimal())
    facts.gpus = [gpu for node in nodes if (gpu := _gpu(system, node)) is not None]
    known = {gpu.node for gpu in facts.gpus}
    for gpu in facts.gpus:
        gpu.xgmi = sorted(known.intersection(gpu.xgmi))
    return facts


def _gpu(system: System, node: int) -> AmdGpu | None:
    """The GPU of a node of the topology; None for a CPU."""
    folder = f"{_NODES}/{node}"
    values = _properties(system, f"{folder}/properties")
    version = values.get("gfx_target_version", 0)
    if version == 0:
        return None
    gpu = AmdGpu(node=node, architecture=_architecture(version), bus_id=_bus_id(values))
    banks = [
        _properties(system, f"{folder}/mem_banks/{bank}/properties")
        for bank in _numbers(system, folder, "mem_banks")
    ]
    own = [bank for bank in banks if bank.get("heap_type") in (_PUBLIC, _PRIVATE)]
    if own:
        gpu.memory = sum(bank.get("size_in_bytes", 0) for bank in own)
        gpu.large_bar = all(bank["heap_type"] == _PUBLIC for bank in own)
    for link in _numbers(system, folder, "io_links"):
        ends = _properties(system, f"{folder}/io_links/{link}/properties")
        if ends.get("type") == _XGMI and "node_to" in ends:
            gpu.xgmi.append(ends["node_to"])
    return gpu


def _numbers(system: System, folder: str, name: str) -> list[str]:
    return [entry for entry in system.list(f"{folder}/{name}") if entry.isdecimal()]


def _properties(system: System, name: str) -> dict[str, int]:
    """The lines "name number" of a file."""
    pairs = [line.split() for line in system.read(name).splitlines()]
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}


def _architecture(version: int) -> str:
    """90010 as "gfx90a": major, minor and stepping, the last two as hexadecimal digits."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def _bus_id(values: dict[str, int]) -> str:
    """The PCI address in the driver's "location_id": bus, device and function."""
    place = values.get("location_id", 0)
    return f"{values.get('domain', 0):04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
