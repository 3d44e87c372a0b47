"""Prints what NVML says about this node's GPUs, as one line of JSON. A program of its own: NVML can block."""

from __future__ import annotations

import ctypes
import json
import sys
from typing import TYPE_CHECKING, Any

import pynvml

if TYPE_CHECKING:
    from collections.abc import Callable

P2P = {
    pynvml.NVML_P2P_STATUS_OK: "ok",
    pynvml.NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED: "chipset_not_supported",
    pynvml.NVML_P2P_STATUS_GPU_NOT_SUPPORTED: "gpu_not_supported",
    pynvml.NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED: "topology_not_supported",
    pynvml.NVML_P2P_STATUS_DISABLED_BY_REGKEY: "disabled_by_regkey",
    pynvml.NVML_P2P_STATUS_NOT_SUPPORTED: "not_supported",
}
FABRIC = {0: "not_supported", 1: "not_started", 2: "in_progress", 3: "completed"}
LINK_END = {0: "gpu", 1: "cpu", 2: "switch"}
COMPUTE_MODE = {0: "default", 1: "exclusive_thread", 2: "prohibited", 3: "exclusive_process"}
VIRTUALIZATION = {0: "none", 1: "passthrough", 2: "vgpu", 3: "host_vgpu", 4: "host_vsga"}
ANCESTOR = {0: "switch", 10: "switch", 20: "switch", 30: "root", 40: "node", 50: "across"}


def ask(function: Callable[..., Any], *arguments: Any) -> Any:
    """The answer of a function; None if the driver is too old, or the GPU does not have the feature."""
    try:
        return function(*arguments)
    except pynvml.NVMLError:
        return None


def text(value: Any) -> str:
    """Turn NVML's bytes or str into str."""
    return value.decode() if isinstance(value, bytes) else str(value or "")


def nvlinks(gpu: Any) -> list[dict[str, Any]]:
    """List the active NVLinks."""
    links = []
    for i in range(pynvml.NVML_NVLINK_MAX_LINKS):
        if ask(pynvml.nvmlDeviceGetNvLinkState, gpu, i) != 1:
            continue
        remote = ask(pynvml.nvmlDeviceGetNvLinkRemotePciInfo, gpu, i)
        kind = ask(pynvml.nvmlDeviceGetNvLinkRemoteDeviceType, gpu, i)
        links.append(
            {
                "remote": text(remote.busId) if remote else "",
                "remote_kind": LINK_END.get(kind, "unknown"),
                "version": ask(pynvml.nvmlDeviceGetNvLinkVersion, gpu, i),
            }
        )
    return links


def fabric(gpu: Any) -> tuple[str, str]:
    """Give the fabric's state and why joining it failed."""
    info = pynvml.c_nvmlGpuFabricInfoV_t()
    if ask(pynvml.nvmlDeviceGetGpuFabricInfoV, gpu, ctypes.byref(info)) is None:
        return "", ""
    state = FABRIC.get(info.state, "")
    failed = state == "completed" and info.status != pynvml.NVML_SUCCESS
    return state, str(pynvml.NVMLError(info.status)) if failed else ""


def memory(gpu: Any) -> dict[str, int | None]:
    """Give the sizes of memory and BAR1."""
    whole, bar1 = ask(pynvml.nvmlDeviceGetMemoryInfo, gpu), ask(pynvml.nvmlDeviceGetBAR1MemoryInfo, gpu)
    return {
        "memory": whole.total if whole else None,
        "bar1": bar1.bar1Total if bar1 else None,
        "bar1_used": bar1.bar1Used if bar1 else None,
    }


def device(index: int, gpu: Any) -> dict[str, Any]:
    """Gather one GPU's facts."""
    mig = ask(pynvml.nvmlDeviceGetMigMode, gpu)
    persistence = ask(pynvml.nvmlDeviceGetPersistenceMode, gpu)
    pci = ask(pynvml.nvmlDeviceGetPciInfo, gpu)
    state, failure = fabric(gpu)
    return {
        "index": index,
        "name": text(ask(pynvml.nvmlDeviceGetName, gpu)),
        "uuid": text(ask(pynvml.nvmlDeviceGetUUID, gpu)),
        "bus_id": text(pci.busId) if pci else "",
        **memory(gpu),
        "pcie_generation": ask(pynvml.nvmlDeviceGetCurrPcieLinkGeneration, gpu),
        "pcie_generation_max": ask(pynvml.nvmlDeviceGetMaxPcieLinkGeneration, gpu),
        "pcie_width": ask(pynvml.nvmlDeviceGetCurrPcieLinkWidth, gpu),
        "pcie_width_max": ask(pynvml.nvmlDeviceGetMaxPcieLinkWidth, gpu),
        "mig": bool(mig[0]) if mig else None,
        "persistence": None if persistence is None else bool(persistence),
        "compute_mode": COMPUTE_MODE.get(ask(pynvml.nvmlDeviceGetComputeMode, gpu), ""),
        "virtualization": VIRTUALIZATION.get(ask(pynvml.nvmlDeviceGetVirtualizationMode, gpu), ""),
        "fabric": state,
        "fabric_error": failure,
        "nvlinks": nvlinks(gpu),
    }


def pair(first: Any, second: Any) -> dict[str, Any]:
    """Gather what NVML says about two GPUs."""

    def status(capability: Any) -> str:
        # These constants of pynvml are tuples of one number, because of a stray comma after each.
        index = capability[0] if isinstance(capability, tuple) else capability
        value = ask(pynvml.nvmlDeviceGetP2PStatus, first, second, index)
        return "" if value is None else P2P.get(value, "unknown")

    return {
        "read_status": status(pynvml.NVML_P2P_CAPS_INDEX_READ),
        "write_status": status(pynvml.NVML_P2P_CAPS_INDEX_WRITE),
        "nvlink_status": status(pynvml.NVML_P2P_CAPS_INDEX_NVLINK),
        "distance": ANCESTOR.get(ask(pynvml.nvmlDeviceGetTopologyCommonAncestor, first, second), "unknown"),
    }


def answer() -> dict[str, Any]:
    """Gather everything."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return {"error": str(error), "mismatch": error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH}
    count = ask(pynvml.nvmlDeviceGetCount) or 0
    handles = [(i, ask(pynvml.nvmlDeviceGetHandleByIndex, i)) for i in range(count)]
    gpus = [(i, h) for i, h in handles if h is not None]
    return {
        "driver": text(ask(pynvml.nvmlSystemGetDriverVersion)),
        "cuda": ask(pynvml.nvmlSystemGetCudaDriverVersion_v2),
        "unreachable": [i for i, h in handles if h is None],
        "devices": [device(i, h) for i, h in gpus],
        "pairs": [{"first": i, "second": j, **pair(a, b)} for i, a in gpus for j, b in gpus if i != j],
    }


if __name__ == "__main__":
    json.dump(answer(), sys.stdout)
