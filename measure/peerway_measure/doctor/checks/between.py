"""Checks of what the GPUs of this node can do with each other's memory."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic
from ..topology import DESCRIPTIONS, DISTANCES

if TYPE_CHECKING:
    from ..facts import Facts, GpuPair

ACCESS = Topic(
    "between.peer_access",
    Group.BETWEEN,
    "Peer access",
    "With it GPUs read and write each other's memory; without it bytes go through host memory.",
)
NVLINK = Topic(
    "between.nvlink", Group.BETWEEN, "NVLink", "NVLink is several times faster than PCIe between GPUs."
)
FABRIC = Topic(
    "between.fabric",
    Group.BETWEEN,
    "NVSwitch fabric",
    "On NVSwitch machines NVLink works only once the fabric is set up.",
)
ATOMICS = Topic(
    "between.atomics",
    Group.BETWEEN,
    "Peer atomics",
    "Signals that kernels raise in another GPU's memory use atomics across the link.",
)
HANDLES = Topic(
    "between.handles",
    Group.BETWEEN,
    "Sharing handles",
    "They let another process, or another node of an NVLink domain, map GPU memory.",
)

ONE_GPU = "one GPU"

_REASONS = {
    "chipset_not_supported": "the chipset does not forward peer traffic",
    "gpu_not_supported": "this GPU model has no peer access",
    "topology_not_supported": "the bridges or CPUs between them do not forward peer traffic",
    "disabled_by_regkey": "a driver setting disables it",
    "not_supported": "the driver does not support it here",
}
_TODO = {
    "disabled_by_regkey": "remove NVreg_RegistryDwords settings on peer access from the driver's options",
    "topology_not_supported": "keep ranks that talk most on GPUs with access; the rest is staged",
    "gpu_not_supported": "nothing to do: the bytes go through pinned host memory (path staged)",
}


def peer_access(facts: Facts) -> Finding:
    """Judge whether every GPU may use every other one's memory."""
    if len(facts.gpus) < 2:
        return _fewer_than_two(facts, ACCESS)
    known = [p for p in facts.pairs if p.access is not None]
    if not known:
        return ACCESS.unknown("neither CUDA nor NVML says", "fix CUDA first, see GPUs")
    refused = [p for p in known if not p.access]
    if not refused:
        kinds = Counter(_link_text(p) for p in known if p.first < p.second)
        several = ", ".join(f"{n} over {kind}" for kind, n in kinds.items())
        detail = several if len(kinds) > 1 else "over " + next(iter(kinds))
        return ACCESS.ok(f"every pair ({detail})")
    total = f"{len(refused)} of {len(known)} directions refused" if len(refused) < len(known) else "no pair"
    return ACCESS.off(f"{total}: {_reason(facts, refused)}", _remedy(facts, refused))


def _link_text(pair: GpuPair) -> str:
    return text.count(pair.nvlinks, "NVLink") if pair.nvlinks else f"PCIe, {DESCRIPTIONS[pair.distance]}"


def _reason(facts: Facts, refused: list[GpuPair]) -> str:
    if any(g.mig for g in facts.gpus):
        return "MIG is on"
    statuses = Counter(s for p in refused for s in (p.read_status, p.write_status) if s in _REASONS)
    if statuses:
        return _REASONS[statuses.most_common(1)[0][0]]
    far = max((p.distance for p in refused), key=DISTANCES.index)
    return f"CUDA refuses ({DESCRIPTIONS[far]})"


def _remedy(facts: Facts, refused: list[GpuPair]) -> str:
    if any(g.mig for g in facts.gpus):
        return "nvidia-smi -mig 0 as root"
    if any(g.nvlinks for g in facts.gpus) or facts.driver.nvswitches:
        return "set up the NVLink fabric, see NVSwitch fabric"
    for status in (s for p in refused for s in (p.read_status, p.write_status)):
        if status in _TODO:
            return _TODO[status]
    if _translated(facts):
        return "boot with iommu=pt, see IOMMU; else bytes go through pinned host memory (path staged)"
    return "nothing to do on this hardware: the bytes go through pinned host memory (path staged)"


def _translated(facts: Facts) -> bool:
    return any(g.iommu_type.startswith("DMA") for g in facts.gpus)


def nvlink(facts: Facts) -> Finding:
    """Judge the active NVLinks."""
    if len(facts.gpus) < 2:
        return _fewer_than_two(facts, NVLINK)
    links = {len(g.nvlinks) for g in facts.gpus}
    if links == {0}:
        todo = "nothing to do, unless bridges or a fabric should be here: then look at nvidia-smi nvlink -s"
        return NVLINK.absent("no active link", todo)
    generations = sorted({link.version for g in facts.gpus for link in g.nvlinks if link.version is not None})
    suffix = f", NVLink version {text.ranges(generations)}" if generations else ""
    if len(links) > 1:
        most = max(links)
        fewer = [g for g in facts.gpus if len(g.nvlinks) < most]
        return NVLINK.warning(
            f"{text.gpus(g.index for g in fewer)} with fewer links than the {most} of the others{suffix}",
            "nvidia-smi nvlink -s and -e show which links are down; on irregular bridges this is by design",
        )
    bare = [p for p in facts.pairs if not p.nvlinks and p.first < p.second]
    if bare:
        summary = f"{links.pop()} links a GPU{suffix}; {text.count(len(bare), 'pair')} without a direct link"
        return NVLINK.ok(summary)
    return NVLINK.ok(f"{links.pop()} links a GPU, every pair joined{suffix}")


def fabric(facts: Facts) -> Finding:
    """Judge the NVSwitch fabric."""
    if not facts.gpus:
        return FABRIC.no_gpu()
    states = {g.fabric for g in facts.gpus if g.fabric not in ("", "not_supported")}
    failed = next((g for g in facts.gpus if g.fabric_error), None)
    if failed:
        return FABRIC.warning(
            f"GPU {failed.index} could not join: {failed.fabric_error}",
            "read /var/log/fabricmanager.log; restart nvidia-fabricmanager of the driver's version",
        )
    if states - {"completed"} or "NOT_READY" in facts.driver.cuda_error:
        return FABRIC.warning(
            f"not ready ({', '.join(sorted(states)) or 'CUDA waits for it'})",
            "systemctl start nvidia-fabricmanager (the version must be the driver's), then wait a minute",
        )
    if states == {"completed"}:
        return FABRIC.ok("set up")
    if facts.driver.nvswitches:
        running = facts.driver.fabric_manager
        switches = text.count(facts.driver.nvswitches, "NVSwitch").replace("Switchs", "Switches")
        if running is False:
            return FABRIC.warning(f"{switches}, no fabric manager", "systemctl start nvidia-fabricmanager")
        return FABRIC.ok(switches + (", fabric manager running" if running else ""))
    return FABRIC.absent("no NVSwitch", "nothing to do: only NVSwitch machines need it")


def atomics(facts: Facts) -> Finding:
    """Judge atomics between GPUs."""
    if len(facts.gpus) < 2:
        return _fewer_than_two(facts, ATOMICS)
    known = [p for p in facts.pairs if p.atomics is not None]
    if not known:
        return ATOMICS.cuda_silent()
    without = [p for p in known if not p.atomics]
    if not without:
        return ATOMICS.ok("every pair")
    todo = "nothing to do: PCIe has no full atomics; signals are then raised by stores and stream operations"
    return ATOMICS.absent(f"{len(without)} of {len(known)} directions have none", todo)


def handles(facts: Facts) -> Finding:
    """Judge the handles by which GPU memory is shared."""
    known = [g.cuda for g in facts.gpus if g.cuda]
    if not facts.gpus:
        return HANDLES.no_gpu()
    if not known:
        return HANDLES.cuda_silent()
    kinds = {
        "POSIX file descriptor": all(c.posix_fd for c in known),
        "fabric": all(c.fabric for c in known),
        "memory pools": all((c.pool_handles or 0) & 1 for c in known),
    }
    have = ", ".join(name for name, supported in kinds.items() if supported) or "none"
    lack = ", ".join(name for name, supported in kinds.items() if not supported)
    summary = f"{have}; not: {lack}" if lack else have
    if not kinds["POSIX file descriptor"]:
        todo = "share memory of cudaMalloc only (CUDA IPC); a newer driver or bare metal has the rest"
        return HANDLES.off(summary, todo)
    return HANDLES.ok(summary)


def _fewer_than_two(facts: Facts, topic: Topic) -> Finding:
    return topic.absent(ONE_GPU, "nothing to do: it takes two GPUs") if facts.gpus else topic.no_gpu()


CHECKS = (peer_access, nvlink, fabric, atomics, handles)
