"""Libraries, programs and route tables."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(kw_only=True)
class Library:
    """A shared library that the doctor looked for."""

    path: str = ""  # "" when it was not found
    version: str = ""
    untried: bool = False  # the search itself failed; Facts.problems says why
    error: str = ""


@dataclass(kw_only=True)
class Ucx:
    """One UCX build."""

    origin: str = ""  # "site", "wheel" or "UCX_ROOT"
    path: str = ""  # of libucp
    untried: bool = False  # the search itself failed
    version: str = ""
    cuda: bool | None = None
    rocm: bool | None = None
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
    nics: list[str] = field(default_factory=list)  # measured paths that go over a NIC: "nic:torus"
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
