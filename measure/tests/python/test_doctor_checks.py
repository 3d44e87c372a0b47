"""The doctor's checks as a table: kind of node, finding, status, and what its text must say."""

from __future__ import annotations

import dataclasses

import pytest
from doctor_nodes import NODES, bare, dgx, mi250, mismatch, pcie_pair, v100

from peerway_measure.doctor.checks import examine
from peerway_measure.doctor.facts import Facts, GpuPair, Library, NicPlugin, OpenMpi, RouteTable, Ucx
from peerway_measure.doctor.finding import Finding, Status

TABLE = [
    ("dgx", "gpus.driver", "ok", "580.159.04, open kernel module", ""),
    ("dgx", "gpus.devices", "ok", "8 × NVIDIA H200, 141 GiB", ""),
    ("dgx", "between.peer_access", "ok", "over 18 NVLinks", ""),
    ("dgx", "between.nvlink", "ok", "18 links a GPU, every pair joined", ""),
    ("dgx", "between.fabric", "ok", "set up", ""),
    ("dgx", "cpu.gdrcopy", "ok", "gdrdrv 2.5, libgdrapi 2.5", ""),
    ("dgx", "cpu.dma_buf_mmap", "off", "CUDA 13.0", "nothing to do while GDRCopy works"),
    ("dgx", "cpu.numa", "ok", "node 0: GPUs 0-3; node 1: GPUs 4-7", ""),
    ("dgx", "network.gpudirect_rdma", "ok", "nvidia_peermem and dma-buf", ""),
    ("dgx", "network.distance", "ok", "GPUs 0-7: same PCIe switch", ""),
    ("dgx", "storage.gds", "ok", "nvidia-fs 2.26", ""),
    ("dgx", "host.iommu", "ok", "passes GPUs through", ""),
    ("dgx", "libraries.nvrtc", "ok", "13.0, sm_75 to sm_120", ""),
    ("dgx", "gpus.sharing", "ok", "MPS runs", ""),
    ("mi250", "amd.driver", "ok", "amdgpu 6.10.5, ROCm 6.3.0-39", ""),
    ("mi250", "amd.devices", "ok", "4 × gfx90a, 64 GiB", ""),
    ("mi250", "amd.large_bar", "ok", "on all GPUs", ""),
    ("mi250", "amd.xgmi", "ok", "4 of 6 pairs", ""),
    ("mi250", "amd.xnack", "ok", "off (HSA_XNACK=0)", ""),
    ("mi250", "gpus.driver", "absent", "no NVIDIA driver", "nothing to do"),
    ("radeon", "amd.driver", "warning", "may not open /dev/kfd", "render and video"),
    ("radeon", "amd.large_bar", "warning", "not on 0000:03:00.0", "Resizable BAR"),
    ("radeon", "amd.xgmi", "absent", "one GPU", "takes two"),
    ("radeon", "amd.xnack", "unknown", "noretry", "rocminfo"),
    ("dgx", "amd.driver", "absent", "no AMD GPU", "lspci"),
    ("dgx", "amd.xgmi", "absent", "no AMD GPU", "nothing"),
    ("v100", "gpus.sharing", "unknown", "outside this container", "nvidia-cuda-mps-control -d"),
    ("pcie_pair", "gpus.sharing", "off", "take turns", "nvidia-cuda-mps-control -d"),
    ("bare", "gpus.sharing", "absent", "no GPU", "see GPUs"),
    ("pcie_pair", "gpus.pcie_link", "warning", "GPU 1 ×8 of ×16", "reseat"),
    ("pcie_pair", "gpus.bar1", "off", "256 MiB for 45 GiB", "Resizable BAR"),
    ("pcie_pair", "between.peer_access", "off", "the chipset does not forward", "iommu=pt"),
    ("pcie_pair", "between.nvlink", "absent", "no active link", "nothing"),
    ("pcie_pair", "cpu.gdrcopy", "off", "gdrdrv is not loaded", "modprobe gdrdrv"),
    ("pcie_pair", "cpu.max_connections", "warning", "CUDA_DEVICE_MAX_CONNECTIONS=1", "8 or more"),
    ("pcie_pair", "network.NICs", "absent", "none; eno1 (ixgbe)", "TCP"),
    ("pcie_pair", "host.iommu", "warning", "GPUs 0-1 (intel_iommu=on)", "iommu=pt"),
    ("pcie_pair", "host.acs", "warning", "0000:42:00.0", "ECAP_ACS"),
    ("pcie_pair", "host.cross_attach", "off", "ptrace_scope 1", "PR_SET_PTRACER"),
    ("pcie_pair", "libraries.ucx", "off", "CUDA no, verbs yes", "libucx-cu13"),
    ("v100", "between.peer_access", "ok", "4 over 2 NVLinks, 2 over 1 NVLink", ""),
    ("v100", "between.fabric", "absent", "no NVSwitch", "only NVSwitch"),
    ("v100", "cpu.gdrcopy", "off", "libgdrapi.so.2 was not found", "LD_LIBRARY_PATH"),
    ("v100", "cpu.dma_buf_mmap", "off", "CUDA 12.2", "13.3"),
    ("v100", "network.gpudirect_rdma", "ok", "module nvidia_peermem", ""),
    ("v100", "network.distance", "warning", "GPUs 2-3: across NUMA nodes", "socket"),
    ("v100", "network.memlock", "warning", "limit 64 KiB", "limits.conf"),
    ("v100", "libraries.nvrtc", "warning", "not compute capability 7.0", "nvidia-cuda-nvrtc-cu12"),
    ("bare", "gpus.driver", "absent", "no NVIDIA driver", "install the driver"),
    ("bare", "gpus.devices", "absent", "none", "host memory works without"),
    ("bare", "gpus.cuda", "absent", "no GPU", "see GPUs"),
    ("bare", "network.gpudirect_rdma", "absent", "no GPU", "see GPUs"),
    ("bare", "host.virtual", "ok", "virtual machine (QEMU), container (docker)", ""),
    ("bare", "host.shm", "warning", "64 MiB free of 64 MiB", "--shm-size"),
    ("bare", "libraries.core", "absent", "not found", "install Peerway"),
    ("mismatch", "gpus.driver", "warning", "550.54.15", "reboot"),
    ("mismatch", "gpus.devices", "warning", "none can be reached", "fix the driver"),
    ("mismatch", "gpus.cuda", "warning", "DRIVER_MISMATCH", "one version"),
]


def finding(facts: Facts, identity: str) -> Finding:
    return next(f for f in examine(facts) if f.id == identity)


@pytest.mark.parametrize(("node", "identity", "status", "expected_finding", "todo"), TABLE)
def test_table(node: str, identity: str, status: str, expected_finding: str, todo: str) -> None:
    judged = finding(NODES[node](), identity)
    assert judged.status == status
    assert expected_finding in judged.observed
    assert todo in judged.todo


@pytest.mark.parametrize("node", NODES)
def test_every_node_gets_the_same_findings_and_a_remedy_for_each_that_is_not_ok(node: str) -> None:
    findings = examine(NODES[node]())
    assert [f.id for f in findings] == [f.id for f in examine(Facts())]
    assert len({f.id for f in findings}) == len(findings)
    for f in findings:
        assert f.observed, f.id
        assert f.why, f.id
        assert (f.status is Status.OK) == (f.todo == ""), f.id
        assert "\n" not in f.todo, f.id


@pytest.mark.parametrize("node", NODES)
def test_checks_are_pure(node: str) -> None:
    facts = NODES[node]()
    before = dataclasses.asdict(facts)
    assert examine(facts) == examine(facts)
    assert dataclasses.asdict(facts) == before


def test_healthy_node_has_no_warning() -> None:
    assert [f.id for f in examine(dgx()) if f.status is Status.WARNING] == []


@pytest.mark.parametrize(
    ("error", "todo"),
    [
        ("CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized", "nvidia-fabricmanager"),
        ("CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE: ...", "cuda-compat"),
        ("CUDA_ERROR_STUB_LIBRARY: CUDA driver is a stub library", "stubs"),
        ("libcuda.so.1: cannot open shared object file", "--gpus all"),
        ("the cuda probe gave no answer within 10 s", "dmesg"),
        ("CUDA_ERROR_UNKNOWN: unknown error", "nvidia-smi"),
    ],
)
def test_cuda_errors_have_their_own_remedy(error: str, todo: str) -> None:
    facts = dgx()
    facts.driver.cuda_error, facts.driver.cuda_devices = error, None
    judged = finding(facts, "gpus.cuda")
    assert (judged.status, judged.observed) == (Status.WARNING, error)
    assert todo in judged.todo


def test_cuda_that_sees_fewer_gpus_names_the_variable() -> None:
    facts = dgx()
    facts.driver.cuda_devices = 2
    facts.host.environment["CUDA_VISIBLE_DEVICES"] = "0,1"
    assert "2 GPUs visible of 8 (CUDA_VISIBLE_DEVICES=0,1)" in finding(facts, "gpus.cuda").observed


@pytest.mark.parametrize(("bound", "words"), [("nouveau", "bound to nouveau"), ("", "with no driver bound")])
def test_gpus_without_the_nvidia_driver(bound: str, words: str) -> None:
    facts = bare()
    facts.driver.pci_gpus = {"0000:3b:00.0": bound}
    judged = finding(facts, "gpus.driver")
    assert judged.status is Status.WARNING
    assert f"1 NVIDIA GPU on the PCI bus, {words}" in judged.observed


def test_lost_gpu_is_a_warning() -> None:
    facts = dgx()
    del facts.gpus[7]
    judged = finding(facts, "gpus.devices")
    assert judged.status is Status.WARNING
    assert "1 more on the PCI bus" in judged.observed


def test_mig_explains_the_missing_peer_access() -> None:
    facts = pcie_pair()
    facts.gpus[0].mig = True
    assert finding(facts, "gpus.mode").status is Status.WARNING
    assert finding(facts, "between.peer_access").todo == "nvidia-smi -mig 0 as root"


@pytest.mark.parametrize(("mps", "status"), [(True, Status.OK), (False, Status.WARNING)])
def test_an_exclusive_gpu_can_be_shared_through_mps(mps: bool, status: Status) -> None:
    facts = pcie_pair()
    facts.gpus[0].compute_mode, facts.driver.mps = "exclusive_process", mps
    assert finding(facts, "gpus.mode").status is status


def test_fabric_that_is_not_ready() -> None:
    facts = dgx()
    facts.gpus[3].fabric = "in_progress"
    judged = finding(facts, "between.fabric")
    assert judged.status is Status.WARNING
    assert "in_progress" in judged.observed
    facts.gpus[3].fabric, facts.gpus[3].fabric_error = "completed", "Insufficient Permissions"
    assert "GPU 3 could not join: Insufficient Permissions" in finding(facts, "between.fabric").observed


def test_fewer_nvlinks_on_one_gpu() -> None:
    facts = dgx()
    facts.gpus[5].nvlinks.pop()
    judged = finding(facts, "between.nvlink")
    assert judged.status is Status.WARNING
    assert "GPU 5 with fewer links than the 18" in judged.observed


def test_partial_peer_access_counts_directions() -> None:
    facts = v100()
    for pair in facts.pairs:
        pair.access = {pair.first, pair.second} != {0, 3}
    judged = finding(facts, "between.peer_access")
    assert judged.status is Status.OFF
    assert "2 of 12 directions refused" in judged.observed


def test_one_gpu_has_no_pairs() -> None:
    facts = dgx()
    del facts.gpus[1:]
    facts.pairs = []
    assert finding(facts, "between.peer_access").observed == "one GPU"


@pytest.mark.parametrize(
    ("change", "expected_finding"),
    [
        ({"gdrdrv_node": False}, "/dev/gdrdrv is missing"),
        ({"gdrdrv_usable": False}, "may not open /dev/gdrdrv"),
        ({"libgdrapi": Library()}, "libgdrapi.so.2 was not found"),
        ({"libgdrapi": Library(path="/x", version="3.0")}, "module 2.5 and library 3.0 differ"),
    ],
)
def test_gdrcopy_says_which_part_is_missing(change: dict[str, object], expected_finding: str) -> None:
    facts = dgx()
    facts.mapping = dataclasses.replace(facts.mapping, **change)  # type: ignore[arg-type]
    judged = finding(facts, "cpu.gdrcopy")
    assert judged.status is not Status.OK
    assert expected_finding in judged.observed


def test_gpudirect_rdma_needs_kernel_support_and_a_ucx_that_uses_it() -> None:
    facts = dgx()
    facts.libraries.ucx = [
        Ucx(origin="wheel", path="/w/libucp.so.0", version="1.22.0", cuda=True, verbs=False)
    ]
    assert "no UCX has both verbs and CUDA" in finding(facts, "network.gpudirect_rdma").observed
    assert "UCX_ROOT" in finding(facts, "libraries.ucx").todo
    del facts.kernel.modules["nvidia_peermem"]
    for gpu in facts.gpus:
        assert gpu.cuda is not None
        gpu.cuda.dma_buf = False
    judged = finding(facts, "network.gpudirect_rdma")
    assert (judged.status, judged.observed) == (Status.OFF, "neither nvidia-peermem nor dma-buf")


@pytest.mark.parametrize(
    ("rocm", "verbs", "todo"), [(True, True, ""), (True, False, "--with-rocm"), (False, True, "--with-rocm")]
)
def test_amd_gpus_need_a_ucx_with_rocm(rocm: bool, verbs: bool, todo: str) -> None:
    facts = mi250()
    facts.network.nics = dgx().network.nics
    facts.libraries.ucx = [
        Ucx(origin="site", path="/u/libucp.so.0", version="1.17.0", cuda=False, rocm=rocm, verbs=verbs)
    ]
    judged = finding(facts, "libraries.ucx")
    assert f"ROCm {'yes' if rocm else 'no'}" in judged.observed
    assert (judged.status is Status.OK) == (todo == "")
    assert todo in judged.todo


def test_nic_without_link() -> None:
    facts = dgx()
    facts.network.nics[2].state = "down"
    judged = finding(facts, "network.NICs")
    assert judged.status is Status.WARNING
    assert "no link: mlx5_2" in judged.observed


def test_storage_through_the_kernel_needs_no_nvidia_fs() -> None:
    facts = dgx()
    facts.storage.nvidia_fs_version = ""
    del facts.kernel.modules["nvidia_fs"]
    assert "use_pci_p2pdma" in finding(facts, "storage.gds").todo
    facts.storage.pci_p2pdma = True
    assert finding(facts, "storage.gds").status is Status.OK


def test_cufile_without_a_way_to_fall_back() -> None:
    facts = pcie_pair()
    facts.storage.libcufile = Library(path="/usr/lib/libcufile.so.0", version="1.15")
    facts.storage.compat_mode, facts.storage.config_path = False, "/etc/cufile.json"
    judged = finding(facts, "storage.cufile")
    assert judged.status is Status.WARNING
    assert "/etc/cufile.json" in judged.observed


def test_acs_that_only_root_may_read_is_unknown() -> None:
    facts = dgx()
    facts.kernel.acs_unreadable = 8
    assert finding(facts, "host.acs").status is Status.UNKNOWN


def test_broken_route_table_is_named() -> None:
    facts = dgx()
    facts.libraries.routes.append(RouteTable(path="/r/bad.json", error="not a route table: line 1"))
    judged = finding(facts, "libraries.routes")
    assert judged.status is Status.WARNING
    assert "/r/bad.json" in judged.observed


def test_nvrtc_newer_than_the_driver() -> None:
    facts = dgx()
    facts.driver.cuda_version = "12.8"
    judged = finding(facts, "libraries.nvrtc")
    assert judged.status is Status.WARNING
    assert "newer than the driver's CUDA 12.8" in judged.observed


def test_openmpi_that_cannot_send_gpu_memory() -> None:
    facts = dgx()
    facts.libraries.openmpi = [OpenMpi(origin="/usr/bin/ompi_info", version="4.1.4", cuda=False, ucx=False)]
    assert finding(facts, "libraries.openmpi").status is Status.OFF


def test_unknown_pair_is_not_called_fine() -> None:
    facts = dgx()
    facts.pairs = [GpuPair(first=p.first, second=p.second) for p in facts.pairs]
    assert finding(facts, "between.peer_access").status is Status.UNKNOWN
    assert finding(facts, "between.atomics").status is Status.UNKNOWN


def test_mismatch_leaves_no_finding_ok_that_needs_a_gpu() -> None:
    on = {f.id for f in examine(mismatch()) if f.status is Status.OK}
    assert not any(i.startswith(("gpus.", "between.", "cpu.")) for i in on)


def test_a_library_that_could_not_be_looked_for_is_not_called_absent() -> None:
    facts = bare()
    untried = "the nvrtc library probe gave no answer within 10 s"
    facts.libraries.nvrtc = facts.libraries.core = Library(error=untried, untried=True)
    facts.libraries.ucx = [Ucx(origin="site", error=untried, untried=True)]
    for identity in ("libraries.core", "libraries.nvrtc", "libraries.ucx"):
        judged = finding(facts, identity)
        assert judged.status is Status.UNKNOWN
        assert untried in judged.observed


def torus(**changes: object) -> NicPlugin:
    nic = NicPlugin(
        entry="torus",
        name="torus",
        file="/lib/libpeerway_nic_torus.so",
        abi=1,
        opened=True,
        puts_in_order=True,
        gets_behind_puts=True,
        memory=["host", "CUDA"],
        largest=1 << 30,
        endpoints=1024,
    )
    return dataclasses.replace(nic, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("nics", "status", "expected_finding", "todo"),
    [
        ([], "absent", "PEERWAY_NIC names none", "nothing to do, unless"),
        (
            [torus()],
            "ok",
            "nic:torus (nic.h 1, puts in order, gets behind puts, host and CUDA memory, 1 GiB at a time, any "
            "number under way, 1024 endpoints)",
            "",
        ),
        ([torus(puts_in_order=False, gets_behind_puts=False, memory=["host"], in_flight=16)], "ok",
         "no guarantees, host memory, 1 GiB at a time, 16 under way", ""),
        ([torus(), torus(name="far")], "off", "nic:far (", "no route table has nic:far"),
        ([torus(abi=None, opened=False, name="", error="No such file")], "warning",
         "torus was not loaded: No such file", "no context starts with it"),
        ([torus(opened=False, error="no node is free")], "warning",
         "nic:torus was not opened: no node is free", "its path stays off"),
        ([torus(abi=None, opened=False, error="killed by SIGSEGV", untried=True)], "unknown",
         "killed by SIGSEGV", "nic-check"),
    ],
)  # fmt: skip
def test_nics_by_plugin(nics: list[NicPlugin], status: str, expected_finding: str, todo: str) -> None:
    facts = dgx()
    facts.network.plugins = nics
    facts.libraries.routes = [RouteTable(path="a.json", nics=["nic:torus"])]
    judged = finding(facts, "network.plugins")
    assert judged.status == status
    assert expected_finding in judged.observed
    assert todo in judged.todo


def test_a_setting_of_nics_that_makes_no_sense_is_told() -> None:
    facts = dgx()
    facts.network.plugins_error = "PEERWAY_NIC: '=x' gives the NIC the name ''"
    judged = finding(facts, "network.plugins")
    assert judged.status == "warning"
    assert judged.observed == facts.network.plugins_error
