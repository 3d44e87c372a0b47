"""The doctor's probes on made-up machines: a folder that looks like /, and canned answers of drivers."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import peerway
from peerway_measure.doctor import topology
from peerway_measure.doctor.probes import amd, gather, gpus, host, kernel, libraries, network, storage
from peerway_measure.doctor.system import Output, System

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class FakeSystem(System):
    """A machine in a folder. Children and programs answer from tables by their names."""

    def __init__(self, root: Path, environment: Mapping[str, str] | None = None) -> None:
        super().__init__(root, environment or {"HOME": "/home/ada"}, timeout=5)
        self.children: dict[str, dict[str, Any]] = {}
        self.outputs: dict[str, Output] = {}

    def child(self, name: str, question: object = None) -> dict[str, Any]:
        key = f"{name}:{question.get('entry') or question['kind']}" if isinstance(question, dict) else name
        return self.children.get(key, {"error": f"no {key}"})

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> Output:
        return self.outputs.get(Path(command[0]).name, Output(problem="not here"))

    def write(self, name: str, content: str | bytes = "") -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def link(self, name: str, target: str) -> None:
        path = self.path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(self.path(target))

    def device(self, place: str, files: Mapping[str, str | bytes] | None = None, node: int = 0) -> str:
        """Add a PCI device at "pci0000:16/0000:16:01.0/..."; returns its address."""
        address = place.rpartition("/")[2]
        folder = f"/sys/devices/{place}"
        for name, content in {"numa_node": str(node), **(files or {})}.items():
            self.write(f"{folder}/{name}", content)
        self.link(f"/sys/bus/pci/devices/{address}", folder)
        return address


def config_space(port_type: int, acs_control: int | None) -> bytes:
    """A PCIe port's configuration: the PCI Express capability is the second of its list, and so is ACS of the
    extended ones."""
    space = bytearray(4096)
    space[0x34] = 0x40
    space[0x40:0x42] = bytes([0x01, 0x60])
    space[0x60:0x64] = bytes([0x10, 0x00, port_type << 4 | 2, 0])
    space[0x100:0x104] = (0x0001 | 1 << 16 | 0x148 << 20).to_bytes(4, "little")
    if acs_control is not None:
        space[0x148:0x14C] = (0x000D | 1 << 16).to_bytes(4, "little")
        space[0x14E:0x150] = acs_control.to_bytes(2, "little")
    return bytes(space)


@pytest.fixture
def machine(tmp_path: Path) -> FakeSystem:
    return FakeSystem(tmp_path)


SWITCH = "pci0000:16/0000:16:01.0/0000:17:00.0"


def two_gpus(machine: FakeSystem) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two GPUs below one switch, as NVML and CUDA report them; CUDA lists them in reverse order."""
    gpu: dict[str, str | bytes] = {"vendor": "0x10de", "class": "0x030200"}
    machine.device(SWITCH, {"config": config_space(5, None)})
    for port, bus in (("0000:18:00.0", "19"), ("0000:18:01.0", "1a")):
        machine.device(f"{SWITCH}/{port}", {"config": config_space(6, 0x1D)})
        machine.device(f"{SWITCH}/{port}/0000:{bus}:00.0", gpu)
    nvml = {
        "driver": "580.159.04",
        "cuda": 13000,
        "devices": [
            {
                "index": i,
                "name": "NVIDIA H200",
                "uuid": f"GPU-{i}",
                "bus_id": f"00000000:{bus}:00.0",
                "memory": 1 << 37,
            }
            for i, bus in enumerate(("19", "1A"))
        ],
        "pairs": [
            {
                "first": a,
                "second": b,
                "read_status": "ok",
                "write_status": "ok",
                "nvlink_status": "ok",
                "distance": "root",
            }
            for a, b in ((0, 1), (1, 0))
        ],
    }
    cuda = {
        "version": 13000,
        "devices": [
            {"bus_id": f"0000:{bus}:00.0", "cuda": {"compute_capability": "9.0", "dma_buf": True}}
            for bus in ("1A", "19")
        ],
        "pairs": [{"first": 0, "second": 1, "access": True}, {"first": 1, "second": 0, "access": False}],
    }
    return nvml, cuda


def test_gpus_of_nvml_and_cuda_are_joined_by_pci_address(machine: FakeSystem) -> None:
    nvml, cuda = two_gpus(machine)
    devices = gpus.devices(machine, nvml, cuda)
    assert [g.bus_id for g in devices] == ["0000:19:00.0", "0000:1a:00.0"]
    assert devices[0].pci_bridges == ["pci0000:16", "0000:16:01.0", "0000:17:00.0", "0000:18:00.0"]
    assert all(g.cuda and g.cuda.dma_buf and g.cuda.rdma is None for g in devices)
    pairs = {(p.first, p.second): p for p in gpus.pairs(devices, nvml, cuda)}
    assert pairs[1, 0].access is True  # CUDA's device 0 is the GPU at 1a
    assert pairs[0, 1].access is False
    assert pairs[0, 1].distance == "switch"  # sysfs is more precise than NVML's "root"


def test_nvlinks_direct_through_switches_and_hidden() -> None:
    system = FakeSystem(Path("/nonexistent"))

    def links(remote: list[tuple[str, str]], status: str) -> int | None:
        ends = [{"remote": r, "remote_kind": k} for r, k in remote]
        devices = [
            {"index": 0, "bus_id": "0000:01:00.0", "nvlinks": ends},
            {"index": 1, "bus_id": "0000:02:00.0", "nvlinks": ends},
        ]
        nvml = {"devices": devices, "pairs": [{"first": 0, "second": 1, "nvlink_status": status}]}
        return gpus.pairs(gpus.devices(system, nvml, {}), nvml, {})[0].nvlinks

    assert links([("00000000:02:00.0", "gpu")] * 4, "ok") == 4
    assert links([("0000:07:00.0", "switch")] * 18, "ok") == 18
    assert links([("0000:00:00.0", "unknown")] * 18, "ok") == 18  # a virtual machine hides the other end
    assert links([("0000:03:00.0", "gpu")] * 4, "not_supported") == 0
    assert links([], "") == 0


def test_without_nvml_the_gpus_are_those_of_cuda(machine: FakeSystem) -> None:
    _, cuda = two_gpus(machine)
    devices = gpus.devices(machine, {"error": "NVML Shared Library Not Found"}, cuda)
    assert [g.bus_id for g in devices] == ["0000:1a:00.0", "0000:19:00.0"]


def test_driver_facts(machine: FakeSystem) -> None:
    nvml, cuda = two_gpus(machine)
    banner = "NVRM version: NVIDIA Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: gcc"
    machine.write("/proc/driver/nvidia/version", banner)
    machine.write(
        "/proc/driver/nvidia/params", 'EnableStreamMemOPs: 0\nPeerMappingOverride: 1\nRegistryDwords: ""'
    )
    machine.write("/proc/4242/comm", "nv-fabricmanage\n")
    machine.write("/proc/4243/comm", "nvidia-cuda-mps\n")
    machine.device("pci0000:30/0000:31:00.0", {"vendor": "0x10de", "class": "0x068000"})
    facts = gpus.driver(machine, nvml, cuda)
    assert (facts.module_version, facts.open_module, facts.cuda_version) == ("580.159.04", True, "13.0")
    assert facts.settings == {"EnableStreamMemOPs": "0", "PeerMappingOverride": "1"}
    assert facts.pci_gpus == {"0000:19:00.0": "", "0000:1a:00.0": ""}
    assert facts.nvswitches == 1
    assert (facts.fabric_manager, facts.mps) == (True, True)


@pytest.mark.parametrize(
    ("first", "second", "nodes", "expected"),
    [
        (["pci0000:16", "a", "b"], ["pci0000:16", "a", "c"], (0, 0), "switch"),
        (["pci0000:16", "a"], ["pci0000:16", "b"], (0, 0), "root"),
        (["pci0000:00"], ["pci0000:00"], (0, 0), "root"),
        (["pci0000:16", "a"], ["pci0000:30", "b"], (0, 0), "node"),
        (["pci0000:16", "a"], ["pci0000:b0", "b"], (0, 1), "across"),
        (["pci0000:16", "a"], ["pci0000:b0", "b"], (None, 1), "unknown"),
        ([], ["pci0000:b0"], (0, 0), "unknown"),
    ],
)
def test_distance(
    first: list[str], second: list[str], nodes: tuple[int | None, int | None], expected: str
) -> None:
    assert topology.distance(first, second, *nodes) == expected
    assert topology.distance(second, first, *reversed(nodes)) == expected


def test_bus_id_forms() -> None:
    assert topology.bus_id("00000000:3B:00.0") == topology.bus_id("3b:00.0") == "0000:3b:00.0"
    assert topology.bus_id("00010000:3B:00.0") == "10000:3b:00.0"
    assert topology.bus_id("") == ""


def test_network_nics_and_their_distance(machine: FakeSystem) -> None:
    nvml, cuda = two_gpus(machine)
    place = f"{SWITCH}/0000:18:01.0/0000:1a:00.1"
    machine.device(place)
    machine.link(f"/sys/devices/{place}/driver", "/sys/bus/pci/drivers/mlx5_core")
    machine.path("/sys/bus/pci/drivers/mlx5_core").mkdir(parents=True)
    nic = f"/sys/devices/{place}/infiniband/mlx5_0"
    machine.write(f"{nic}/fw_ver", "28.43\n")
    machine.write(f"{nic}/ports/1/state", "4: ACTIVE\n")
    machine.write(f"{nic}/ports/1/link_layer", "InfiniBand\n")
    machine.write(f"{nic}/ports/1/rate", "400 Gb/sec (4X NDR)\n")
    machine.link(f"{nic}/device", f"/sys/devices/{place}")
    machine.write(f"/sys/devices/{place}/net/ib0/operstate", "up")
    machine.link("/sys/class/infiniband/mlx5_0", nic)
    virtual = "/sys/devices/pci0000:80/0000:80:03.0/virtio2"
    machine.device("pci0000:80/0000:80:03.0", node=1)
    machine.write(f"{virtual}/net/eth0/operstate", "up\n")
    machine.link(f"{virtual}/net/eth0/device", virtual)
    machine.link("/sys/class/net/eth0", f"{virtual}/net/eth0")
    machine.write("/sys/class/net/lo/operstate", "unknown")
    facts = network.probe(machine, gpus.devices(machine, nvml, cuda))
    rdma, ethernet = facts.nics
    assert (rdma.name, rdma.driver, rdma.state, rdma.interfaces) == ("mlx5_0", "mlx5_core", "active", ["ib0"])
    assert (rdma.bus_id, rdma.rate) == ("0000:1a:00.1", "400 Gb/sec")
    assert rdma.gpu_distance == {"0": "switch", "1": "switch"}
    assert (ethernet.name, ethernet.bus_id, ethernet.numa_node) == ("eth0", "0000:80:03.0", 1)
    assert ethernet.gpu_distance == {"0": "across", "1": "across"}


def test_kernel_facts(machine: FakeSystem) -> None:
    nvml, cuda = two_gpus(machine)
    machine.write("/proc/sys/kernel/osrelease", "6.8.0\n")
    machine.write(
        "/proc/modules", "nvidia_peermem 16384 0 - Live 0x0\nib_core 5 1 - Live 0x0\nloop 1 0 - Live 0x0\n"
    )
    machine.write("/sys/module/nvidia_peermem/version", "580.159.04\n")
    machine.write("/boot/config-6.8.0", "CONFIG_PCI_P2PDMA=y\n# CONFIG_DMA_SHARED_BUFFER is not set\n")
    machine.write("/proc/cmdline", "BOOT_IMAGE=/vmlinuz root=/dev/sda secret=abc intel_iommu=on iommu=pt\n")
    facts = kernel.probe(machine, gpus.devices(machine, nvml, cuda), [])
    assert facts.modules == {"nvidia_peermem": "580.159.04", "ib_core": ""}
    assert facts.options["CONFIG_PCI_P2PDMA"] == "y"
    assert facts.options["CONFIG_DMA_SHARED_BUFFER"] == "n"
    assert facts.arguments == ["intel_iommu=on", "iommu=pt"]  # nothing else leaves the command line
    assert facts.acs_redirect == ["0000:18:00.0", "0000:18:01.0"]
    assert facts.acs_unreadable == 1  # the root port, which has no config file here


@pytest.mark.parametrize(
    ("port", "control", "expected"),
    [(6, 0x1D, True), (6, 0x11, False), (6, None, False), (4, 0x1D, False)],
)
def test_acs_redirect_is_read_from_configuration_space(
    port: int, control: int | None, expected: bool
) -> None:
    assert kernel.redirects(config_space(port, control)) is expected


def test_acs_survives_a_capability_list_that_runs_in_a_circle() -> None:
    space = bytearray(4096)
    space[0x34] = 0x40
    space[0x40:0x42] = bytes([0x01, 0x40])
    assert kernel.redirects(bytes(space)) is False


def test_host_facts(machine: FakeSystem) -> None:
    machine.environment = {
        "HOME": "/home/ada",
        "CUDA_DEVICE_MAX_CONNECTIONS": "1",
        "AWS_SECRET_ACCESS_KEY": "x",
    }
    machine.write(
        "/proc/cpuinfo", "processor\t: 0\nmodel name\t: A CPU\nflags\t: fpu hypervisor\nprocessor\t: 1\n"
    )
    machine.write("/sys/class/dmi/id/sys_vendor", "QEMU\n")
    machine.write("/run/.containerenv")
    machine.write("/proc/sys/kernel/yama/ptrace_scope", "1\n")
    for size, total in (("2048", "512"), ("1048576", "0")):
        machine.write(f"/sys/kernel/mm/hugepages/hugepages-{size}kB/nr_hugepages", total)
        machine.write(f"/sys/kernel/mm/hugepages/hugepages-{size}kB/free_hugepages", total)
    machine.write("/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n")
    facts = host.probe(machine)
    assert (facts.cpu, facts.cores, facts.hypervisor, facts.container) == ("A CPU", 2, "QEMU", "podman")
    assert (facts.ptrace_scope, facts.transparent_huge_pages, facts.shm_size) == (1, "madvise", None)
    assert [(p.size, p.total) for p in facts.huge_pages] == [(2 << 20, 512), (1 << 30, 0)]
    assert facts.environment == {"CUDA_DEVICE_MAX_CONNECTIONS": "1"}  # no other variable is kept


def test_storage_facts(machine: FakeSystem) -> None:
    nvml, cuda = two_gpus(machine)
    settings = '{\n// how cuFile works\n"properties": {\n"allow_compat_mode": false, // none\n"x": 1\n}\n}'
    machine.write("/etc/cufile.json", settings)
    machine.write("/proc/driver/nvidia-fs/version", "version: 2.26\n")
    machine.device(f"{SWITCH}/0000:18:02.0/0000:1b:00.0")
    machine.write(f"/sys/devices/{SWITCH}/0000:18:02.0/0000:1b:00.0/nvme/nvme0/model", "fast")
    machine.link("/sys/class/nvme/nvme0", f"/sys/devices/{SWITCH}/0000:18:02.0/0000:1b:00.0/nvme/nvme0")
    facts = storage.probe(machine, gpus.devices(machine, nvml, cuda))
    assert (facts.nvidia_fs_version, facts.compat_mode, facts.pci_p2pdma) == ("2.26", False, None)
    assert [(d.name, d.gpu_distance) for d in facts.drives] == [("nvme0", {"0": "switch", "1": "switch"})]


def test_route_tables_good_and_broken(machine: FakeSystem) -> None:
    folder = "/home/ada/.config/peerway/routes"
    machine.write(f"{folder}/a.json", json.dumps({"machine": {"hash": "9fab"}, "date": "2026-11-20"}))
    machine.write(f"{folder}/b.json", "{")
    machine.write(f"{folder}/c.json", "[1]")
    machine.write(f"{folder}/notes.txt", "")
    facts = gather(machine).libraries
    assert facts.routes_folder == folder
    assert [(t.fingerprint, t.date, bool(t.error)) for t in facts.routes] == [
        ("9fab", "2026-11-20", False),
        ("", "", True),
        ("", "", True),
    ]


def test_nics_by_plugin_are_probed_one_by_one(machine: FakeSystem) -> None:
    machine.children["nic"] = {"nics": ["torus", "far=./libtoy.so?port=1"]}
    machine.children["nic:torus"] = {"asked": "torus", "name": "torus", "abi": 1, "opened": True}
    machine.children["nic:far=./libtoy.so?port=1"] = {"error": "killed by SIGSEGV", "untried": True}
    first, second = gather(machine).network.plugins
    assert (first.name, first.abi, first.opened, first.untried) == ("torus", 1, True, False)
    assert (second.entry, second.abi, second.untried) == ("far=./libtoy.so?port=1", None, True)


@pytest.mark.parametrize(
    ("setting", "facts"),
    [
        ("torus", {"name": "torus", "abi": 1, "opened": True, "puts_in_order": True}),
        ("far=torus?node=5", {"name": "far", "opened": True, "entry": "far=torus?node=5"}),
        ("torus?node=99", {"name": "torus", "abi": 1, "opened": False}),
        ("/nowhere/libtoy.so", {"name": "", "abi": None, "opened": False, "file": "/nowhere/libtoy.so"}),
    ],
)
def test_a_nic_is_loaded_and_opened(setting: str, facts: dict[str, object]) -> None:
    (nic,), error = network.plugins(System(environment={**os.environ, "PEERWAY_NIC": setting}))
    assert error == ""
    assert {name: getattr(nic, name) for name in facts} == facts
    assert bool(nic.error) != nic.opened


def test_a_setting_of_nics_that_makes_no_sense_is_told() -> None:
    nics, error = network.plugins(System(environment={**os.environ, "PEERWAY_NIC": "A B=torus"}))
    assert nics == []
    assert "PEERWAY_NIC: 'A B=torus' gives the NIC the name 'A B'" in error


def test_ucx_builds(machine: FakeSystem, tmp_path: Path) -> None:
    machine.write("/opt/ucx/lib/libucp.so.0")
    machine.write("/opt/ucx/lib/ucx/libuct_cuda.so.0")
    machine.write("/opt/ucx/lib/ucx/libuct_ib.so.0")
    machine.write("/opt/ucx/lib/ucx/libuct_rocm.so.0")
    machine.write("/opt/ucx/bin/ucx_info")
    path = str(tmp_path / "opt/ucx/lib/libucp.so.0")
    machine.children["library:ucp"] = {"path": path, "version": "1.20.0"}
    lines = "#  Transport: self\n#     Device: memory\n#  Transport: rc_mlx5\n#  Transport: rc_mlx5\n"
    machine.outputs["ucx_info"] = Output(0, lines)
    ucx = gather(machine).libraries.ucx
    assert len({u.path for u in ucx}) == len(ucx) == 1
    assert (ucx[0].version, ucx[0].transports) == ("1.20.0", ["self", "rc_mlx5"])
    assert (ucx[0].cuda, ucx[0].rocm, ucx[0].verbs) == (True, True, True)


def test_ucx_root_that_holds_none_is_reported(machine: FakeSystem) -> None:
    machine.environment = {"UCX_ROOT": "/nowhere"}
    machine.children["library:ucp"] = {"error": "/nowhere/lib/libucp.so.0: cannot open"}
    assert [u.error for u in gather(machine).libraries.ucx] == ["/nowhere/lib/libucp.so.0: cannot open"]


def test_openmpi_answers(machine: FakeSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "openmpi_programs", lambda system: ["/usr/bin/ompi_info"])
    cuda = "mca:mpi:base:param:mpi_built_with_cuda_support:value:true"
    text = f'ompi:version:full:4.1.4\nmca:pml:ucx:version:"mca:2.1.0"\n{cuda}\n'
    machine.outputs["ompi_info"] = Output(0, text)
    mpi = gather(machine).libraries.openmpi[0]
    assert (mpi.version, mpi.cuda, mpi.ucx) == ("4.1.4", True, True)


def test_an_empty_machine_gives_facts_all_the_same(machine: FakeSystem) -> None:
    facts = gather(machine)
    assert facts.gpus == []
    assert facts.network.nics == []
    assert facts.host.cross_attach is None
    assert facts.libraries.core.path == ""


def test_a_program_that_gives_no_answer_is_left_behind() -> None:
    output = System(timeout=0.3).run([sys.executable, "-c", "import time; time.sleep(600)"])
    assert output.code is None
    assert "gave no answer within 0.3 s" in output.problem


def test_programs_that_fail_say_why() -> None:
    system = System(timeout=30)
    assert "No such file" in system.run(["/nonexistent/program"]).problem
    assert system.run([sys.executable, "-c", "raise SystemExit('broken')"]).problem.endswith("code 1: broken")
    died = system.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 11)"])
    assert "SIGSEGV" in died.problem
    assert system.child("no_such_child")["untried"] is True
    assert "the no_such_child probe ended with code 2" in system.problems[0]


def test_the_library_inside_this_package_is_found() -> None:
    core = libraries.load(System(), "core", libraries.core_candidates())
    assert Path(core.path).name.startswith("libpeerway.so")
    assert core.version == peerway.__version__


def kfd_node(machine: FakeSystem, number: int, properties: str, **folders: list[str]) -> None:
    """Add a node to the topology of the driver amdgpu, with the properties of its memory banks and links."""
    folder = f"/sys/class/kfd/kfd/topology/nodes/{number}"
    machine.write(f"{folder}/properties", properties)
    for name, entries in folders.items():
        for entry, text in enumerate(entries):
            machine.write(f"{folder}/{name}/{entry}/properties", text)


def test_amd_gpus_and_their_links_are_read_from_the_topology(machine: FakeSystem) -> None:
    """As the kernel shows a node with a CPU and two MI200, and one GPU with a small BAR."""
    for address, gpu_class in (("0000:c1:00.0", "0x038000"), ("0000:c6:00.0", "0x120000")):
        place = machine.device(f"pci0000:c0/{address}", {"vendor": "0x1002", "class": gpu_class})
        machine.link(f"/sys/bus/pci/devices/{place}/driver", "/sys/bus/pci/drivers/amdgpu")
    machine.write("/sys/bus/pci/drivers/amdgpu/new_id")
    machine.device("pci0000:c0/0000:c0:01.0", {"vendor": "0x1002", "class": "0x060400"})  # a bridge of AMD
    machine.write("/sys/module/amdgpu/version", "6.10.5\n")
    machine.write("/sys/module/amdgpu/parameters/noretry", "-1\n")
    machine.write("/dev/kfd")
    machine.write("/opt/rocm/.info/version", "6.3.0-39\n")
    pcie = "type 2\nnode_from {0}\nnode_to {1}\nweight 20"
    xgmi = "type 11\nnode_from {0}\nnode_to {1}\nweight 15"
    public, private = "heap_type 1\nsize_in_bytes 68702699520\n", "heap_type 2\nsize_in_bytes 25753026560\n"
    kfd_node(machine, 0, "cpu_cores_count 64\ngfx_target_version 0\n", io_links=[pcie.format(0, 1)])
    gpu = "simd_count 440\ngfx_target_version {}\nlocation_id {}\ndomain 0\nunique_id 3141592653589793238\n"
    kfd_node(
        machine, 1, gpu.format(90010, 0xC100), mem_banks=[public],
        io_links=[pcie.format(1, 0), xgmi.format(1, 2)],
    )  # fmt: skip
    kfd_node(
        machine, 2, gpu.format(90402, 0xC600), mem_banks=[public],
        io_links=[pcie.format(2, 0), xgmi.format(2, 1)],
    )  # fmt: skip
    kfd_node(
        machine, 10, gpu.format(110000, 0x0301), mem_banks=["heap_type 4\nsize_in_bytes 65536\n", private]
    )

    facts = amd.probe(machine)

    assert facts.pci_gpus == {"0000:c1:00.0": "amdgpu", "0000:c6:00.0": "amdgpu"}
    assert (facts.module, facts.module_version, facts.rocm_version) == (True, "6.10.5", "6.3.0-39")
    assert (facts.kfd, facts.kfd_usable, facts.no_retry) == (True, True, -1)
    assert [(g.node, g.architecture, g.bus_id, g.large_bar, g.xgmi) for g in facts.gpus] == [
        (1, "gfx90a", "0000:c1:00.0", True, [2]),
        (2, "gfx942", "0000:c6:00.0", True, [1]),
        (10, "gfx1100", "0000:03:00.1", False, []),
    ]
    assert facts.gpus[0].memory == 68702699520
    assert facts.gpus[2].memory == 25753026560, "memory of the GPU, not what its threads share"


def test_a_machine_without_amd_gpus_has_none(machine: FakeSystem) -> None:
    facts = amd.probe(machine)
    assert (facts.module, facts.kfd, facts.pci_gpus, facts.gpus) == (False, False, {}, [])
