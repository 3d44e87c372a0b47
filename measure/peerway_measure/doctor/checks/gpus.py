"""Checks of the driver, CUDA and the state of each GPU."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic

if TYPE_CHECKING:
    from ..facts import Facts

DRIVER = Topic(
    "gpus.driver", Group.GPUS, "Driver", "Without a working NVIDIA driver no GPU can be used at all."
)
DEVICES = Topic(
    "gpus.devices", Group.GPUS, "Devices", "These are the devices that Peerway moves bytes between."
)
CUDA = Topic(
    "gpus.cuda",
    Group.GPUS,
    "CUDA",
    "Peerway reaches GPUs through CUDA; its version decides which features exist.",
)
LINK = Topic(
    "gpus.pcie_link",
    Group.GPUS,
    "PCIe link",
    "A GPU that trained with fewer lanes has less bandwidth to the host, the network and storage.",
)
BAR1 = Topic(
    "gpus.bar1",
    Group.GPUS,
    "BAR1",
    "Other devices and the CPU reach GPU memory through this window.",
)
MODE = Topic(
    "gpus.mode",
    Group.GPUS,
    "Mode",
    "MIG switches peer access off, and exclusive compute mode lets only one process use a GPU.",
)
SHARING = Topic(
    "gpus.sharing",
    Group.GPUS,
    "Several ranks a GPU",
    "Without MPS processes take turns on a GPU: a kernel that waits for another rank keeps its time slice.",
)


def driver(facts: Facts) -> Finding:
    """Judge the driver: kernel module and user libraries."""
    d = facts.driver
    if d.module_version and d.library_version:
        return DRIVER.ok(f"{d.library_version}{', open kernel module' if d.open_module else ''}")
    if "mismatch" in d.nvml_error.lower():
        loaded = d.module_version or "another version"
        return DRIVER.warning(
            f"the kernel module ({loaded}) and the user libraries differ: {d.nvml_error}",
            "reboot, or unload and reload the nvidia modules; in a container, use the host's libraries",
        )
    if d.library_version:
        return DRIVER.ok(f"{d.library_version} (kernel module's version not readable)")
    if d.module_version:
        return DRIVER.warning(
            f"kernel module {d.module_version} is loaded, but NVML fails: {d.nvml_error}",
            "install the user libraries of the same version, or start the container with --gpus all",
        )
    if d.pci_gpus:
        return DRIVER.warning(
            f"{text.count(len(d.pci_gpus), 'NVIDIA GPU')} on the PCI bus, {_bound(d.pci_gpus)}",
            "install the NVIDIA driver, or bind the GPUs to it; then load it with modprobe nvidia",
        )
    return DRIVER.absent(
        "no NVIDIA driver", "nothing to do, if this node has no NVIDIA GPU; else install the driver"
    )


def devices(facts: Facts) -> Finding:
    """Judge which GPUs can be reached."""
    d = facts.driver
    if not facts.gpus:
        if d.unreadable_nodes:
            return DEVICES.warning(
                f"this user may not open {', '.join(d.unreadable_nodes)}",
                "ask for access to the GPU device files (a group, or a job that was given GPUs)",
            )
        if d.pci_gpus or d.module_version:
            return DEVICES.warning("none can be reached", "fix the driver, see above")
        return DEVICES.absent("none", "run this on a node with GPUs; host memory works without")
    names = Counter(f"{gpu.name or 'GPU'}, {text.size(gpu.memory)}" for gpu in facts.gpus)
    summary = "; ".join(f"{number} × {name}" for name, number in names.items())
    missing = len(d.pci_gpus) - len(facts.gpus)
    if missing > 0 and not facts.host.container:
        return DEVICES.warning(
            f"{summary}; {missing} more on the PCI bus that the driver does not show",
            "look in dmesg for Xid or 'fallen off the bus', and for other drivers bound to them",
        )
    return DEVICES.ok(summary)


def cuda(facts: Facts) -> Finding:
    """Judge whether CUDA starts."""
    d = facts.driver
    hidden = facts.host.environment.get("CUDA_VISIBLE_DEVICES")
    if not d.cuda_error and d.cuda_devices is not None:
        summary = f"{d.cuda_version}, {text.count(d.cuda_devices, 'GPU')} visible"
        if d.cuda_devices < len(facts.gpus):
            reason = f" (CUDA_VISIBLE_DEVICES={hidden})" if hidden is not None else ""
            return CUDA.ok(f"{summary} of {len(facts.gpus)}{reason}")
        return CUDA.ok(summary)
    if not facts.gpus and not d.module_version and not d.pci_gpus:
        return CUDA.no_gpu()
    if "NOT_READY" in d.cuda_error:
        todo = "start nvidia-fabricmanager of the driver's version (systemctl start nvidia-fabricmanager)"
    elif "DRIVER_MISMATCH" in d.cuda_error or "COMPAT" in d.cuda_error:
        todo = "make libcuda and the kernel module one version; take cuda-compat out of LD_LIBRARY_PATH"
    elif "STUB" in d.cuda_error:
        todo = "take the toolkit's stubs folder out of LD_LIBRARY_PATH"
    elif "libcuda" in d.cuda_error:
        todo = "install the driver's libcuda.so.1, or start the container with --gpus all"
    elif "no answer" in d.cuda_error:
        todo = "look at dmesg; the driver is stuck, or raise --timeout on a node where it starts slowly"
    elif hidden == "":
        todo = "CUDA_VISIBLE_DEVICES is set to nothing: unset it"
    else:
        todo = "look at nvidia-smi and the kernel log (dmesg) for the driver's own complaint"
    return CUDA.warning(d.cuda_error or "no answer", todo)


def pcie_link(facts: Facts) -> Finding:
    """Judge the lanes of each GPU."""
    if not facts.gpus:
        return LINK.no_gpu()
    narrow = [g for g in facts.gpus if g.pcie_width and g.pcie_width_max and g.pcie_width < g.pcie_width_max]
    if narrow:
        detail = ", ".join(f"GPU {g.index} ×{g.pcie_width} of ×{g.pcie_width_max}" for g in narrow)
        return LINK.warning(
            detail, "reseat the NIC or riser, or ask whether the slot has fewer lanes by design"
        )
    kinds = Counter(
        f"gen {g.pcie_generation_max} ×{g.pcie_width}"
        for g in facts.gpus
        if g.pcie_width and g.pcie_generation_max
    )
    if not kinds:
        return LINK.unknown("the driver does not say", "nothing to do; usual in virtual machines")
    return LINK.ok(", ".join(kinds) if len(kinds) == 1 else ", ".join(f"{n} × {k}" for k, n in kinds.items()))


def bar1(facts: Facts) -> Finding:
    """Judge the size of the window to GPU memory."""
    if not facts.gpus:
        return BAR1.no_gpu()
    known = [g for g in facts.gpus if g.bar1 and g.memory]
    if not known:
        return BAR1.unknown(
            "the driver does not say", "nothing to do; look at lspci -v for the size of the GPU's regions"
        )
    least = min(known, key=lambda g: g.bar1 or 0)
    used = max(g.bar1_used or 0 for g in known)
    summary = f"{text.size(least.bar1)} for {text.size(least.memory)} of memory, {text.size(used)} used"
    if (least.bar1 or 0) < (least.memory or 0):
        todo = "switch on Resizable BAR (and Above 4G decoding) in the firmware, if the GPU has it"
        return BAR1.off(f"{summary}: only a part can be mapped at once", todo)
    return BAR1.ok(summary)


def mode(facts: Facts) -> Finding:
    """Judge MIG and compute mode."""
    if not facts.gpus:
        return MODE.no_gpu()
    mig = [g.index for g in facts.gpus if g.mig]
    if mig:
        return MODE.warning(
            f"MIG is on: {text.gpus(mig)}", "nvidia-smi -mig 0 as root, when peers must reach each other"
        )
    shared = ("", "default", "exclusive_process") if facts.driver.mps else ("", "default")
    odd = [g for g in facts.gpus if g.compute_mode not in shared]
    if odd:
        kinds = ", ".join(sorted({g.compute_mode for g in odd}))
        return MODE.warning(
            f"compute mode {kinds}: {text.gpus(g.index for g in odd)}",
            "nvidia-smi -c DEFAULT as root, or start MPS, when several ranks share a GPU",
        )
    idle = [g.index for g in facts.gpus if g.persistence is False]
    return MODE.ok(
        "whole GPUs, shared compute mode" + (f"; persistence mode off: {text.gpus(idle)}" if idle else "")
    )


def sharing(facts: Facts) -> Finding:
    """Judge how several ranks can share one GPU."""
    if not facts.gpus:
        return SHARING.no_gpu()
    if any(g.mig for g in facts.gpus):
        return SHARING.ok("MIG gives each rank a part of a GPU of its own")
    if facts.driver.mps:
        return SHARING.ok("MPS runs: kernels of several ranks run at once")
    start = "start MPS (nvidia-cuda-mps-control -d), when several ranks share a GPU"
    if facts.driver.mps is None:
        return SHARING.unknown("processes outside this container are hidden, MPS among them", start)
    return SHARING.off("MPS does not run: ranks that share a GPU take turns", start)


def _bound(pci_gpus: dict[str, str]) -> str:
    drivers = sorted({name for name in pci_gpus.values() if name})
    return f"bound to {', '.join(drivers)}" if drivers else "with no driver bound"


CHECKS = (driver, devices, cuda, pcie_link, bar1, mode, sharing)
