"""What is known about this node: plain data that the probes fill in and the checks judge.

`None` always means "could not be found out"; `False`, 0 and "" are answers. Sizes are in bytes unless the
name says otherwise. The JSON of `peerway doctor --json` has the same fields under "facts".
"""

from __future__ import annotations

from dataclasses import dataclass, field


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
    rdma_vmm: bool | None = None  # ... of memory made with the virtual memory management calls
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
    fabric: str = (
        ""  # NVSwitch fabric registration: "not_supported", "not_started", "in_progress", "completed"
    )
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
    access: bool | None = None  # peer access, by CUDA; by NVML where CUDA gave no answer
    atomics: bool | None = None
    performance_rank: int | None = None
    read_status: str = ""  # NVML's reason: "ok", "chipset_not_supported", "disabled_by_regkey", ...
    write_status: str = ""
    nvlink_status: str = ""


@dataclass(kw_only=True)
class Driver:
    """The NVIDIA driver: kernel module, user library, CUDA."""

    module_version: str = ""  # of the loaded kernel module, "" when none is loaded
    open_module: bool | None = None
    library_version: str = ""  # what NVML answers
    nvml_error: str = ""
    cuda_version: str = ""  # "13.0": the newest CUDA this driver serves
    cuda_error: str = ""  # "CUDA_ERROR_SYSTEM_NOT_READY: ...", "" when CUDA works
    cuda_devices: int | None = None
    settings: dict[str, str] = field(default_factory=dict)  # a few entries of /proc/driver/nvidia/params
    device_nodes: list[str] = field(default_factory=list)
    unreadable_nodes: list[str] = field(default_factory=list)
    pci_gpus: dict[str, str] = field(
        default_factory=dict
    )  # NVIDIA GPUs on the PCI bus: bus id -> bound driver
    nvswitches: int = 0
    fabric_manager: bool | None = None  # its process is running
    mps: bool | None = None  # so is the control daemon of MPS


@dataclass(kw_only=True)
class Nic:
    """One NIC: an RDMA device, an Ethernet interface, or both."""

    name: str = ""  # "mlx5_0", or the interface's name where there is no RDMA device
    rdma: bool = False
    driver: str = ""
    bus_id: str = ""
    numa_node: int | None = None
    interfaces: list[str] = field(default_factory=list)
    link_layer: str = ""  # "InfiniBand", "Ethernet"
    state: str = ""  # "active", "down", ...
    rate: str = ""  # "400 Gb/s"
    firmware: str = ""
    virtual: bool = False  # no PCI device of its own, or a paravirtual one
    pci_bridges: list[str] = field(default_factory=list)
    gpu_distance: dict[str, str] = field(default_factory=dict)  # GPU index (as text) -> distance


@dataclass(kw_only=True)
class Library:
    """A shared library that the doctor looked for."""

    path: str = ""  # "" when it was not found
    version: str = ""
    untried: bool = False  # the search itself failed, see Facts.problems
    error: str = ""


@dataclass(kw_only=True)
class NicPlugin:
    """One entry of PEERWAY_NIC: a NIC plugin, and the NIC that it opened."""

    entry: str = ""  # as PEERWAY_NIC has it
    name: str = ""  # of the NIC; "" when neither the entry nor a plugin says it
    file: str = ""
    abi: int | None = None  # the version of peerway/nic.h; None when it could not be loaded
    opened: bool = False
    error: str = ""  # what kept it from being loaded or opened
    untried: bool = False  # the process that tried gave no answer
    puts_in_order: bool = False
    gets_behind_puts: bool = False
    memory: list[str] = field(default_factory=list)  # "host", "CUDA", "HIP"
    largest: int = 0  # bytes of one put or get
    copied: int = 0  # bytes of a put from memory that is not registered
    in_flight: int = 0  # operations under way; 0: not known
    endpoints: int = 0  # that a job can have


@dataclass(kw_only=True)
class Network:
    """NICs and access to them."""

    nics: list[Nic] = field(default_factory=list)
    verbs_nodes: list[str] = field(default_factory=list)
    unusable_verbs_nodes: list[str] = field(default_factory=list)
    libibverbs: Library = field(default_factory=Library)
    plugins: list[NicPlugin] = field(default_factory=list)  # that PEERWAY_NIC names
    plugins_error: str = ""  # what is wrong with PEERWAY_NIC itself


@dataclass(kw_only=True)
class Mapping:
    """GDRCopy: how the CPU reaches GPU memory."""

    gdrdrv_node: bool = False
    gdrdrv_usable: bool = False
    libgdrapi: Library = field(default_factory=Library)


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
    file_systems: dict[str, str] = field(
        default_factory=dict
    )  # mount point -> type, of those that GDS can serve


@dataclass(kw_only=True)
class Kernel:
    """The kernel and what it does to DMA."""

    release: str = ""
    modules: dict[str, str] = field(default_factory=dict)  # loaded modules of interest -> version or ""
    options: dict[str, str] = field(default_factory=dict)  # build options of interest -> "y", "m", "n"
    arguments: list[str] = field(default_factory=list)  # boot arguments that bear on DMA
    iommu_groups: int = 0
    acs_redirect: list[str] = field(
        default_factory=list
    )  # bridges above a GPU or NIC that send peers via the root
    acs_unreadable: int = 0  # such bridges whose registers this user may not read


@dataclass(kw_only=True)
class HugePages:
    """One size of huge pages."""

    size: int = 0
    total: int = 0
    free: int = 0


@dataclass(kw_only=True)
class Host:
    """The host."""

    name: str = ""
    cpu: str = ""
    cores: int = 0
    numa_nodes: int = 0
    hypervisor: str = ""  # "" on bare metal, else its name or "yes"
    container: str = ""  # "" outside, else "docker", "podman", ...
    cross_attach: bool | None = None  # a process may read another one of the same user
    cross_attach_opt_in: bool | None = None  # ... once the other has allowed it (PR_SET_PTRACER)
    cross_attach_error: str = ""
    ptrace_scope: int | None = None
    memfd: bool | None = None
    shm_size: int | None = None
    shm_free: int | None = None
    huge_pages: list[HugePages] = field(default_factory=list)
    transparent_huge_pages: str = ""
    memlock: int | None = None  # soft limit; -1 is unlimited
    memlock_hard: int | None = None
    environment: dict[str, str] = field(default_factory=dict)  # variables that change how CUDA or UCX behave


@dataclass(kw_only=True)
class Ucx:
    """One UCX build."""

    origin: str = ""  # "site", "wheel" or "UCX_ROOT"
    path: str = ""  # of libucp
    untried: bool = False  # the search itself failed
    version: str = ""
    cuda: bool | None = None
    verbs: bool | None = None
    gdrcopy: bool | None = None
    transports: list[str] = field(default_factory=list)
    error: str = ""


@dataclass(kw_only=True)
class OpenMpi:
    """One Open MPI installation."""

    origin: str = ""  # path of ompi_info
    version: str = ""
    cuda: bool | None = None
    ucx: bool | None = None
    error: str = ""


@dataclass(kw_only=True)
class RouteTable:
    """One route table on disk."""

    path: str = ""
    fingerprint: str = ""
    date: str = ""
    nics: list[str] = field(default_factory=list)  # paths of NICs that were measured: "nic:torus"
    error: str = ""


@dataclass(kw_only=True)
class Libraries:
    """Libraries, programs and route tables."""

    core: Library = field(default_factory=Library)
    nvrtc: Library = field(default_factory=Library)
    nvrtc_targets: list[int] = field(default_factory=list)  # 90 is sm_90
    ucx: list[Ucx] = field(default_factory=list)
    openmpi: list[OpenMpi] = field(default_factory=list)
    routes_folder: str = ""
    routes: list[RouteTable] = field(default_factory=list)


@dataclass(kw_only=True)
class Facts:
    """Everything known about the node."""

    date: str = ""
    driver: Driver = field(default_factory=Driver)
    gpus: list[Gpu] = field(default_factory=list)
    pairs: list[GpuPair] = field(default_factory=list)
    mapping: Mapping = field(default_factory=Mapping)
    network: Network = field(default_factory=Network)
    storage: Storage = field(default_factory=Storage)
    kernel: Kernel = field(default_factory=Kernel)
    host: Host = field(default_factory=Host)
    libraries: Libraries = field(default_factory=Libraries)
    problems: list[str] = field(default_factory=list)  # probes that gave no answer, and why
