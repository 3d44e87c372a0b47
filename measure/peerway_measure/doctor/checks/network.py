"""Checks of GPU and network: RDMA NICs, GPUDirect RDMA, and the distance between NICs and GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic
from ..topology import DESCRIPTIONS, DISTANCES

if TYPE_CHECKING:
    from ..facts import Facts, Nic, NicPlugin

NICS = Topic(
    "network.NICs",
    Group.NETWORK,
    "RDMA NICs",
    "Only RDMA NICs can reach GPU memory on other nodes directly.",
)
VERBS = Topic(
    "network.verbs",
    Group.NETWORK,
    "Verbs access",
    "UCX drives RDMA NICs through libibverbs and uverbs files.",
)
RDMA = Topic(
    "network.gpudirect_rdma",
    Group.NETWORK,
    "GPUDirect RDMA",
    "The NIC then reads and writes GPU memory itself, with no copy through the host (path ucx).",
)
VMM = Topic(
    "network.rdma_vmm",
    Group.NETWORK,
    "RDMA of VMM memory",
    "Memory from cuMemCreate, which frameworks use more and more, needs the driver's consent for RDMA.",
)
DISTANCE = Topic(
    "network.distance",
    Group.NETWORK,
    "NIC near each GPU",
    "GPUDirect RDMA is fast where NIC and GPU share a PCIe switch, slow across sockets.",
)
MEMLOCK = Topic(
    "network.memlock", Group.NETWORK, "Locked memory", "RDMA NICs need registered memory locked in RAM."
)
PLUGINS = Topic(
    "network.plugins",
    Group.NETWORK,
    "NICs by plugin",
    "A NIC with put and get is a path, nic:NAME, once PEERWAY_NIC names its plugin.",
)
NO_NIC = "no RDMA NIC"


def _nics(facts: Facts) -> list[Nic]:
    return [nic for nic in facts.network.nics if nic.rdma]


def nics(facts: Facts) -> Finding:
    """Judge RDMA NICs and their links."""
    rdma = _nics(facts)
    if not rdma:
        others = ", ".join(f"{n.name} ({n.driver or n.link_layer})" for n in facts.network.nics[:4])
        summary = f"none; {others}" if others else "none"
        todo = "nothing to do, if this is so by design: traffic between nodes then goes over TCP"
        if "ib_core" not in facts.kernel.modules and any(
            n.driver.startswith("mlx5") for n in facts.network.nics
        ):
            return NICS.off(summary, "load the NIC's RDMA driver: modprobe mlx5_ib")
        return NICS.absent(summary, todo)
    down = [n.name for n in rdma if n.state != "active"]
    rates = sorted({f"{n.rate} {n.link_layer}".strip() for n in rdma if n.state == "active"})
    drivers = ", ".join(sorted({n.driver for n in rdma if n.driver}))
    summary = f"{len(rdma)} × {drivers} ({', '.join(rates) or 'no link'})"
    if down:
        return NICS.warning(
            f"{summary}; no link: {', '.join(down)}", "check cable, switch port and subnet manager (ibstat)"
        )
    return NICS.ok(summary)


def verbs(facts: Facts) -> Finding:
    """Judge access to the NICs."""
    if not _nics(facts):
        return VERBS.absent(NO_NIC, "see RDMA NICs")
    n = facts.network
    if not n.verbs_nodes:
        todo = "modprobe ib_uverbs; in a container add --device /dev/infiniband"
        return VERBS.off("/dev/infiniband/uverbs* is missing", todo)
    if n.unusable_verbs_nodes:
        names = ", ".join(n.unusable_verbs_nodes)
        return VERBS.off(f"this user may not open {names}", "install rdma-core's udev rules (mode 666)")
    if not n.libibverbs.path:
        return VERBS.off(
            "libibverbs.so.1 was not found", "install rdma-core (Debian: libibverbs1 ibverbs-providers)"
        )
    return VERBS.ok(f"{text.count(len(n.verbs_nodes), 'device file')}, libibverbs")


def gpudirect_rdma(facts: Facts) -> Finding:
    """Judge kernel, GPU, NIC and UCX together."""
    if not facts.gpus:
        return RDMA.no_gpu()
    known = [g.cuda for g in facts.gpus if g.cuda]
    module = next((m for m in ("nvidia_peermem", "nv_peer_mem") if m in facts.kernel.modules), "")
    dma_buf = bool(known) and all(c.dma_buf for c in known)
    parts = (f"module {module}" if module else "", "dma-buf" if dma_buf else "")
    support = " and ".join(part for part in parts if part)
    if not _nics(facts):
        summary = f"{NO_NIC}; the GPU side has {support}" if support else NO_NIC
        return RDMA.absent(summary, "see RDMA NICs")
    refused = [g.index for g in facts.gpus if g.cuda and g.cuda.rdma is False]
    if refused:
        todo = "use a data-centre or professional GPU on bare metal; until then UCX stages through the host"
        return RDMA.absent(f"the driver refuses it for {text.gpus(refused)}", todo)
    if not known and not module:
        return RDMA.cuda_silent()
    if not support:
        todo = "modprobe nvidia-peermem, or the open kernel module with Linux 5.12 or newer for dma-buf"
        return RDMA.off("neither nvidia-peermem nor dma-buf", todo)
    builds = [u for u in facts.libraries.ucx if u.path]
    if not any(u.verbs and u.cuda for u in builds):
        todo = "install a UCX configured --with-verbs --with-cuda and point UCX_ROOT at it, see UCX"
        return RDMA.off(f"{support}, but no UCX has both verbs and CUDA", todo)
    return RDMA.ok(support)


def rdma_vmm(facts: Facts) -> Finding:
    """Judge RDMA of memory from cuMemCreate."""
    if not facts.gpus:
        return VMM.no_gpu()
    answers = [g.cuda.rdma_vmm for g in facts.gpus if g.cuda and g.cuda.rdma_vmm is not None]
    if not answers:
        return VMM.cuda_silent()
    if all(answers):
        return VMM.ok("offered")
    return VMM.off("not offered", "communicate from cudaMalloc memory, or upgrade the driver")


def distance(facts: Facts) -> Finding:
    """Judge the nearest NIC of each GPU."""
    if not facts.gpus:
        return DISTANCE.no_gpu()
    rdma = _nics(facts)
    if not rdma:
        return DISTANCE.absent(NO_NIC, "see RDMA NICs")
    best: dict[str, list[int]] = {}
    for gpu in facts.gpus:
        nearest = min((n.gpu_distance.get(str(gpu.index), "unknown") for n in rdma), key=DISTANCES.index)
        best.setdefault(nearest, []).append(gpu.index)
    summary = "; ".join(f"{text.gpus(best[d])}: {DESCRIPTIONS[d]}" for d in DISTANCES if d in best)
    if "unknown" in best:
        return DISTANCE.unknown(summary, "nothing to do in a virtual machine; else look at lspci -t")
    if "across" in best:
        return DISTANCE.warning(
            summary, "move a NIC to that socket's slots, or keep network traffic on the other GPUs"
        )
    if set(best) <= {"switch"}:
        return DISTANCE.ok(summary)
    if facts.host.hypervisor:
        return DISTANCE.unknown(
            f"{summary}, but a virtual machine may show another tree", "ask for the host's topology"
        )
    todo = "use slots behind one PCIe switch if the board has one; peerway tune measures the rest"
    return DISTANCE.off(summary, todo)


def memlock(facts: Facts) -> Finding:
    """Judge the limit on locked memory."""
    limit = facts.host.memlock
    if limit is None:
        return MEMLOCK.unknown("the limit could not be read", "look at ulimit -l")
    if limit == -1:
        return MEMLOCK.ok("unlimited")
    summary = f"limit {text.size(limit)}"
    if not _nics(facts):
        return MEMLOCK.ok(f"{summary} (no RDMA NIC needs more)")
    raise_to = "ulimit -l unlimited" if facts.host.memlock_hard == -1 else "memlock unlimited in limits.conf"
    return MEMLOCK.warning(summary, f"{raise_to}; for Slurm also LimitMEMLOCK=infinity in slurmd.service")


def plugins(facts: Facts) -> Finding:
    """Judge the NICs that PEERWAY_NIC names."""
    entries, wrong = facts.network.plugins, facts.network.plugins_error
    if wrong:
        return PLUGINS.warning(wrong, "correct PEERWAY_NIC: [NAME=]PLUGIN[?OPTIONS], several separated by ;")
    if not entries:
        return PLUGINS.absent(
            "PEERWAY_NIC names none", "nothing to do, unless a NIC has a plugin of peerway/nic.h"
        )
    summary = "; ".join(map(_plugin, entries))
    if any(nic.untried for nic in entries):
        return PLUGINS.unknown(summary, "run peerway nic-check on the plugin, or raise --timeout")
    if any(nic.abi is None for nic in entries):
        return PLUGINS.warning(summary, "fix it or remove it from PEERWAY_NIC: no context starts with it")
    if not all(nic.opened for nic in entries):
        return PLUGINS.warning(summary, "fix it; until then its path stays off and others are used")
    tables = facts.libraries.routes
    measured = {name for table in tables for name in table.nics}
    lacking = [f"nic:{nic.name}" for nic in entries if f"nic:{nic.name}" not in measured]
    if tables and lacking:
        todo = f"no route table has {', '.join(lacking)}, so measured paths go first: run peerway tune"
        return PLUGINS.off(summary, todo)
    return PLUGINS.ok(summary)


def _plugin(nic: NicPlugin) -> str:
    name = f"nic:{nic.name}" if nic.name else nic.entry
    if not nic.opened:
        return f"{name} was not {'loaded' if nic.abi is None else 'opened'}: {nic.error}"
    kept = {"puts in order": nic.puts_in_order, "gets behind puts": nic.gets_behind_puts}
    guarantees = ", ".join(guarantee for guarantee, is_kept in kept.items() if is_kept)
    flying = f"{nic.in_flight} under way" if nic.in_flight else "any number under way"
    return (
        f"{name} (nic.h {nic.abi}, {guarantees or 'no guarantees'}, {' and '.join(nic.memory)} memory, "
        f"{text.size(nic.largest)} at a time, {flying}, {nic.endpoints} endpoints)"
    )


CHECKS = (nics, verbs, gpudirect_rdma, rdma_vmm, distance, memlock, plugins)
