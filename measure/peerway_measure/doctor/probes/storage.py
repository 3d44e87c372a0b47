"""GPUDirect Storage: nvidia-fs, cuFile's settings, NVMe drives and file systems."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from .. import topology
from ..facts import Drive, Gpu, Storage

if TYPE_CHECKING:
    from ..system import System

# File systems that GPUDirect Storage can serve, some with their vendor's help.
_SERVED = {"ext4", "xfs", "lustre", "gpfs", "beegfs", "nfs", "nfs4", "wekafs", "scatefs", "scfs"}


def probe(system: System, gpus: list[Gpu]) -> Storage:
    """Find drives, settings and file systems."""
    facts = Storage(
        nvidia_fs_version=_nvidia_fs(system),
        config_path=system.environment.get("CUFILE_ENV_PATH_JSON", "/etc/cufile.json"),
    )
    settings = _settings(system.read(facts.config_path))
    if settings:
        facts.compat_mode = _flag(settings, "allow_compat_mode")
        facts.pci_p2pdma = _flag(settings, "use_pci_p2pdma")
    else:
        facts.config_path = ""
    for name in system.list("/sys/class/nvme"):
        address = topology.device_address(system, f"/sys/class/nvme/{name}")
        node, bridges = topology.numa_node(system, address), topology.place(system, address)
        far = {str(g.index): topology.distance(g.pci_bridges, bridges, g.numa_node, node) for g in gpus}
        facts.drives.append(Drive(name=name, bus_id=address, numa_node=node, gpu_distance=far))
    for line in system.read("/proc/self/mounts").splitlines():
        words = line.split()
        if len(words) > 2 and words[2] in _SERVED and system.path(words[1]).is_dir():
            facts.file_systems[words[1]] = words[2]
    return facts


def _nvidia_fs(system: System) -> str:
    text = system.read("/proc/driver/nvidia-fs/version")
    match = re.search(r"version\s*:\s*(\S+)", text)
    return match[1] if match else text or system.read("/sys/module/nvidia_fs/version")


def _settings(text: str) -> dict[str, object]:
    """cufile.json's "properties": JSON with // comments."""
    try:
        data = json.loads(re.sub(r"^\s*//.*$|(?<=[,{\[\s])//.*$", "", text, flags=re.MULTILINE))
        properties = data["properties"]
    except (ValueError, KeyError, TypeError):
        return {}
    return properties if isinstance(properties, dict) else {}


def _flag(settings: dict[str, object], name: str) -> bool | None:
    value = settings.get(name)
    return value if isinstance(value, bool) else None
