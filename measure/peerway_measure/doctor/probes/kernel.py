"""The kernel: modules, build options, boot arguments, IOMMU and the access control (ACS) of PCIe switches."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from ..facts import Gpu, Kernel, Nic

if TYPE_CHECKING:
    from ..system import System

_MODULES = [
    "nvidia",
    "nvidia_uvm",
    "nvidia_peermem",
    "nv_peer_mem",
    "nvidia_fs",
    "gdrdrv",
    "nouveau",
    "ib_core",
    "ib_uverbs",
    "mlx5_core",
    "mlx5_ib",
    "efa",
    "vfio_pci",
    "xpmem",
    "knem",
]
_OPTIONS = (
    "CONFIG_PCI_P2PDMA",
    "CONFIG_DMA_SHARED_BUFFER",
    "CONFIG_INFINIBAND_USER_MEM",
    "CONFIG_CROSS_MEMORY_ATTACH",
)
_ARGUMENTS = ("iommu", "intel_iommu", "amd_iommu", "iommu.", "pci", "pcie_", "nvidia", "hugepages", "swiotlb")


def probe(system: System, gpus: list[Gpu], nics: list[Nic]) -> Kernel:
    """Find out about the kernel."""
    release = system.read("/proc/sys/kernel/osrelease")
    words = system.read("/proc/cmdline").split()
    facts = Kernel(
        release=release,
        modules=_modules(system),
        options=_options(_config(system, release)),
        arguments=[word for word in words if word.partition("=")[0].startswith(_ARGUMENTS)],
        iommu_groups=len(system.list("/sys/kernel/iommu_groups")),
    )
    places = [gpu.pci_bridges for gpu in gpus] + [nic.pci_bridges for nic in nics]
    bridges = {bridge for place in places for bridge in place if not bridge.startswith("pci")}
    for bridge in sorted(bridges):
        config = system.read_bytes(f"/sys/bus/pci/devices/{bridge}/config", 4096)
        if len(config) <= 64:  # users other than root see only the header
            facts.acs_unreadable += 1
        elif redirects(config):
            facts.acs_redirect.append(bridge)
    return facts


def redirects(config: bytes) -> bool:
    """Whether a PCIe switch's downstream port sends requests between its peers up to the root complex.

    That is ACS P2P request redirect (PCI Express Base Specification, 7.5 and 7.7).
    """
    return _port_type(config) == 6 and bool(_acs_control(config) & 0x4)


def _port_type(config: bytes) -> int | None:
    """Give the kind of PCIe port (6 is a switch's downstream port), None when it is not PCIe."""
    at, steps = config[0x34], 0
    while 0x40 <= at <= len(config) - 4 and steps < 48:
        if config[at] == 0x10:
            return config[at + 2] >> 4
        at, steps = config[at + 1], steps + 1
    return None


def _acs_control(config: bytes) -> int:
    """Give the ACS control register, 0 when the port has none."""
    at, steps = 0x100, 0
    while 0x100 <= at <= len(config) - 8 and steps < 960:
        header = int.from_bytes(config[at : at + 4], "little")
        if header & 0xFFFF == 0x000D:
            return int.from_bytes(config[at + 6 : at + 8], "little")
        at, steps = header >> 20, steps + 1
    return 0


def _modules(system: System) -> dict[str, str]:
    loaded = {line.split()[0] for line in system.read("/proc/modules").splitlines() if line.strip()}
    built_in = {name for name in _MODULES if system.exists(f"/sys/module/{name}")}
    return {m: system.read(f"/sys/module/{m}/version") for m in _MODULES if m in loaded | built_in}


def _config(system: System, release: str) -> str:
    text = system.read(f"/boot/config-{release}") if release else ""
    if text:
        return text
    try:
        return gzip.decompress(system.read_bytes("/proc/config.gz")).decode("utf-8", "replace")
    except (OSError, EOFError, zlib.error):
        return ""


def _options(config: str) -> dict[str, str]:
    if not config:
        return {}
    lines = dict(
        line.split("=", 1) for line in config.splitlines() if "=" in line and not line.startswith("#")
    )
    return {option: lines.get(option, "n") for option in _OPTIONS}
