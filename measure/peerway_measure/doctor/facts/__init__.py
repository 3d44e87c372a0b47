"""What is known about this node: plain data that the probes fill in and the checks judge.

`None` always means "could not be found out"; `False`, 0 and "" are answers. Sizes are in bytes unless the
name says otherwise. The JSON of `peerway doctor --json` has the same fields under "facts".
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .amd import Amd, AmdGpu
from .gpus import CudaDevice, Driver, Gpu, GpuPair, Mapping, NvLink
from .host import Host, HugePages, Kernel
from .libraries import Libraries, Library, OpenMpi, RouteTable, Ucx
from .network import Network, Nic, NicPlugin
from .storage import Drive, Storage

__all__ = [
    "Amd", "AmdGpu", "CudaDevice", "Drive", "Driver", "Facts", "Gpu", "GpuPair", "Host", "HugePages",
    "Kernel", "Libraries", "Library", "Mapping", "Network", "Nic", "NicPlugin", "NvLink", "OpenMpi",
    "RouteTable", "Storage", "Ucx",
]  # fmt: skip


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
