"""AMD GPUs, as the kernel's driver shows them in sysfs."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class AmdGpu:
    """One AMD GPU."""

    node: int = 0  # its number in the topology of the driver
    architecture: str = ""  # "gfx90a"
    bus_id: str = ""  # "0000:c1:00.0"
    memory: int | None = None
    large_bar: bool | None = None  # the CPU and other devices reach all of its memory
    xgmi: list[int] = field(default_factory=list)  # the nodes of GPUs that an xGMI link joins it with


@dataclass(kw_only=True)
class Amd:
    """The driver amdgpu, ROCm, and the GPUs."""

    module: bool = False
    module_version: str = ""  # "" for the driver of the kernel itself, which has no version of its own
    kfd: bool = False  # /dev/kfd, through which ROCm works, exists
    kfd_usable: bool = False
    rocm_version: str = ""  # "6.3.0-39"
    no_retry: int | None = None  # the driver's parameter noretry: 0 switches XNACK on where a GPU can, 1 off
    pci_gpus: dict[str, str] = field(default_factory=dict)  # AMD GPUs on the PCI bus: bus id -> driver
    gpus: list[AmdGpu] = field(default_factory=list)
