"""GPUs: each GPU, each pair of them, the driver and GDRCopy."""

from __future__ import annotations

from dataclasses import dataclass, field

from .amd import Amd
from .libraries import Library


@dataclass(kw_only=True)
class NvLink:
    """One active NVLink of a GPU."""

    remote: str = ""  # PCI bus id of the other end, "" when the driver hides it (virtual machines)
    remote_kind: str = "unknown"  # "gpu", "switch", "cpu" or "unknown"
    version: int | None = None


@dataclass(kw_only=True)
class CudaDevice:
    """What the CUDA driver reports about a GPU: device attributes, which can be read without a context."""

    compute_capability: str = ""
    dma_buf: bool | None = None
    dma_buf_mmap: bool | None = None  # CPU may mmap a dma-buf of GPU memory (drivers for CUDA 13.3 and newer)
    rdma: bool | None = None  # GPUDirect RDMA
    rdma_vmm: bool | None = None  # GPUDirect RDMA of memory from cuMemCreate
    rdma_flush: int | None = None  # bit mask: 1 host call, 2 stream memory operation
    rdma_ordering: int | None = None  # 0 none, 100 owner, 200 all devices
    vmm: bool | None = None
    posix_fd: bool | None = None
    fabric: bool | None = None
    multicast: bool | None = None
    memory_pools: bool | None = None
    pool_handles: int | None = None  # bit mask: 1 POSIX file descriptor, 8 fabric
    stream_memory_ops: bool | None = None  # 64-bit write and wait values on a stream
    stream_wait_nor: bool | None = None
    host_atomics: bool | None = None
    pageable_access: bool | None = None
    integrated: bool | None = None
    copy_engines: int | None = None
    ipc_events: bool | None = None


@dataclass(kw_only=True)
class Gpu:
    """One NVIDIA GPU."""

    index: int = 0  # the driver's order (NVML), which CUDA_VISIBLE_DEVICES may reorder
    name: str = ""
    uuid: str = ""
    bus_id: str = ""  # "0000:3b:00.0"
    memory: int | None = None
    numa_node: int | None = None
    bar1: int | None = None
    bar1_used: int | None = None
    pcie_generation: int | None = None
    pcie_generation_max: int | None = None
    pcie_width: int | None = None
    pcie_width_max: int | None = None
    mig: bool | None = None
    persistence: bool | None = None
    compute_mode: str = ""  # "default", "prohibited", "exclusive_process"
    virtualization: str = ""  # "none", "passthrough", "vgpu", ...
    # Registration with the NVSwitch fabric: "not_supported", "not_started", "in_progress" or "completed".
    fabric: str = ""
    fabric_error: str = ""
    nvlinks: list[NvLink] = field(default_factory=list)
    pci_bridges: list[str] = field(default_factory=list)  # from the root complex down, "pci0000:16" first
    iommu_group: int | None = None
    iommu_type: str = ""  # "DMA", "DMA-FQ", "identity", ""
    cuda: CudaDevice | None = None  # None when CUDA does not show this GPU to this process


@dataclass(kw_only=True)
class GpuPair:
    """What GPU `first` can do with the memory of GPU `second`."""

    first: int = 0
    second: int = 0
    distance: str = "unknown"  # one of topology.DISTANCES
    nvlinks: int | None = None
    access: bool | None = None  # peer access as CUDA reports it, or NVML if CUDA does not answer
    atomics: bool | None = None
    performance_rank: int | None = None
    read_status: str = ""  # NVML's reason: "ok", "chipset_not_supported", "disabled_by_regkey", ...
    write_status: str = ""
    nvlink_status: str = ""


@dataclass(kw_only=True)
class Driver:
    """The NVIDIA driver: kernel module, user library, CUDA."""

    module_version: str = ""  # "" when the kernel module is not loaded
    open_module: bool | None = None
    library_version: str = ""  # as NVML reports it
    nvml_error: str = ""
    cuda_version: str = ""  # "13.0": the newest CUDA this driver serves
    cuda_error: str = ""  # "CUDA_ERROR_SYSTEM_NOT_READY: ...", "" when CUDA works
    cuda_devices: int | None = None
    settings: dict[str, str] = field(default_factory=dict)  # a few entries of /proc/driver/nvidia/params
    device_nodes: list[str] = field(default_factory=list)
    unreadable_nodes: list[str] = field(default_factory=list)
    pci_gpus: dict[str, str] = field(default_factory=dict)  # NVIDIA GPUs on the PCI bus: bus id -> driver
    nvswitches: int = 0
    fabric_manager: bool | None = None  # whether its process is running
    mps: bool | None = None  # whether the control daemon of MPS is running
    amd: Amd = field(default_factory=Amd)  # the driver of AMD GPUs


@dataclass(kw_only=True)
class Mapping:
    """GDRCopy, with which the CPU reads and writes GPU memory."""

    gdrdrv_node: bool = False
    gdrdrv_usable: bool = False
    libgdrapi: Library = field(default_factory=Library)
