"""NICs, NIC plugins and the access to them."""

from __future__ import annotations

from dataclasses import dataclass, field

from .libraries import Library


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
class NicPlugin:
    """One entry of PEERWAY_NIC: a NIC plugin, and the NIC that it opened."""

    entry: str = ""  # its text in PEERWAY_NIC
    name: str = ""  # the NIC's name, "" when neither the entry nor a plugin tells it
    file: str = ""
    abi: int | None = None  # its version of peerway/nic.h, None when it could not be loaded
    opened: bool = False
    error: str = ""  # why it could not be loaded or opened
    untried: bool = False  # the child process that opens it did not answer
    puts_in_order: bool = False
    gets_behind_puts: bool = False
    memory: list[str] = field(default_factory=list)  # "host", "CUDA", "HIP"
    largest: int = 0  # bytes that one put or get can move
    copied: int = 0  # bytes that a put can copy from unregistered memory
    in_flight: int = 0  # operations that can be outstanding, 0 when unknown
    endpoints: int = 0  # the most that a job can open


@dataclass(kw_only=True)
class Network:
    """NICs and access to them."""

    nics: list[Nic] = field(default_factory=list)
    verbs_nodes: list[str] = field(default_factory=list)
    unusable_verbs_nodes: list[str] = field(default_factory=list)
    libibverbs: Library = field(default_factory=Library)
    plugins: list[NicPlugin] = field(default_factory=list)  # the entries of PEERWAY_NIC
    plugins_error: str = ""  # what is wrong with PEERWAY_NIC itself
