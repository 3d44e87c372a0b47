"""The NVIDIA driver, its GPUs and what they may do with each other's memory.

NVML and CUDA are joined by PCI address: they may number GPUs differently, and CUDA may see fewer.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from .. import topology
from ..decode import decode
from ..facts import CudaDevice, Driver, Gpu, GpuPair

if TYPE_CHECKING:
    from ..system import System

_NVIDIA = "0x10de"
_SETTINGS = ("PeerMappingOverride", "EnableStreamMemOPs", "DmaRemapPeerMmio", "GrdmaPciTopoCheckOverride")


def driver(system: System, nvml: dict[str, Any], cuda: dict[str, Any]) -> Driver:
    """Find out about the driver."""
    banner = system.read("/proc/driver/nvidia/version")
    version = re.search(r"Kernel Module\s+(?:for \S+\s+)?(\d[\d.]+)", banner)
    nodes = [f"/dev/{name}" for name in system.list("/dev") if re.fullmatch(r"nvidia(\d+|ctl|-uvm)", name)]
    facts = Driver(
        module_version=version[1] if version else system.read("/sys/module/nvidia/version"),
        open_module="Open Kernel Module" in banner if banner else None,
        library_version=str(nvml.get("driver", "")),
        nvml_error=str(nvml.get("error", "")),
        cuda_version=_cuda_version(nvml.get("cuda") or cuda.get("version")),
        cuda_error=str(cuda.get("error", "")),
        cuda_devices=len(cuda["devices"]) if "devices" in cuda and not cuda.get("error") else None,
        settings=_settings(system.read("/proc/driver/nvidia/params")),
        device_nodes=nodes,
        unreadable_nodes=[node for node in nodes if not system.usable(node)],
        fabric_manager=_process_runs(system, "nv-fabricmanager"),
        mps=_process_runs(system, "nvidia-cuda-mps-control"),
    )
    for address in system.list("/sys/bus/pci/devices"):
        folder = f"/sys/bus/pci/devices/{address}"
        if system.read(f"{folder}/vendor") != _NVIDIA:
            continue
        kind = system.read(f"{folder}/class")
        if kind.startswith(("0x0300", "0x0302")):
            facts.pci_gpus[address] = system.resolve(f"{folder}/driver").rpartition("/")[2]
        elif kind.startswith("0x0680"):
            facts.nvswitches += 1
    return facts


def devices(system: System, nvml: dict[str, Any], cuda: dict[str, Any]) -> list[Gpu]:
    """The GPUs of NVML, in its order; those of CUDA if NVML does not answer."""
    listed = nvml.get("devices") or [
        {**d, "index": i, "uuid": f"GPU-{d.get('uuid', '')}"} for i, d in enumerate(cuda.get("devices") or [])
    ]
    seen = {topology.bus_id(d["bus_id"]): d["cuda"] for d in cuda.get("devices") or []}
    gpus = []
    for item in listed:
        gpu = decode(Gpu, {key: value for key, value in item.items() if key != "cuda"})
        gpu.bus_id = topology.bus_id(gpu.bus_id)
        gpu.numa_node = topology.numa_node(system, gpu.bus_id)
        gpu.pci_bridges = topology.place(system, gpu.bus_id)
        gpu.cuda = decode(CudaDevice, seen[gpu.bus_id]) if gpu.bus_id in seen else None
        for link in gpu.nvlinks:
            hidden = not link.remote.strip("0:.")
            link.remote = "" if hidden else topology.bus_id(link.remote)
        group = system.resolve(f"/sys/bus/pci/devices/{gpu.bus_id}/iommu_group").rpartition("/")[2]
        if group.isdigit():
            gpu.iommu_group = int(group)
            gpu.iommu_type = system.read(f"/sys/kernel/iommu_groups/{group}/type")
        gpus.append(gpu)
    return gpus


def pairs(gpus: list[Gpu], nvml: dict[str, Any], cuda: dict[str, Any]) -> list[GpuPair]:
    """Every ordered pair of different GPUs."""
    by_nvml = {(p["first"], p["second"]): p for p in nvml.get("pairs") or []}
    order = [topology.bus_id(d["bus_id"]) for d in cuda.get("devices") or []]
    by_cuda = {(order[p["first"]], order[p["second"]]): p for p in cuda.get("pairs") or []}
    result = []
    for a in gpus:
        for b in gpus:
            if a.index != b.index:
                reply = {**by_nvml.get((a.index, b.index), {}), **by_cuda.get((a.bus_id, b.bus_id), {})}
                result.append(_pair(a, b, reply))
    return result


def _pair(a: Gpu, b: Gpu, reply: dict[str, Any]) -> GpuPair:
    pair = decode(GpuPair, {**reply, "first": a.index, "second": b.index})
    seen = topology.distance(a.pci_bridges, b.pci_bridges, a.numa_node, b.numa_node)
    pair.distance = seen if seen != "unknown" else pair.distance
    pair.nvlinks = _links(a, b, pair.nvlink_status)
    if pair.access is None and pair.read_status:
        pair.access = pair.read_status == "ok" and pair.write_status == "ok"
    return pair


def _links(a: Gpu, b: Gpu, status: str) -> int | None:
    """The number of NVLinks of a pair: direct ones, or else those to the switches that both share."""
    direct = sum(link.remote == b.bus_id for link in a.nvlinks if link.remote)
    if direct:
        return direct
    if status and status != "ok":
        return 0
    shared = min(sum(link.remote_kind != "gpu" for link in gpu.nvlinks) for gpu in (a, b))
    if status == "ok":
        return shared or min(len(a.nvlinks), len(b.nvlinks)) or None
    switched = all(any(link.remote_kind == "switch" for link in gpu.nvlinks) for gpu in (a, b))
    return shared if switched else 0


def _cuda_version(number: object) -> str:
    return f"{number // 1000}.{number % 1000 // 10}" if isinstance(number, int) and number else ""


def _settings(text: str) -> dict[str, str]:
    lines = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, _, value in lines if key.strip() in _SETTINGS}


def _process_runs(system: System, name: str) -> bool:
    processes = [entry for entry in system.list("/proc") if entry.isdigit()]
    # The kernel keeps only 15 letters of a name.
    return any(system.read(f"/proc/{p}/comm") == name[:15] for p in processes)
