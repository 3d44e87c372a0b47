"""The host and its kernel."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Kernel:
    """The kernel and what it does to DMA."""

    release: str = ""
    modules: dict[str, str] = field(default_factory=dict)  # loaded modules of interest -> version or ""
    options: dict[str, str] = field(default_factory=dict)  # build options of interest -> "y", "m", "n"
    arguments: list[str] = field(default_factory=list)  # boot arguments that bear on DMA
    iommu_groups: int = 0
    # Bridges above a GPU or NIC that redirect peer-to-peer traffic through the root complex.
    acs_redirect: list[str] = field(default_factory=list)
    acs_unreadable: int = 0  # bridges above a GPU or NIC whose ACS registers this user may not read


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
    cross_attach: bool | None = None  # a process may read the memory of another one of the same user
    cross_attach_opt_in: bool | None = None  # as above, once the other has allowed it (PR_SET_PTRACER)
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
