"""Reads the counters of InfiniBand ports and of mounted Lustre file systems.

Values that are scaled or summed here are checked before that, because a sum hides that one term was wrong.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from peerway_jobs.agent import files
from peerway_jobs.agent.system import Figures
from peerway_jobs.batch import Samples
from peerway_jobs.batch_check import is_device_name
from peerway_jobs.plausible import register, summed

_LANE = 4  # port_xmit_data and port_rcv_data count units of 4 bytes
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
    """Reads below `root`, which is / except in tests. `reasons` says why a device lacks a metric."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")
        self.reasons: dict[tuple[str, str], str] = {}

    def add_ports(self, nics: Samples) -> None:
        """Add each InfiniBand port to `nics` as one more network interface."""
        top = f"{self._root}/sys/class/infiniband"
        for device in files.names(top):
            for port in files.names(f"{top}/{device}/ports"):
                name = f"ib:{device}:{port}"
                figures = self._port(name, f"{top}/{device}/ports/{port}/counters")
                if figures and is_device_name(name):
                    nics.add(name, figures)

    def filesystems(self) -> Samples:
        """The counters of each Lustre file system, summed over its mounts."""
        mounts: dict[str, dict[str, list[object]]] = {}
        for folder in _LLITE:
            for mount in files.names(f"{self._root}/{folder}"):
                name = f"lustre:{mount.rpartition('-')[0] or mount}"  # NAME-ADDRESS
                stats = files.text(f"{self._root}/{folder}/{mount}/stats")
                if stats is not None and is_device_name(name):
                    parts = mounts.setdefault(name, {})
                    for metric, values in _llite(stats).items():
                        parts.setdefault(metric, []).extend(values)
        samples = Samples()
        for name, parts in mounts.items():
            samples.add(name, self._sums(name, parts))
        return samples

    def _port(self, name: str, counters: str) -> Figures:
        figures: Figures = {}
        for file, (metric, unit) in _PORT.items():
            value = files.number(f"{counters}/{file}")
            if value is None:
                continue
            figure = register(metric, value, unit)
            if figure.value is not None:
                figures[metric] = figure.value
            else:
                self.reasons[name, metric] = figure.reason
        errors = [value for file in _ERRORS if (value := files.number(f"{counters}/{file}")) is not None]
        return figures | (self._sums(name, {"nic_errors_total": errors}) if errors else {})

    def _sums(self, name: str, parts: Mapping[str, Sequence[object]]) -> Figures:
        sums: Figures = {}
        for metric, values in parts.items():
            figure = summed(metric, values)
            if figure.value is not None:
                sums[metric] = figure.value
            else:
                self.reasons[name, metric] = figure.reason
        return sums


def _llite(stats: str) -> dict[str, list[object]]:
    """The terms of each metric's sum, from the statistics of one mount.

    Lines are "name COUNT samples [unit] MIN MAX SUM ..."; Lustre omits operations that never happened.
    """
    parts: dict[str, list[object]] = {name: [0] for name in (
        "filesystem_read_bytes_total", "filesystem_written_bytes_total", "filesystem_data_operations_total",
        "filesystem_metadata_operations_total", "filesystem_opens_total",
    )}  # fmt: skip
    for line in stats.splitlines():
        words = line.split()
        if len(words) < 4 or words[2] != "samples":
            continue
        count = _number(words[1])
        if words[0] in ("read_bytes", "write_bytes") and len(words) > 6:
            moved = "read" if words[0] == "read_bytes" else "written"
            parts[f"filesystem_{moved}_bytes_total"].append(_number(words[6]))
            parts["filesystem_data_operations_total"].append(count)
        elif words[0] in _METADATA:
            parts["filesystem_metadata_operations_total"].append(count)
            if words[0] == "open":
                parts["filesystem_opens_total"].append(count)
    return parts


def _number(word: str) -> int | str:
    """The word as an integer; a word that is no integer is returned unchanged, and `summed` rejects it."""
    try:
        return int(word)
    except ValueError:
        return word
