"""Counters of InfiniBand ports and of mounted Lustre file systems."""

from __future__ import annotations

from peerway.jobs.agent import files
from peerway.jobs.agent.system import Figures
from peerway.jobs.batch import Samples
from peerway.jobs.batch_check import is_device_name

_LANE = 4  # port_xmit_data and port_rcv_data count words of 4 bytes
_PORT = {
    "port_rcv_data": ("nic_received_bytes_total", _LANE),
    "port_xmit_data": ("nic_sent_bytes_total", _LANE),
    "port_rcv_packets": ("nic_received_packets_total", 1),
    "port_xmit_packets": ("nic_sent_packets_total", 1),
    "port_xmit_wait": ("nic_sent_wait_total", 1),
}
_ERRORS = ("symbol_error", "port_rcv_errors", "port_xmit_discards", "link_downed")
_LLITE = ("proc/fs/lustre/llite", "sys/kernel/debug/lustre/llite", "sys/fs/lustre/llite")
_METADATA = frozenset(
    [
        "open",
        "close",
        "getattr",
        "setattr",
        "statfs",
        "create",
        "link",
        "unlink",
        "symlink",
        "mkdir",
        "rmdir",
        "mknod",
        "rename",
        "readdir",
        "getxattr",
        "setxattr",
        "listxattr",
        "removexattr",
        "truncate",
        "lookup",
    ]
)


class Fabric:
    """Reads below `root`, which is / but for tests."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def add_ports(self, nics: Samples) -> None:
        """Add each InfiniBand port to the network interfaces."""
        top = f"{self._root}/sys/class/infiniband"
        for device in files.names(top):
            for port in files.names(f"{top}/{device}/ports"):
                name = f"ib:{device}:{port}"
                found = _port(f"{top}/{device}/ports/{port}/counters")
                if found and is_device_name(name):
                    nics.add(name, found)

    def filesystems(self) -> Samples:
        """The counters of each Lustre mount, summed where a file system is mounted twice."""
        mounts: dict[str, Figures] = {}
        for folder in _LLITE:
            for mount in files.names(f"{self._root}/{folder}"):
                name = f"lustre:{mount.rpartition('-')[0] or mount}"  # NAME-ADDRESS
                stats = files.text(f"{self._root}/{folder}/{mount}/stats")
                if stats is not None and is_device_name(name):
                    total = mounts.setdefault(name, {})
                    for metric, value in _llite(stats).items():
                        total[metric] = total.get(metric, 0) + value
        found = Samples()
        for name, figures in mounts.items():
            found.add(name, figures)
        return found


def _port(counters: str) -> Figures:
    found: Figures = {}
    for name, (metric, unit) in _PORT.items():
        value = files.number(f"{counters}/{name}")
        if value is not None:
            found[metric] = value * unit
    errors = [value for name in _ERRORS if (value := files.number(f"{counters}/{name}")) is not None]
    if errors:
        found["nic_errors_total"] = sum(errors)
    return found


def _llite(stats: str) -> Figures:
    """Lines are "name COUNT samples [unit] MIN MAX SUM ..."; those without samples are left out by Lustre."""
    found: Figures = dict.fromkeys((
        "filesystem_read_bytes_total", "filesystem_written_bytes_total", "filesystem_data_operations_total",
        "filesystem_metadata_operations_total", "filesystem_opens_total",
    ), 0)  # fmt: skip
    for line in stats.splitlines():
        words = line.split()
        if len(words) < 4 or not words[1].isdigit():
            continue
        count = int(words[1])
        if words[0] in ("read_bytes", "write_bytes") and len(words) > 6:
            moved = "read" if words[0] == "read_bytes" else "written"
            found[f"filesystem_{moved}_bytes_total"] += int(words[6])
            found["filesystem_data_operations_total"] += count
        elif words[0] in _METADATA:
            found["filesystem_metadata_operations_total"] += count
            if words[0] == "open":
                found["filesystem_opens_total"] += count
    return found
