"""Facts of five kinds of node, for the tests of peerway doctor."""

from __future__ import annotations

from peerway_measure.doctor.facts import (
    Amd,
    AmdGpu,
    CudaDevice,
    Drive,
    Driver,
    Facts,
    Gpu,
    GpuPair,
    Host,
    HugePages,
    Kernel,
    Libraries,
    Library,
    Mapping,
    Network,
    Nic,
    NvLink,
    OpenMpi,
    RouteTable,
    Storage,
    Ucx,
)

GIB = 1 << 30


def _host(name: str, **changes: object) -> Host:
    host = Host(
        name=name,
        cpu="Intel(R) Xeon(R) Platinum 8480C",
        cores=224,
        numa_nodes=2,
        cross_attach=True,
        cross_attach_opt_in=True,
        ptrace_scope=0,
        memfd=True,
        shm_size=1024 * GIB,
        shm_free=1020 * GIB,
        huge_pages=[HugePages(size=2 << 20), HugePages(size=GIB)],
        transparent_huge_pages="always",
        memlock=-1,
        memlock_hard=-1,
    )
    for key, value in changes.items():
        setattr(host, key, value)
    return host


def _cuda(capability: str, **changes: object) -> CudaDevice:
    device = CudaDevice(
        compute_capability=capability,
        dma_buf=True,
        dma_buf_mmap=False,
        rdma=True,
        rdma_vmm=True,
        rdma_flush=1,
        rdma_ordering=200,
        vmm=True,
        posix_fd=True,
        fabric=True,
        multicast=True,
        memory_pools=True,
        pool_handles=9,
        stream_memory_ops=True,
        stream_wait_nor=True,
        host_atomics=False,
        copy_engines=3,
        ipc_events=True,
    )
    for key, value in changes.items():
        setattr(device, key, value)
    return device


def _libraries(ucx: list[Ucx]) -> Libraries:
    return Libraries(
        core=Library(path="/usr/lib/libpeerway.so.0", version="0.1.0"),
        nvrtc=Library(path="/usr/local/cuda/lib64/libnvrtc.so.13", version="13.0"),
        nvrtc_targets=[75, 80, 86, 89, 90, 100, 120],
        ucx=ucx,
        openmpi=[OpenMpi(origin="/usr/bin/ompi_info", version="5.0.8", cuda=True, ucx=True)],
        routes_folder="/home/ada/.config/peerway/routes",
        routes=[
            RouteTable(
                path="/home/ada/.config/peerway/routes/dgx01.json", date="2026-11-20", fingerprint="9f" * 8
            )
        ],
    )


def dgx() -> Facts:
    """8 H200 behind NVSwitches, a NIC beside each on the same PCIe switch, all of GPUDirect on."""
    gpus, nics = [], []
    for i in range(8):
        bus = 0x10 + 0x10 * i
        switch = [
            f"pci0000:{bus:02x}",
            f"0000:{bus:02x}:01.0",
            f"0000:{bus + 1:02x}:00.0",
            f"0000:{bus + 2:02x}:00.0",
        ]
        beside = [*switch[:3], f"0000:{bus + 2:02x}:01.0"]
        gpus.append(
            Gpu(
                index=i,
                name="NVIDIA H200",
                uuid=f"GPU-{i:08x}-1111-2222-3333-444444444444",
                bus_id=f"0000:{bus + 3:02x}:00.0",
                memory=141 * GIB,
                numa_node=i // 4,
                bar1=256 * GIB,
                bar1_used=1 << 20,
                pcie_generation=5,
                pcie_generation_max=5,
                pcie_width=16,
                pcie_width_max=16,
                mig=False,
                persistence=True,
                compute_mode="default",
                virtualization="none",
                fabric="completed",
                nvlinks=[
                    NvLink(remote=f"0000:{7 + k % 4:02x}:00.0", remote_kind="switch", version=4)
                    for k in range(18)
                ],
                pci_bridges=switch,
                iommu_group=20 + i,
                iommu_type="identity",
                cuda=_cuda("9.0"),
            )
        )
        far = {str(j): "switch" if i == j else "node" if i // 4 == j // 4 else "across" for j in range(8)}
        nics.append(
            Nic(
                name=f"mlx5_{i}",
                rdma=True,
                driver="mlx5_core",
                bus_id=f"0000:{bus + 4:02x}:00.0",
                numa_node=i // 4,
                interfaces=[f"ib{i}"],
                link_layer="InfiniBand",
                state="active",
                rate="400 Gb/s",
                pci_bridges=beside,
                gpu_distance=far,
            )
        )
    pairs = [
        GpuPair(
            first=i,
            second=j,
            distance="node" if i // 4 == j // 4 else "across",
            nvlinks=18,
            access=True,
            atomics=True,
            performance_rank=0,
            read_status="ok",
            write_status="ok",
            nvlink_status="ok",
        )
        for i in range(8)
        for j in range(8)
        if i != j
    ]
    return Facts(
        date="2026-11-21T08:00:00+00:00",
        driver=Driver(
            module_version="580.159.04",
            open_module=True,
            library_version="580.159.04",
            cuda_version="13.0",
            cuda_devices=8,
            device_nodes=[f"/dev/nvidia{i}" for i in range(8)],
            pci_gpus={g.bus_id: "nvidia" for g in gpus},
            nvswitches=4,
            fabric_manager=True,
            mps=True,
        ),
        gpus=gpus,
        pairs=pairs,
        mapping=Mapping(
            gdrdrv_node=True,
            gdrdrv_usable=True,
            libgdrapi=Library(path="/usr/lib/libgdrapi.so.2", version="2.5"),
        ),
        network=Network(
            nics=nics,
            verbs_nodes=[f"/dev/infiniband/uverbs{i}" for i in range(8)],
            libibverbs=Library(path="/usr/lib/libibverbs.so.1"),
        ),
        storage=Storage(
            nvidia_fs_version="2.26",
            libcufile=Library(path="/usr/local/cuda/lib64/libcufile.so.0", version="1.15"),
            config_path="/etc/cufile.json",
            compat_mode=True,
            drives=[
                Drive(
                    name="nvme0",
                    bus_id="0000:05:00.0",
                    numa_node=0,
                    gpu_distance={str(i): "node" if i < 4 else "across" for i in range(8)},
                )
            ],
            file_systems={"/raid": "ext4"},
        ),
        kernel=Kernel(
            release="6.8.0-1030-nvidia",
            modules={
                "nvidia": "580.159.04",
                "nvidia_uvm": "",
                "nvidia_peermem": "580.159.04",
                "nvidia_fs": "2.26",
                "gdrdrv": "2.5",
                "ib_core": "",
                "ib_uverbs": "",
            },
            options={"CONFIG_PCI_P2PDMA": "y", "CONFIG_DMA_SHARED_BUFFER": "y"},
            arguments=["iommu=pt"],
            iommu_groups=120,
        ),
        host=_host("dgx01"),
        libraries=_libraries(
            [
                Ucx(
                    origin="site",
                    path="/opt/ucx/lib/libucp.so.0",
                    version="1.20.0",
                    cuda=True,
                    verbs=True,
                    gdrcopy=True,
                    transports=[
                        "self",
                        "tcp",
                        "sysv",
                        "posix",
                        "dc_mlx5",
                        "rc_mlx5",
                        "ud_mlx5",
                        "cuda_copy",
                        "cuda_ipc",
                        "gdr_copy",
                        "cma",
                    ],
                )
            ]
        ),
    )


def pcie_pair() -> Facts:
    """2 L40S on one PCIe switch with ACS redirect and a translating IOMMU and an Ethernet NIC."""
    facts = dgx()
    facts.gpus = facts.gpus[:2]
    root = ["pci0000:40", "0000:40:01.0", "0000:41:00.0"]
    for g in facts.gpus:
        g.name, g.memory, g.bar1, g.fabric, g.nvlinks, g.iommu_type = (
            "NVIDIA L40S",
            45 * GIB,
            256 << 20,
            "not_supported",
            [],
            "DMA-FQ",
        )
        g.pci_bridges = [*root, f"0000:42:0{g.index}.0"]
        g.cuda = _cuda("8.9", fabric=False, multicast=False, dma_buf=False, rdma_vmm=False)
        g.pcie_generation_max, g.numa_node = 4, 0
    facts.gpus[1].pcie_width = 8
    facts.pairs = [
        GpuPair(
            first=a,
            second=b,
            distance="switch",
            nvlinks=0,
            access=False,
            atomics=False,
            read_status="chipset_not_supported",
            write_status="chipset_not_supported",
            nvlink_status="not_supported",
        )
        for a, b in ((0, 1), (1, 0))
    ]
    (
        facts.driver.open_module,
        facts.driver.nvswitches,
        facts.driver.fabric_manager,
        facts.driver.mps,
        facts.driver.cuda_devices,
    ) = False, 0, False, False, 2
    facts.driver.pci_gpus = {g.bus_id: "nvidia" for g in facts.gpus}
    facts.mapping = Mapping()
    facts.network = Network(
        nics=[
            Nic(
                name="eno1",
                driver="ixgbe",
                bus_id="0000:05:00.0",
                interfaces=["eno1"],
                link_layer="Ethernet",
                state="active",
                rate="10 Gb/s",
            )
        ]
    )
    facts.storage = Storage()
    facts.kernel = Kernel(
        release="6.1.0-28-amd64",
        modules={"nvidia": "580.159.04"},
        arguments=["intel_iommu=on"],
        iommu_groups=60,
        acs_redirect=["0000:42:00.0", "0000:42:01.0"],
    )
    facts.host = _host(
        "work7",
        numa_nodes=1,
        cores=32,
        ptrace_scope=1,
        cross_attach=False,
        cross_attach_error="Operation not permitted",
        memlock=8 << 20,
        environment={"CUDA_DEVICE_MAX_CONNECTIONS": "1"},
    )
    facts.libraries = Libraries(
        routes_folder="/home/ada/.config/peerway/routes",
        ucx=[Ucx(origin="site", path="/usr/lib/libucp.so.0", version="1.13.1", cuda=False, verbs=True)],
    )
    return facts


def v100() -> Facts:
    """4 V100 joined by bridges of one or two NVLinks, one NIC on the first socket, an old driver."""
    facts = dgx()
    facts.gpus = facts.gpus[:4]
    for g in facts.gpus:
        g.name, g.memory, g.bar1, g.fabric = "Tesla V100-SXM2-32GB", 32 * GIB, 32 * GIB, "not_supported"
        g.pcie_generation_max, g.numa_node = 3, g.index // 2
        others = [o for o in facts.gpus if o is not g]
        g.nvlinks = [
            NvLink(remote=o.bus_id, remote_kind="gpu", version=2)
            for o in others
            for _ in range(_v100_links(g.index, o.index))
        ]
        g.cuda = _cuda(
            "7.0",
            fabric=False,
            multicast=False,
            dma_buf=False,
            dma_buf_mmap=None,
            rdma_vmm=False,
            pool_handles=1,
        )
    facts.pairs = [p for p in facts.pairs if p.first < 4 and p.second < 4]
    for p in facts.pairs:
        p.nvlinks = _v100_links(p.first, p.second)
        p.distance = "node" if p.first // 2 == p.second // 2 else "across"
    facts.driver = Driver(
        module_version="535.183.01",
        open_module=False,
        library_version="535.183.01",
        cuda_version="12.2",
        cuda_devices=4,
        pci_gpus={g.bus_id: "nvidia" for g in facts.gpus},
    )
    facts.network.nics = facts.network.nics[:1]
    facts.network.nics[0].gpu_distance = {"0": "node", "1": "node", "2": "across", "3": "across"}
    facts.network.nics[0].rate = "100 Gb/s"
    facts.kernel.modules = {
        "nvidia": "535.183.01",
        "nvidia_peermem": "535.183.01",
        "ib_core": "",
        "ib_uverbs": "",
        "gdrdrv": "2.4",
    }
    facts.mapping = Mapping(gdrdrv_node=True, gdrdrv_usable=True)
    facts.storage.nvidia_fs_version = ""
    facts.host.name, facts.host.memlock, facts.host.memlock_hard = "node01", 64 << 10, 64 << 10
    return facts


def _v100_links(first: int, second: int) -> int:
    return 1 if first + second == 3 else 2


def bare() -> Facts:
    """No GPU, no driver, a small virtual machine in a container."""
    return Facts(
        driver=Driver(
            nvml_error="NVML Shared Library Not Found",
            cuda_error="libcuda.so.1: cannot open shared object file",
        ),
        host=_host(
            "ci",
            cores=2,
            numa_nodes=1,
            hypervisor="QEMU",
            container="docker",
            shm_size=64 << 20,
            shm_free=64 << 20,
            memlock=8 << 20,
        ),
        kernel=Kernel(release="6.1.0"),
        network=Network(nics=[Nic(name="eth0", driver="virtio_net", virtual=True, link_layer="Ethernet")]),
    )


def mismatch() -> Facts:
    """GPUs on the bus, but the user libraries were upgraded below a loaded kernel module."""
    facts = bare()
    facts.network = Network()
    facts.host = _host("node02")
    facts.driver = Driver(
        module_version="550.54.15",
        nvml_error="Driver/library version mismatch",
        cuda_error="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: unsupported display driver / cuda driver combination",
        device_nodes=["/dev/nvidia0"],
        pci_gpus={"0000:3b:00.0": "nvidia"},
    )
    return facts


def mi250() -> Facts:
    """Two MI200 in four parts: xGMI joins each with two of the other three."""
    facts = bare()
    facts.host = _host("node07", environment={"HSA_XNACK": "0"})
    facts.driver.amd = Amd(
        module=True,
        module_version="6.10.5",
        kfd=True,
        kfd_usable=True,
        rocm_version="6.3.0-39",
        no_retry=-1,
        pci_gpus={f"0000:{bus}:00.0": "amdgpu" for bus in ("c1", "c6", "c9", "ce")},
        gpus=[
            AmdGpu(
                node=node,
                architecture="gfx90a",
                bus_id=f"0000:{bus}:00.0",
                memory=64 << 30,
                large_bar=True,
                xgmi=[4 + (node - 3) % 4, 4 + (node - 5) % 4],
            )
            for node, bus in enumerate(("c1", "c6", "c9", "ce"), start=4)
        ],
    )
    return facts


def radeon() -> Facts:
    """One AMD GPU with a small BAR, whose device file this user may not open."""
    facts = bare()
    facts.host = _host("desk")
    facts.driver.amd = Amd(
        module=True,
        kfd=True,
        rocm_version="5.7.1-98",
        pci_gpus={"0000:03:00.0": "amdgpu"},
        gpus=[
            AmdGpu(node=1, architecture="gfx1100", bus_id="0000:03:00.0", memory=24 << 30, large_bar=False)
        ],
    )
    return facts


NODES = {
    "dgx": dgx,
    "pcie_pair": pcie_pair,
    "v100": v100,
    "bare": bare,
    "mismatch": mismatch,
    "mi250": mi250,
    "radeon": radeon,
}
