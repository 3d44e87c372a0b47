"""The host: CPU, container and virtual machine hints, shared memory, limits, environment."""

from __future__ import annotations

import os
import re
import resource
from typing import TYPE_CHECKING, Any

from .. import topology
from ..facts import Host, HugePages

if TYPE_CHECKING:
    from ..system import System

_VARIABLES = [
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "HSA_XNACK",
    "ROCR_VISIBLE_DEVICES",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUDA_DEVICE_ORDER",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MODULE_LOADING",
    "CUDA_MPS_PIPE_DIRECTORY",
    "NVIDIA_VISIBLE_DEVICES",
    "UCX_ROOT",
    "UCX_TLS",
    "UCX_NET_DEVICES",
    "UCX_MODULE_DIR",
    "UCX_IB_GPU_DIRECT_RDMA",
    "CUFILE_ENV_PATH_JSON",
]


def probe(system: System) -> Host:
    """Find out about the host."""
    info = system.read("/proc/cpuinfo")
    model = re.search(r"^(?:model name|Model)\s*:\s*(.+)$", info, re.MULTILINE)
    soft, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    facts = Host(
        name=system.read("/proc/sys/kernel/hostname"),
        cpu=model[1] if model else "",
        cores=len(re.findall(r"^processor\s*:", info, re.MULTILINE)),
        numa_nodes=topology.numa_nodes(system),
        hypervisor=_hypervisor(system, info),
        container=_container(system),
        ptrace_scope=system.number("/proc/sys/kernel/yama/ptrace_scope"),
        huge_pages=_huge_pages(system),
        transparent_huge_pages=_chosen(system.read("/sys/kernel/mm/transparent_hugepage/enabled")),
        memlock=_limit(soft),
        memlock_hard=_limit(hard),
        environment={k: v for k, v in system.environment.items() if k in _VARIABLES},
    )
    try:
        shm = os.statvfs(system.path("/dev/shm"))
        facts.shm_size, facts.shm_free = shm.f_blocks * shm.f_frsize, shm.f_bavail * shm.f_frsize
    except OSError:
        pass  # stays None: there is no /dev/shm
    return facts


def attach(facts: Host, answer: dict[str, Any]) -> None:
    """Add what children/attach.py found out."""
    if "error" not in answer:
        facts.cross_attach = answer.get("cross_attach")
        facts.cross_attach_opt_in = answer.get("cross_attach_opt_in")
        facts.cross_attach_error = str(answer.get("cross_attach_error", ""))
        facts.memfd = answer.get("memfd")


def _hypervisor(system: System, cpuinfo: str) -> str:
    flags = re.search(r"^flags\s*:(.+)$", cpuinfo, re.MULTILINE)
    if not flags or "hypervisor" not in flags[1].split():
        return ""
    vendor, product = (system.read(f"/sys/class/dmi/id/{n}") for n in ("sys_vendor", "product_name"))
    return " ".join(part for part in (vendor, product) if part) or "yes"


def _container(system: System) -> str:
    if system.exists("/.dockerenv"):
        return "docker"
    if system.exists("/run/.containerenv"):
        return "podman"
    env = system.environment
    for variable, name in (("APPTAINER_NAME", "apptainer"), ("SINGULARITY_NAME", "singularity")):
        if env.get(variable):
            return name
    if env.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    init = re.search(r"(?:^|\0)container=([^\0]+)", system.read("/proc/1/environ"))
    return env.get("container", "") or (init[1] if init else "")


def _huge_pages(system: System) -> list[HugePages]:
    pages = []
    folder = "/sys/kernel/mm/hugepages"
    for name in system.list(folder):
        size = re.fullmatch(r"hugepages-(\d+)kB", name)
        if size:
            total = system.number(f"{folder}/{name}/nr_hugepages") or 0
            free = system.number(f"{folder}/{name}/free_hugepages") or 0
            pages.append(HugePages(size=int(size[1]) * 1024, total=total, free=free))
    return sorted(pages, key=lambda p: p.size)


def _chosen(text: str) -> str:
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else ""


def _limit(value: int) -> int:
    return -1 if value == resource.RLIM_INFINITY else value
