"""Checks of AMD GPUs. Peerway's device for them never ran on hardware (docs/library/amd.md)."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .. import text
from ..finding import NO_AMD_GPU, Finding, Group, Topic
from .between import ONE_GPU

if TYPE_CHECKING:
    from ..facts import Facts

DRIVER = Topic(
    "amd.driver", Group.AMD, "ROCm", "Peerway reaches AMD GPUs through HIP, a library of ROCm, and amdgpu."
)
DEVICES = Topic("amd.devices", Group.AMD, "Devices", "Kernels are compiled for the architecture of each GPU.")
LARGE_BAR = Topic(
    "amd.large_bar",
    Group.AMD,
    "Large BAR",
    "The CPU, NICs and other GPUs reach a GPU's memory over PCIe only where its BAR covers all of it.",
)
XGMI = Topic("amd.xgmi", Group.AMD, "xGMI", "GPUs that xGMI joins reach each other faster than over PCIe.")
XNACK = Topic(
    "amd.xnack",
    Group.AMD,
    "XNACK",
    "With XNACK kernels may touch memory that was not registered; code is compiled for one state of it.",
)


def driver(facts: Facts) -> Finding:
    """Judge the kernel's driver and ROCm."""
    amd = facts.driver.amd
    if not amd.pci_gpus and not amd.gpus:
        return _without_gpu(DRIVER)
    if not amd.module:
        return DRIVER.warning(
            f"{text.count(len(amd.pci_gpus), 'AMD GPU')} on the PCI bus, but amdgpu is not loaded",
            "modprobe amdgpu; install the driver amdgpu-dkms if the kernel has none",
        )
    name = f"amdgpu {amd.module_version}" if amd.module_version else "the kernel's amdgpu"
    if amd.kfd and not amd.kfd_usable:
        return DRIVER.warning(
            f"{name}, but this user may not open /dev/kfd", "add the user to the groups render and video"
        )
    if not amd.kfd:
        return DRIVER.warning(
            f"{name}, but there is no /dev/kfd",
            "start the container with --device /dev/kfd --device /dev/dri; else use a kernel with HSA_AMD",
        )
    if not amd.rocm_version:
        return DRIVER.off(
            f"{name}; no ROCm in /opt/rocm",
            "install hip-runtime-amd of ROCm 6 or newer, or point the setting hip_library at libamdhip64.so",
        )
    if int(amd.rocm_version.partition(".")[0] or 0) < 6:
        return DRIVER.warning(f"{name}, ROCm {amd.rocm_version}", "install ROCm 6 or newer: Peerway needs it")
    return DRIVER.ok(f"{name}, ROCm {amd.rocm_version}")


def devices(facts: Facts) -> Finding:
    """Judge which GPUs the driver shows."""
    amd = facts.driver.amd
    if not amd.pci_gpus and not amd.gpus:
        return _without_gpu(DEVICES)
    if not amd.gpus:
        return DEVICES.warning("none in /sys/class/kfd", "fix the driver, see above")
    kinds = Counter(
        f"{gpu.architecture}{f', {text.size(gpu.memory)}' if gpu.memory else ''}" for gpu in amd.gpus
    )
    return DEVICES.ok("; ".join(f"{number} × {kind}" for kind, number in kinds.items()))


def large_bar(facts: Facts) -> Finding:
    """Judge whether the whole memory of each GPU can be reached over PCIe."""
    gpus = facts.driver.amd.gpus
    if not gpus:
        return _without_gpu(LARGE_BAR)
    if any(gpu.large_bar is None for gpu in gpus):
        return LARGE_BAR.unknown("the driver does not say", "look for pools of all agents in rocminfo")
    small = [gpu.bus_id for gpu in gpus if not gpu.large_bar]
    if small:
        return LARGE_BAR.warning(
            f"not on {', '.join(small)}",
            'switch on "Above 4G decoding" and "Resizable BAR" in the firmware, then reboot',
        )
    return LARGE_BAR.ok("on all GPUs" if len(gpus) > 1 else "on the GPU")


def xgmi(facts: Facts) -> Finding:
    """Say which GPUs xGMI joins."""
    gpus = facts.driver.amd.gpus
    if len(gpus) < 2:
        return XGMI.absent(ONE_GPU, "nothing to do: it takes two GPUs") if gpus else _without_gpu(XGMI)
    pairs = {tuple(sorted((gpu.node, other))) for gpu in gpus for other in gpu.xgmi}
    possible = len(gpus) * (len(gpus) - 1) // 2
    if not pairs:
        return XGMI.absent("no links: GPUs reach each other over PCIe", "nothing to do")
    return XGMI.ok(f"{len(pairs)} of {text.count(possible, 'pair')} of GPUs joined directly")


def xnack(facts: Facts) -> Finding:
    """Say what decides XNACK: the variable HSA_XNACK, then the driver's parameter."""
    amd = facts.driver.amd
    if not amd.gpus:
        return _without_gpu(XNACK)
    variable = facts.host.environment.get("HSA_XNACK")
    if variable is not None:
        return XNACK.ok(f"{'on' if variable == '1' else 'off'} (HSA_XNACK={variable})")
    if amd.no_retry is None:
        return XNACK.unknown(
            "the driver's parameter noretry cannot be read", "rocminfo shows xnack+ or xnack-"
        )
    states = {0: "on where the GPU can (noretry=0)", 1: "off (noretry=1)"}
    return XNACK.ok(states.get(amd.no_retry, "the driver's default for each GPU (noretry=-1)"))


def _without_gpu(topic: Topic) -> Finding:
    return topic.absent(NO_AMD_GPU, "nothing to do, if this node has none; else see lspci -d 1002:")


CHECKS = (driver, devices, large_bar, xgmi, xnack)
