"""Checks of GPU and CPU: mapping GPU memory, atomics, stream memory operations, placement."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic

if TYPE_CHECKING:
    from ..facts import CudaDevice, Facts

GDRCOPY = Topic(
    "cpu.gdrcopy",
    Group.CPU,
    "GDRCopy",
    "The CPU then loads and stores GPU memory directly: the fastest way for a few bytes (path mapped).",
)
MMAP = Topic(
    "cpu.dma_buf_mmap",
    Group.CPU,
    "dma-buf mapping",
    "Drivers for CUDA 13.3 and newer let the CPU map GPU memory with no further module (path mapped).",
)
ATOMICS = Topic(
    "cpu.host_atomics",
    Group.CPU,
    "Host atomics",
    "Kernels can then raise signals in host memory with atomics.",
)
STREAM = Topic(
    "cpu.stream_memory_ops",
    Group.CPU,
    "Stream memory ops",
    "Signals that are waited for and raised in stream order need 64-bit memory operations on streams.",
)
CONNECTIONS = Topic(
    "cpu.max_connections",
    Group.CPU,
    "Hardware queues",
    "With CUDA_DEVICE_MAX_CONNECTIONS=1 a stream that waits for a signal stalls every other stream.",
)
NUMA = Topic(
    "cpu.numa",
    Group.CPU,
    "NUMA placement",
    "Pinned buffers and ranks belong on the NUMA node nearest to their GPU.",
)


def _known(facts: Facts) -> list[CudaDevice]:
    return [g.cuda for g in facts.gpus if g.cuda]


def gdrcopy(facts: Facts) -> Finding:
    """Judge GDRCopy: module, device file, library."""
    if not facts.gpus:
        return GDRCOPY.no_gpu()
    m = facts.mapping
    loaded = "gdrdrv" in facts.kernel.modules
    version = facts.kernel.modules.get("gdrdrv", "")
    if not loaded and not m.gdrdrv_node:
        has = f"libgdrapi {m.libgdrapi.version}, but " if m.libgdrapi.path else ""
        return GDRCOPY.off(
            f"{has}module gdrdrv is not loaded", "install gdrcopy's gdrdrv-dkms and run modprobe gdrdrv"
        )
    if not m.gdrdrv_node:
        todo = "run gdrcopy's insmod.sh, or give the container --device /dev/gdrdrv"
        return GDRCOPY.off(f"gdrdrv {version} is loaded, but /dev/gdrdrv is missing", todo)
    if not m.gdrdrv_usable:
        return GDRCOPY.off(
            "this user may not open /dev/gdrdrv", "chmod 666 /dev/gdrdrv (gdrcopy's udev rule does)"
        )
    if not m.libgdrapi.path:
        todo = "install libgdrapi (package libgdrapi or gdrcopy), or add its folder to LD_LIBRARY_PATH"
        return GDRCOPY.off(f"gdrdrv {version} is ready, but libgdrapi.so.2 was not found", todo)
    library = m.libgdrapi.version
    if version and library and text.version(version)[:1] != text.version(library)[:1]:
        todo = "install the module and the library of the same release"
        return GDRCOPY.warning(f"module {version} and library {library} differ", todo)
    return GDRCOPY.ok(f"gdrdrv {version or '(version not readable)'}, libgdrapi {library}")


def dma_buf_mmap(facts: Facts) -> Finding:
    """Judge the mapping of GPU memory through dma-buf."""
    if not facts.gpus:
        return MMAP.no_gpu()
    known = _known(facts)
    if known and all(c.dma_buf_mmap for c in known):
        return MMAP.ok("the driver lets the CPU map GPU memory")
    current = facts.driver.cuda_version or "unknown"
    gdr = facts.mapping.gdrdrv_usable and facts.mapping.libgdrapi.path
    todo = (
        "nothing to do while GDRCopy works"
        if gdr
        else "install a driver for CUDA 13.3 or newer, or GDRCopy (above)"
    )
    if text.version(current) >= (13, 3):
        todo = (
            "nothing to do while GDRCopy works"
            if gdr
            else "this GPU or platform has it not: install GDRCopy (above)"
        )
    return MMAP.off(f"the driver (CUDA {current}) does not offer it", todo)


def host_atomics(facts: Facts) -> Finding:
    """Judge atomics of kernels in host memory."""
    if not facts.gpus:
        return ATOMICS.no_gpu()
    known = [c.host_atomics for c in _known(facts) if c.host_atomics is not None]
    if not known:
        return ATOMICS.cuda_silent()
    if all(known):
        return ATOMICS.ok("native")
    return ATOMICS.absent("not across PCIe", "nothing to do: plain stores are used for signals to the host")


def stream_memory_ops(facts: Facts) -> Finding:
    """Judge memory operations on streams."""
    if not facts.gpus:
        return STREAM.no_gpu()
    known = [c.stream_memory_ops for c in _known(facts) if c.stream_memory_ops is not None]
    if not known:
        return STREAM.unknown(
            "CUDA does not say", "fix CUDA first, see GPUs; drivers before CUDA 11.7 have no answer"
        )
    if all(known):
        return STREAM.ok("64-bit waits and writes")
    return STREAM.off(
        "not offered", "load the driver with NVreg_EnableStreamMemOPs=1, or install CUDA 12 or newer"
    )


def max_connections(facts: Facts) -> Finding:
    """Judge CUDA_DEVICE_MAX_CONNECTIONS."""
    if not facts.gpus:
        return CONNECTIONS.no_gpu()
    value = facts.host.environment.get("CUDA_DEVICE_MAX_CONNECTIONS")
    if value is None:
        return CONNECTIONS.ok("CUDA_DEVICE_MAX_CONNECTIONS is not set (8)")
    if value.strip() == "1":
        todo = "unset it, or set 8 or more, where streams wait for signals"
        return CONNECTIONS.warning("CUDA_DEVICE_MAX_CONNECTIONS=1: one queue for all streams", todo)
    return CONNECTIONS.ok(f"CUDA_DEVICE_MAX_CONNECTIONS={value}")


def numa(facts: Facts) -> Finding:
    """Report the NUMA node of each GPU."""
    if not facts.gpus:
        return NUMA.no_gpu()
    nodes: dict[int | None, list[int]] = {}
    for gpu in facts.gpus:
        nodes.setdefault(gpu.numa_node, []).append(gpu.index)
    if None in nodes:
        summary = f"not reported by the firmware: {text.gpus(nodes[None])}"
        return NUMA.unknown(summary, "bind ranks by hand on machines with several sockets; look at lspci -t")
    return NUMA.ok(
        "; ".join(f"node {n}: {text.gpus(g)}" for n, g in sorted(nodes.items(), key=lambda i: i[0] or 0))
    )


CHECKS = (gdrcopy, dma_buf_mmap, host_atomics, stream_memory_ops, max_connections, numa)
