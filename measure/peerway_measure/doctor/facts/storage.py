"""NVMe drives and GPUDirect Storage."""

from __future__ import annotations

from dataclasses import dataclass, field

from .libraries import Library


@dataclass(kw_only=True)
class Drive:
    """One NVMe drive."""

    name: str = ""
    bus_id: str = ""
    numa_node: int | None = None
    gpu_distance: dict[str, str] = field(default_factory=dict)


@dataclass(kw_only=True)
class Storage:
    """GPUDirect Storage."""

    nvidia_fs_version: str = ""
    libcufile: Library = field(default_factory=Library)
    config_path: str = ""
    compat_mode: bool | None = None  # cufile.json lets cuFile fall back to copies through the host
    pci_p2pdma: bool | None = None  # cufile.json asks for the kernel's peer-to-peer DMA instead of nvidia-fs
    drives: list[Drive] = field(default_factory=list)
    # Mount point -> type, for the file systems that GPUDirect Storage can serve.
    file_systems: dict[str, str] = field(default_factory=dict)
