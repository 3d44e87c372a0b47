"""Reads the node's AMD GPUs from the files of the kernel's driver amdgpu, by the GPU's unique id.

A GPU is called GPU-<unique id>, as ROCR_VISIBLE_DEVICES calls it; a GPU without one (older than Vega) is
called by its PCI address. Each partition of a GPU (DPX, TPX, QPX, CPX) is a device of its own, called as the
GPU with the partition's number from 0 on: GPU-<unique id>.3.

The files need neither ROCm nor root. A file that is missing, or that the driver does not support for this
GPU, is a figure that is absent; `reasons` says why for all other errors. Figures are returned as the driver
reported them; plausible.py checks them.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass, replace

from peerway_common.printable import shortened
from peerway_jobs.agent import files
from peerway_jobs.agent.amd_compute import Kfd, KfdGpu, Use
from peerway_jobs.agent.amd_metrics import Table, UnknownTable, decode
from peerway_jobs.agent.amd_throttling import Throttling
from peerway_jobs.agent.system import Figures
from peerway_jobs.batch import Gpu, Samples
from peerway_jobs.batch_check import MOST_MINOR
from peerway_jobs.plausible import checked, sift

_VENDOR = "0x1002"
_CARD = re.compile(r"card\d{1,4}", re.ASCII)
_RENDER = re.compile(r"renderD(\d{1,7})", re.ASCII)
_PCI = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", re.ASCII)
_UNIQUE_ID = re.compile(r"(?:0x)?([0-9a-f]{1,16})", re.ASCII)
# The driver has the file for every GPU, and answers so for those that do not support it.
_UNSUPPORTED = (errno.ENOENT, errno.EOPNOTSUPP, errno.EINVAL, errno.ENODATA, errno.ENODEV)
_DEVICE_FILES = {  # below the GPU's folder: the figure, and its unit
    "gpu_busy_percent": ("gpu_utilization_ratio", 0.01),
    "mem_busy_percent": ("gpu_memory_utilization_ratio", 0.01),
    "mem_info_vram_used": ("gpu_memory_used_bytes", 1),
    "mem_info_vram_total": ("gpu_memory_total_bytes", 1),
}
_SENSOR_FILES = {  # in the GPU's folder of hwmon
    "power1_average": ("gpu_power_watts", 1e-6),
    "power1_input": ("gpu_power_watts", 1e-6),  # the power of this moment: of GPUs that have no average
    "power1_cap": ("gpu_power_limit_watts", 1e-6),
    "freq1_input": ("gpu_sm_clock_hertz", 1),
}
_TEMPERATURES = ("edge", "junction")  # labels, best first: MI300 has no edge


@dataclass(slots=True)
class AmdDevice:
    """A GPU or one of its partitions."""

    facts: Gpu
    folder: str  # of the GPU's files; partitions have none of their own that tell more
    address: str  # of the GPU on PCI
    kfd: list[KfdGpu]  # in the compute driver: the GPU or all its partitions; of a partition, this alone
    place: int | None = None  # of a partition in its GPU
    partitions: int = 1  # of its GPU


class AmdGpus:
    """All GPUs that amdgpu shows below `root`, which is / except in tests."""

    def __init__(self, root: str = "/") -> None:
        self.why_none = ""
        self.devices: list[AmdDevice] = []  # partitions follow their GPU
        self.reasons: dict[tuple[str, str], str] = {}  # (GPU, figure or file) -> why it is absent
        self._drm = f"{root.rstrip('/')}/sys/class/drm"
        self._kfd = Kfd(root)
        self._throttling = Throttling()
        self.refresh()

    def refresh(self) -> None:
        """List the GPUs again. A GPU that is lost while others stay remains a device, without figures."""
        gpus = {device.address: device for device in self._present()}
        if gpus:
            lost = [each for each in self.devices if each.place is None and each.address not in gpus]
            gpus |= {device.address: device for device in lost}
        self.devices = []
        names: set[str] = set()
        for index, address in enumerate(sorted(gpus)):
            gpu = gpus[address]
            gpu.facts.index = index
            if gpu.facts.uuid in names:  # the server would refuse two devices with one name
                gpu.facts.uuid = f"PCI-{address}"
            names.add(gpu.facts.uuid)
            self.devices += [gpu, *_partitions(gpu)]
        self.why_none = "" if self.devices else "amdgpu shows none"

    def facts(self) -> list[Gpu]:
        """The properties of all GPUs and partitions."""
        return [device.facts for device in self.devices]

    def sample(self) -> tuple[Samples, dict[str, list[int]]]:
        """The figures of all GPUs and partitions, and the processes on each by its name."""
        samples = Samples()
        processes: dict[str, list[int]] = {}
        uses = self._kfd.uses() if self.devices else {}
        table, present = Table(), False  # of the GPU to which the next partitions belong
        for device in self.devices:
            if device.place is None:
                figures, table = self._figures(device)
                present = bool(figures)
            else:
                figures = _partition_figures(device, table, uses) if present else {}
            # A GPU with partitions lists no processes itself, as an NVIDIA GPU in MIG mode.
            if figures and len(device.kfd) == 1 and device.kfd[0].id in uses:
                processes[device.facts.uuid] = sorted(uses[device.kfd[0].id].pids)
                figures["gpu_processes"] = len(processes[device.facts.uuid])
            samples.add(device.facts.uuid, figures)
        for uuid, metric, why in sift(samples.devices, samples.values):
            self.reasons[uuid, metric] = why
        return samples, processes

    def _present(self) -> list[AmdDevice]:
        """The GPUs without their partitions."""
        folders: dict[str, str] = {}
        for card in files.names(self._drm):
            folder = f"{self._drm}/{card}/device"
            # Partitions have cards, too, which are not on PCI and have no vendor.
            if _CARD.fullmatch(card) and (files.text(f"{folder}/vendor", 16) or "").strip() == _VENDOR:
                address = _pci_address(files.text(f"{folder}/uevent", 4096) or "")
                if address is None:
                    self.reasons[card, "uevent"] = "an AMD GPU without a PCI address is not measured"
                    continue
                folders[address] = folder
        kfd = self._kfd.find_gpus(folders)
        return [
            AmdDevice(
                self._facts(folder, address, kfd.get(address, [])), folder, address, kfd.get(address, [])
            )
            for address, folder in folders.items()
        ]

    def _facts(self, folder: str, address: str, kfd: list[KfdGpu]) -> Gpu:
        match = _UNIQUE_ID.fullmatch((files.text(f"{folder}/unique_id", 64) or "").strip().lower())
        known = match is not None and int(match[1], 16) != 0
        name = (files.text(f"{folder}/product_name", 256) or "").strip()
        device_id = (files.text(f"{folder}/device", 16) or "").strip()
        return Gpu(
            f"GPU-{match[1]}" if match is not None and known else f"PCI-{address}",
            shortened(name or f"AMD GPU {device_id}".strip(), 128),
            _memory(files.number(f"{folder}/mem_info_vram_total")),
            # The render node in the folder of a GPU with partitions is that of the first.
            minor=_render_minor(folder) if len(kfd) < 2 else None,
        )

    def _figures(self, device: AmdDevice) -> tuple[Figures, Table]:
        """The figures of a whole GPU, and its table of metrics."""
        figures: Figures = {}
        for name, (metric, unit) in _DEVICE_FILES.items():
            self._read(device, name, metric, unit, figures)
        sensors = next((name for name in files.names(f"{device.folder}/hwmon")), "")
        if sensors:
            for name, (metric, unit) in _SENSOR_FILES.items():
                if metric not in figures:
                    self._read(device, f"hwmon/{sensors}/{name}", metric, unit, figures)
            if (place := _thermometer(f"{device.folder}/hwmon/{sensors}")) is not None:
                name = f"hwmon/{sensors}/temp{place}_input"
                self._read(device, name, "gpu_temperature_celsius", 1e-3, figures)
        try:
            table = decode(files.read(f"{device.folder}/gpu_metrics", 1 << 16))
        except OSError as error:
            self._note(device, "gpu_metrics", error)
            table = Table()
        except UnknownTable as error:
            self.reasons[device.facts.uuid, "gpu_metrics"] = f"gpu_metrics: {error}"
            table = Table()
        return figures | self._throttling.figures(device.facts.uuid, table), table

    def _read(self, device: AmdDevice, name: str, metric: str, unit: float, figures: Figures) -> None:
        """Add the figure in a file of the GPU, unless the driver has none."""
        try:
            content = files.read(f"{device.folder}/{name}", 64).decode(errors="replace").strip()
        except OSError as error:
            self._note(device, name, error)
            return
        try:
            value = int(content)
            # Of the two halves of an MI250X the first reports the power and limit of both, the other 0.
            if value or "power" not in metric:
                figures[metric] = value if unit == 1 else value * unit
        except ValueError:
            why = f"{name} holds {shortened(repr(content), 32)}, which is not a number"
            self.reasons[device.facts.uuid, name] = why

    def _note(self, device: AmdDevice, name: str, error: OSError) -> None:
        if error.errno in files.NO_FILES:
            raise error  # otherwise the GPUs would seem to have no figures
        if error.errno not in _UNSUPPORTED:
            self.reasons[device.facts.uuid, name] = f"{name}: {error.strerror}"


def _partitions(gpu: AmdDevice) -> list[AmdDevice]:
    """The partitions of a GPU; none if it is not divided."""
    count = len(gpu.kfd)
    modes = [files.text(f"{gpu.folder}/current_{kind}_partition", 16) or "" for kind in ("compute", "memory")]
    kind = "/".join(mode.strip() for mode in modes if mode.strip())  # as CPX/NPS4
    return [
        replace(
            gpu, kfd=[part], place=place, partitions=count,
            facts=Gpu(
                f"{gpu.facts.uuid}.{place}",
                shortened(f"{gpu.facts.name} {kind}".strip(), 128),
                _memory(files.keyed(f"{part.folder}/properties").get("size_in_bytes")),
                minor=part.minor, parent=gpu.facts.uuid,
            ),
        )
        for place, part in enumerate(gpu.kfd if count > 1 else [])
    ]  # fmt: skip


def _partition_figures(device: AmdDevice, table: Table, uses: dict[str, Use]) -> Figures:
    """How busy the dies of a partition are, from the table of its GPU, and its memory."""
    assert device.place is not None
    figures: Figures = {}
    (part,) = device.kfd
    if (busy := table.utilization(device.place, device.partitions)) is not None:
        figures["gpu_utilization_ratio"] = busy
    if device.facts.memory_bytes is not None:
        figures["gpu_memory_total_bytes"] = device.facts.memory_bytes
    used = files.number(f"{part.folder}/used_memory")
    if used is None and part.id in uses:  # only AMD's own packages of the driver have that file
        used = uses[part.id].memory_bytes
    if used is not None:
        figures["gpu_memory_used_bytes"] = used
    return figures


def _memory(size: int | None) -> int | None:
    total = checked("gpu_memory_total_bytes", size).value
    return None if total is None else int(total)


def _pci_address(uevent: str) -> str | None:
    for line in uevent.splitlines():
        name, _, value = line.partition("=")
        if name == "PCI_SLOT_NAME" and _PCI.fullmatch(value.strip().lower()):
            return value.strip().lower()
    return None


def _render_minor(folder: str) -> int | None:
    """N of the GPU's /dev/dri/renderDN."""
    minors = [int(match[1]) for name in files.names(f"{folder}/drm") if (match := _RENDER.fullmatch(name))]
    return minors[0] if len(minors) == 1 and minors[0] < MOST_MINOR else None


def _thermometer(sensors: str) -> int | None:
    """Which of the GPU's temperatures to read. A driver without labels has only that of the chip."""
    labels = {place: (files.text(f"{sensors}/temp{place}_label", 32) or "").strip() for place in (1, 2, 3)}
    by_label = {label: place for place, label in labels.items()}
    for label in _TEMPERATURES:
        if label in by_label:
            return by_label[label]
    return None if any(labels.values()) else 1
