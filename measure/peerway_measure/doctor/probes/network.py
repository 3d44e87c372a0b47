"""NICs (RDMA devices and Ethernet interfaces) and how far each is from each GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import topology
from ..decode import decode
from ..facts import Gpu, Network, Nic, NicPlugin

if TYPE_CHECKING:
    from ..system import System


def probe(system: System, gpus: list[Gpu]) -> Network:
    """Find the NICs."""
    nics = [_rdma(system, name) for name in system.list("/sys/class/infiniband")]
    owned = {interface for nic in nics for interface in nic.interfaces}
    for name in system.list("/sys/class/net"):
        if name not in owned and system.exists(f"/sys/class/net/{name}/device"):
            nics.append(_ethernet(system, name))
    for nic in nics:
        nic.numa_node = topology.numa_node(system, nic.bus_id)
        nic.pci_bridges = topology.place(system, nic.bus_id)
        nic.gpu_distance = {
            str(g.index): topology.distance(g.pci_bridges, nic.pci_bridges, g.numa_node, nic.numa_node)
            for g in gpus
        }
    nodes = [f"/dev/infiniband/{n}" for n in system.list("/dev/infiniband") if n.startswith("uverbs")]
    return Network(
        nics=nics,
        verbs_nodes=nodes,
        unusable_verbs_nodes=[node for node in nodes if not system.usable(node)],
    )


def plugins(system: System) -> tuple[list[NicPlugin], str]:
    """Load and open the NICs that PEERWAY_NIC names, each in a process of its own; and what is wrong with
    the setting.
    """
    answer = system.child("nic")
    nics = [
        decode(NicPlugin, {"asked": entry, **system.child("nic", {"entry": entry})})
        for entry in answer.get("nics", [])
    ]
    return nics, str(answer.get("error", ""))


def _rdma(system: System, name: str) -> Nic:
    folder = f"/sys/class/infiniband/{name}"
    address = topology.device_address(system, folder)
    nic = Nic(
        name=name,
        rdma=True,
        driver=system.resolve(f"{folder}/device/driver").rpartition("/")[2],
        bus_id=address,
        interfaces=system.list(f"{folder}/device/net"),
        firmware=system.read(f"{folder}/fw_ver"),
        virtual=not address,
    )
    states = []
    for port in system.list(f"{folder}/ports"):
        states.append(system.read(f"{folder}/ports/{port}/state").partition(": ")[2].lower())
        nic.link_layer = system.read(f"{folder}/ports/{port}/link_layer") or nic.link_layer
        nic.rate = nic.rate or system.read(f"{folder}/ports/{port}/rate").partition(" (")[0]
    nic.state = "active" if "active" in states else next((s for s in states if s), "unknown")
    return nic


def _ethernet(system: System, name: str) -> Nic:
    folder = f"/sys/class/net/{name}"
    speed = system.number(f"{folder}/speed")
    driver = system.resolve(f"{folder}/device/driver").rpartition("/")[2]
    return Nic(
        name=name,
        driver=driver,
        bus_id=topology.device_address(system, folder),
        interfaces=[name],
        link_layer="Ethernet",
        state={"up": "active"}.get(state := system.read(f"{folder}/operstate"), state),
        rate=f"{speed / 1000:g} Gb/s" if speed and speed > 0 else "",
        virtual=driver.startswith(("virtio", "hv_", "xen", "vmxnet", "ena")),
    )
