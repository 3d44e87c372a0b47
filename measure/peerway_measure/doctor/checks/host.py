"""Checks of the host: virtualisation, IOMMU, access control, shared memory and limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import text
from ..finding import Finding, Group, Topic

if TYPE_CHECKING:
    from ..facts import Facts

VIRTUAL = Topic(
    "host.virtual",
    Group.HOST,
    "Virtualisation",
    "Virtual machines and containers can hide topology, drivers, devices and other processes.",
)
IOMMU = Topic(
    "host.iommu",
    Group.HOST,
    "IOMMU",
    "A translating IOMMU sends peer traffic through the CPU: slower, and on some boards it fails.",
)
ACS = Topic(
    "host.acs",
    Group.HOST,
    "PCIe access control",
    "ACS redirect sends traffic between devices of one PCIe switch up to the CPU and back.",
)
ATTACH = Topic(
    "host.cross_attach",
    Group.HOST,
    "Cross-memory attach",
    "Ranks copy straight between their private memories; else only memory that Peerway allocated is shared.",
)
MEMFD = Topic("host.memfd", Group.HOST, "memfd", "Memory that ranks share is made with memfd_create.")
SHM = Topic("host.shm", Group.HOST, "/dev/shm", "MPI, UCX and NCCL keep their shared memory there.")
HUGE = Topic(
    "host.huge_pages",
    Group.HOST,
    "Huge pages",
    "Copies of large host buffers run faster with fewer, larger pages.",
)
MEBIBYTE = 1 << 20


def virtual(facts: Facts) -> Finding:
    """Report virtual machines and containers."""
    h = facts.host
    inside = []
    if h.hypervisor:
        inside.append("virtual machine" + (f" ({h.hypervisor})" if h.hypervisor != "yes" else ""))
    if h.container:
        inside.append("container" + (f" ({h.container})" if h.container != "yes" else ""))
    return VIRTUAL.ok(", ".join(inside) or "none: bare metal")


def iommu(facts: Facts) -> Finding:
    """Judge whether the IOMMU translates for GPUs."""
    translated = [g.index for g in facts.gpus if g.iommu_type.startswith("DMA")]
    arguments = " ".join(a for a in facts.kernel.arguments if "iommu" in a)
    shown = f" ({arguments})" if arguments else ""
    if translated:
        todo = "boot with iommu=pt; switch the IOMMU off only where nobody passes devices to virtual machines"
        return IOMMU.warning(f"translates for {text.gpus(translated)}{shown}", todo)
    if not facts.kernel.iommu_groups:
        hidden = " or hidden by the virtual machine" if facts.host.hypervisor else ""
        return IOMMU.ok(f"off{hidden}{shown}")
    if facts.gpus and not all(g.iommu_type for g in facts.gpus):
        return IOMMU.unknown(
            f"{facts.kernel.iommu_groups} groups{shown}", "see /sys/kernel/iommu_groups/*/type"
        )
    return IOMMU.ok(
        f"on, passes {'GPUs' if facts.gpus else 'devices'} through{shown}" if facts.gpus else f"on{shown}"
    )


def acs(facts: Facts) -> Finding:
    """Judge the access control of PCIe switches."""
    k = facts.kernel
    bridges = [b for g in facts.gpus for b in g.pci_bridges if not b.startswith("pci")]
    if not facts.gpus:
        return ACS.no_gpu()
    if k.acs_redirect:
        shown = ", ".join(k.acs_redirect[:3]) + (", ..." if len(k.acs_redirect) > 3 else "")
        return ACS.warning(
            f"redirects below {text.count(len(k.acs_redirect), 'switch port')} ({shown})",
            "switch ACS off in the firmware, or as root: setpci -s PORT ECAP_ACS+0x6.w=0000 for each port",
        )
    if k.acs_unreadable:
        return ACS.unknown("only root may read it", "sudo peerway doctor, or sudo lspci -vvv | grep ACSCtl")
    return ACS.ok("no redirect" if bridges else "no PCIe switch to be seen")


def cross_attach(facts: Facts) -> Finding:
    """Judge reads of another process's memory."""
    h = facts.host
    if h.cross_attach:
        return ATTACH.ok("process_vm_readv works")
    if h.cross_attach is None:
        return ATTACH.unknown("could not be tried", "look at the problems listed below")
    scope = f", Yama ptrace_scope {h.ptrace_scope}" if h.ptrace_scope is not None else ""
    summary = f"{h.cross_attach_error or 'refused'}{scope}"
    if h.cross_attach_opt_in:
        todo = "nothing to do for programs that opt in with PR_SET_PTRACER; for others, "
        todo += "sysctl kernel.yama.ptrace_scope=0"
        return ATTACH.off(f"{summary}; works once the other process allows it", todo)
    if h.container:
        return ATTACH.off(
            summary, "start the container with --cap-add SYS_PTRACE, or a seccomp profile that allows it"
        )
    return ATTACH.off(summary, "sysctl kernel.yama.ptrace_scope=0 as root")


def memfd(facts: Facts) -> Finding:
    """Judge memfd_create."""
    if facts.host.memfd is None:
        return MEMFD.unknown("could not be tried", "look at the problems listed below")
    if facts.host.memfd:
        return MEMFD.ok("works")
    return MEMFD.warning("refused", "allow memfd_create in the container's seccomp profile")


def shm(facts: Facts) -> Finding:
    """Judge the free space in /dev/shm."""
    total, free = facts.host.shm_size, facts.host.shm_free
    if total is None or free is None:
        return SHM.warning("missing", "mount a tmpfs on /dev/shm")
    summary = f"{text.size(free)} free of {text.size(total)}"
    if total <= 64 * MEBIBYTE:
        return SHM.warning(summary, "start the container with --shm-size=8g or --ipc=host")
    if free < 64 * MEBIBYTE:
        return SHM.warning(summary, "remove what dead programs left in /dev/shm")
    return SHM.ok(summary)


def huge_pages(facts: Facts) -> Finding:
    """Judge huge pages."""
    h = facts.host
    reserved = [p for p in h.huge_pages if p.total]
    thp = h.transparent_huge_pages
    if reserved:
        pools = ", ".join(f"{p.free} of {p.total} × {text.size(p.size)} free" for p in reserved)
        return HUGE.ok(f"{pools}; transparent: {thp or 'no'}")
    if thp in ("always", "madvise"):
        return HUGE.ok(f"transparent: {thp}; none reserved")
    todo = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled as root"
    return HUGE.off(f"transparent: {thp or 'not offered'}; none reserved", todo)


CHECKS = (virtual, iommu, acs, cross_attach, memfd, shm, huge_pages)
