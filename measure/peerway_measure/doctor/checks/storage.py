"""Checks of GPUDirect Storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic
from ..topology import DESCRIPTIONS, DISTANCES

if TYPE_CHECKING:
    from ..facts import Facts

GDS = Topic(
    "storage.gds",
    Group.STORAGE,
    "GPUDirect Storage",
    "Files then move between drive or file server and GPU memory with no copy in host memory.",
)
CUFILE = Topic(
    "storage.cufile", Group.STORAGE, "cuFile", "Programs reach GPUDirect Storage through libcufile."
)
DRIVES = Topic(
    "storage.drives",
    Group.STORAGE,
    "NVMe drives",
    "A drive that shares a PCIe switch with a GPU reaches it directly.",
)
_P2PDMA_DRIVER = (570,)


def gds(facts: Facts) -> Finding:
    """Judge nvidia-fs or what replaces it."""
    if not facts.gpus:
        return GDS.no_gpu()
    s, kernel = facts.storage, facts.kernel
    if "nvidia_fs" in kernel.modules or s.nvidia_fs_version:
        return GDS.ok(f"nvidia-fs {s.nvidia_fs_version or kernel.modules.get('nvidia_fs', '')}".strip())
    p2pdma = kernel.options.get("CONFIG_PCI_P2PDMA") == "y"
    driver = (
        text.version(facts.driver.library_version)[:1] >= _P2PDMA_DRIVER
        and facts.driver.open_module is not False
    )
    if s.pci_p2pdma and p2pdma:
        return GDS.ok("through the kernel's PCI peer-to-peer DMA (NVMe only)")
    other = ", or set use_pci_p2pdma in cufile.json for NVMe" if p2pdma and driver else ""
    return GDS.off("nvidia-fs is not loaded", f"install nvidia-gds and run modprobe nvidia-fs{other}")


def cufile(facts: Facts) -> Finding:
    """Judge libcufile and its settings."""
    library = facts.storage.libcufile
    if not library.path:
        if not facts.gpus:
            return CUFILE.no_gpu()
        return CUFILE.off(
            "libcufile.so.0 was not found", "pip install nvidia-cufile, or install the CUDA toolkit's"
        )
    summary = f"{library.version}{text.whence(library.path)}"
    if facts.storage.compat_mode is False and gds(facts).status != "ok":
        return CUFILE.warning(
            f"{summary}; {facts.storage.config_path} forbids copies through the host",
            "load nvidia-fs, or set allow_compat_mode to true",
        )
    return CUFILE.ok(summary)


def drives(facts: Facts) -> Finding:
    """Report the distance of NVMe drives."""
    if not facts.storage.drives:
        return DRIVES.absent("none", "nothing to do: files come over the network or a paravirtual disk")
    total = text.count(len(facts.storage.drives), "drive")
    if not facts.gpus:
        return DRIVES.ok(total)
    nearest: dict[str, list[int]] = {}
    for gpu in facts.gpus:
        far = (drive.gpu_distance.get(str(gpu.index), "unknown") for drive in facts.storage.drives)
        nearest.setdefault(min(far, key=DISTANCES.index), []).append(gpu.index)
    detail = "; ".join(f"{text.gpus(nearest[d])}: {DESCRIPTIONS[d]}" for d in DISTANCES if d in nearest)
    return DRIVES.ok(f"{total}; nearest to {detail}")


CHECKS = (gds, cufile, drives)
