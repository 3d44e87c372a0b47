"""Checks of the libraries that Peerway uses or is compared with, and of its own route tables."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic

if TYPE_CHECKING:
    from ..facts import Facts, Ucx

CORE = Topic("libraries.core", Group.LIBRARIES, "libpeerway", "The library that moves the bytes.")
ROUTES = Topic(
    "libraries.routes", Group.LIBRARIES, "Route table", "Measured costs decide which path a transfer takes."
)
UCX = Topic("libraries.ucx", Group.LIBRARIES, "UCX", "Transfers between nodes use UCX (path ucx).")
NVRTC = Topic(
    "libraries.nvrtc", Group.LIBRARIES, "NVRTC", "It compiles Peerway's device code for the GPU at hand."
)
OPENMPI = Topic(
    "libraries.openmpi", Group.LIBRARIES, "Open MPI", "A launcher, and what benchmarks compare with."
)


SEE = "mend the problem below, or raise --timeout"


def core(facts: Facts) -> Finding:
    """Judge libpeerway."""
    library = facts.libraries.core
    if library.path:
        return CORE.ok(f"{library.version or 'version unknown'}{text.whence(library.path)}")
    if library.untried:
        return CORE.unknown(library.error, SEE)
    return CORE.absent(
        "not found", "install Peerway (pip install . or cmake --install), or set LD_LIBRARY_PATH"
    )


def routes(facts: Facts) -> Finding:
    """Judge the route tables."""
    tables = facts.libraries.routes
    broken = [t for t in tables if t.error]
    if broken:
        return ROUTES.warning(f"{broken[0].path}: {broken[0].error}", "measure again with peerway tune")
    if not tables:
        return ROUTES.off(
            f"none in {facts.libraries.routes_folder}", "measure this machine with peerway tune"
        )
    shown = "; ".join(
        f"{PurePath(t.path).name}" + (f", measured {t.date}" if t.date else "") + _mark(t.fingerprint)
        for t in tables
    )
    return ROUTES.ok(shown)


def _mark(fingerprint: str) -> str:
    return f", fingerprint {fingerprint[:12]}" if fingerprint else ""


def _describe(ucx: Ucx, on_amd: bool) -> str:
    if not ucx.path:
        return f"{ucx.origin}: not usable ({ucx.error})"
    parts = [f"CUDA {_yes(ucx.cuda)}", f"verbs {_yes(ucx.verbs)}"]
    if on_amd:
        parts.insert(1, f"ROCm {_yes(ucx.rocm)}")
    names = f": {', '.join(ucx.transports)}" if ucx.transports else ""
    return f"{ucx.version} ({ucx.origin}, {', '.join(parts)}){names}"


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def ucx(facts: Facts) -> Finding:
    """Judge the UCX builds against what the node needs."""
    builds = facts.libraries.ucx
    usable = [u for u in builds if u.path]
    on_amd = bool(facts.driver.amd.gpus)
    summary = "; ".join(_describe(u, on_amd) for u in builds)
    if any(u.untried for u in builds):
        return UCX.unknown(summary, SEE)
    if not usable:
        return UCX.absent(
            summary or "not found", "pip install libucx-cu13, or install the site's UCX (Debian: libucx0)"
        )
    if len(usable) < len(builds):
        return UCX.warning(summary, "correct UCX_ROOT: its lib folder must hold libucp.so.0")
    rdma = any(n.rdma for n in facts.network.nics)
    if facts.gpus and rdma and not any(u.cuda and u.verbs for u in usable):
        todo = "point UCX_ROOT at a UCX configured --with-verbs --with-cuda (PyPI wheels have no verbs)"
        return UCX.off(summary, todo)
    if facts.gpus and not any(u.cuda for u in usable):
        return UCX.off(summary, "install libucx-cu13, or point UCX_ROOT at a build with CUDA")
    if on_amd and not any(u.rocm and (u.verbs or not rdma) for u in usable):
        return UCX.off(
            summary, f"point UCX_ROOT at a UCX configured --with-rocm{' --with-verbs' if rdma else ''}"
        )
    if rdma and not any(u.verbs for u in usable):
        return UCX.off(summary, "install the site's UCX with verbs (Debian: libucx0)")
    return UCX.ok(summary)


def nvrtc(facts: Facts) -> Finding:
    """Judge NVRTC against GPUs and driver."""
    library, targets = facts.libraries.nvrtc, facts.libraries.nvrtc_targets
    if library.untried:
        return NVRTC.unknown(library.error, SEE)
    if not library.path:
        if not facts.gpus:
            return NVRTC.absent(
                "not found",
                "nothing to do without a GPU; to compile device code, pip install nvidia-cuda-nvrtc",
            )
        return NVRTC.off("not found", "pip install nvidia-cuda-nvrtc, or install the CUDA toolkit")
    shown = f"{library.version}, sm_{min(targets)} to sm_{max(targets)}" if targets else library.version
    present = {g.cuda.compute_capability for g in facts.gpus if g.cuda}
    lacking = sorted(c for c in present if _target(c) not in (0, *targets))
    if lacking and targets:
        todo = "install the NVRTC of a toolkit that knows this GPU (older GPUs: nvidia-cuda-nvrtc-cu12)"
        return NVRTC.warning(f"{shown}: not compute capability {', '.join(lacking)}", todo)
    newest = facts.driver.cuda_version
    if (
        newest
        and library.version.split(".")[0].isdigit()
        and int(library.version.split(".")[0]) > int(float(newest))
    ):
        return NVRTC.warning(
            f"{shown}, newer than the driver's CUDA {newest}",
            "install the NVRTC of the driver's CUDA version",
        )
    return NVRTC.ok(f"{shown}{text.whence(library.path)}")


def _target(capability: str) -> int:
    digits = capability.replace(".", "")
    return int(digits) if digits.isdigit() else 0


def openmpi(facts: Facts) -> Finding:
    """Judge the Open MPI installations."""
    programs = facts.libraries.openmpi
    if not programs:
        return OPENMPI.absent(
            "not found", "nothing to do, unless benchmarks shall compare: apt install openmpi-bin"
        )
    summary = "; ".join(
        f"{m.version} (CUDA {_yes(m.cuda)}, UCX {_yes(m.ucx)}){text.whence(m.origin)}"
        if m.version
        else m.error
        for m in programs
    )
    if not any(m.version for m in programs):
        return OPENMPI.unknown(summary, "run ompi_info by hand; a broken installation is best removed")
    if facts.gpus and not any(m.cuda or m.ucx for m in programs):
        return OPENMPI.off(
            summary, "GPU buffers need an Open MPI built --with-cuda or --with-ucx and a UCX with CUDA"
        )
    return OPENMPI.ok(summary)


CHECKS = (core, routes, ucx, nvrtc, openmpi)
