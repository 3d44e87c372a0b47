"""Reads figures of the node, its cores, disks and network interfaces from /proc and /sys."""

from __future__ import annotations

import os
import re

from peerway_jobs.agent import files
from peerway_jobs.batch import Samples
from peerway_jobs.batch_check import is_device_name

TICK = os.sysconf("SC_CLK_TCK")
SECTOR = 512
# Interfaces that are hardware or stand for it. Containers' interfaces come and go by the thousand.
_NIC = re.compile(r"(?:eth|en|ib|bond|hsn|wwan|lan)[A-Za-z0-9._-]*", re.ASCII)

Figures = dict[str, float | int]


class System:
    """Reads below `root`, which is / except in tests."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")
        self._meter = ""  # the folder of the node's power meter, once it was found

    def sample(self) -> dict[str, Samples]:
        """All figures of this moment, except those of steps and GPUs."""
        node, cores = self._cpu()
        node |= self._memory() | self._pressure() | self._power()
        samples = {"node": Samples(), "core": cores, "disk": self._disks(), "nic": self._nics()}
        samples["node"].add("node", node)
        return samples

    def cpus(self) -> int:
        """The number of logical CPUs."""
        return len(self._cpu()[1].devices)

    def memory_bytes(self) -> int:
        """The node's memory in bytes; 0 if unknown."""
        return int(self._memory().get("node_memory_total_bytes", 0))

    def boot(self) -> str:
        """The kernel's boot id."""
        return (files.text(f"{self._root}/proc/sys/kernel/random/boot_id") or "").strip()

    def kernel(self) -> str:
        """The kernel's release."""
        return (files.text(f"{self._root}/proc/sys/kernel/osrelease") or "").strip()

    def _cpu(self) -> tuple[Figures, Samples]:
        node: Figures = {}
        numbers: list[str] = []
        busy: list[float | int | None] = []
        iowait: list[float | int | None] = []
        for line in (files.text(f"{self._root}/proc/stat") or "").splitlines():
            words = line.split()
            if words[0] == "cpu":
                node["node_cpu_busy_seconds_total"], node["node_cpu_iowait_seconds_total"] = _cpu_times(words)
            elif words[0].startswith("cpu"):
                numbers.append(words[0][3:])
                used, waited = _cpu_times(words)
                busy.append(used)
                iowait.append(waited)
            elif words[0] == "procs_running":
                node["node_running_threads"] = int(words[1])
            elif words[0] == "procs_blocked":
                node["node_blocked_threads"] = int(words[1])
        return node, Samples(numbers, {"core_busy_seconds_total": busy, "core_iowait_seconds_total": iowait})

    def _memory(self) -> Figures:
        figures: Figures = {}
        kib: dict[str, int] = {}
        for line in (files.text(f"{self._root}/proc/meminfo") or "").splitlines():
            name, _, value = line.partition(":")
            kib[name] = int(value.split()[0])
        if "MemTotal" in kib:
            figures["node_memory_total_bytes"] = kib["MemTotal"] << 10
            if (available := kib.get("MemAvailable", kib.get("MemFree"))) is not None:
                figures["node_memory_available_bytes"] = available << 10
            if "SwapTotal" in kib and "SwapFree" in kib:
                figures["node_swap_used_bytes"] = max(0, kib["SwapTotal"] - kib["SwapFree"]) << 10
        kills = files.keyed(f"{self._root}/proc/vmstat").get("oom_kill")
        if kills is not None:
            figures["node_oom_kills_total"] = kills
        return figures

    def _pressure(self) -> Figures:
        figures: Figures = {}
        for resource in ("cpu", "io", "memory"):
            waited = pressure_seconds(f"{self._root}/proc/pressure/{resource}")
            if waited is not None:
                figures[f"node_{resource}_pressure_seconds_total"] = waited
        return figures

    def _power(self) -> Figures:
        """The power of the whole node: of a Cray EX by its own counter, of others by ACPI's power meter."""
        watts, _, unit = (files.text(f"{self._root}/sys/cray/pm_counters/power", 64) or "").partition(" ")
        if watts.isdigit() and unit.startswith("W"):
            return {"node_power_watts": int(watts)}
        self._meter = self._meter or self._power_meter()
        for name in ("power1_average", "power1_input") if self._meter else ():
            if (microwatts := files.number(f"{self._meter}/{name}")) is not None:
                return {"node_power_watts": microwatts / 1e6}
        return {}

    def _power_meter(self) -> str:
        """The folder of the only power meter; of several, each measures a part that is not known."""
        folders = [
            f"{self._root}/sys/class/hwmon/{name}" for name in files.names(f"{self._root}/sys/class/hwmon")
        ]
        meters = [each for each in folders if (files.text(f"{each}/name", 64) or "").strip() == "power_meter"]
        return meters[0] if len(meters) == 1 else ""

    def _disks(self) -> Samples:
        disks = Samples()
        for line in (files.text(f"{self._root}/proc/diskstats") or "").splitlines():
            words = line.split()
            name = words[2].replace("/", "!")
            if not is_device_name(name) or not os.path.exists(f"{self._root}/sys/block/{name}/device"):  # noqa: PTH110
                continue
            disks.add(name, {
                "disk_read_bytes_total": int(words[5]) * SECTOR,
                "disk_written_bytes_total": int(words[9]) * SECTOR,
                "disk_busy_seconds_total": int(words[12]) / 1000,
            })  # fmt: skip
        return disks

    def _nics(self) -> Samples:
        nics = Samples()
        for line in (files.text(f"{self._root}/proc/net/dev") or "").splitlines()[2:]:
            name, _, rest = line.partition(":")
            name = name.strip()
            if not _NIC.fullmatch(name):
                continue
            words = [int(word) for word in rest.split()]
            nics.add(f"net:{name}", {
                "nic_received_bytes_total": words[0], "nic_received_packets_total": words[1],
                "nic_sent_bytes_total": words[8], "nic_sent_packets_total": words[9],
                "nic_errors_total": words[2] + words[3] + words[10] + words[11],
            })  # fmt: skip
        return nics


def pressure_seconds(path: str) -> float | None:
    """The time (s) in which some task waited, from a pressure file of the kernel; None if there is no
    file.
    """
    first = (files.text(path, 512) or "").partition("\n")[0]
    _, word, total = first.partition("total=")
    return int(total) / 1e6 if word and total.isdigit() else None


def _cpu_times(words: list[str]) -> tuple[float, float]:
    """Busy and I/O wait time in seconds. User time includes guests; steal time counts as neither."""
    user, nice, system, _, iowait, irq, softirq = (int(word) for word in words[1:8])
    return (user + nice + system + irq + softirq) / TICK, iowait / TICK
