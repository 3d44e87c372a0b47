"""The batch that an agent sends after each round of measuring, and its encoding.

The bytes are JSON compressed by zlib. Python's standard library has both, a person can read a batch with one
line of Python, and the decompressed size can be limited while decompressing. MessagePack would save about a
millisecond in 10 s. `batch_check.decode` decodes a batch and trusts nothing in it.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field, fields
from typing import Any

VERSION = 1
_PLAIN = ("node", "stream", "seq", "boot", "wall_ms", "mono_ms")

Values = list[float | int | None]


@dataclass(slots=True)
class Samples:
    """Samples of one kind of device, by column: values[metric][i] is of devices[i], or None if unknown."""

    devices: list[str] = field(default_factory=list)
    values: dict[str, Values] = field(default_factory=dict)

    def add(self, device: str, figures: dict[str, float | int]) -> None:
        """Append a device with its figures. A metric that only some devices have is None for the others."""
        place = len(self.devices)
        self.devices.append(device)
        for name, value in figures.items():
            column = self.values.get(name)
            if column is None:
                column = self.values[name] = [None] * place
            column.append(value)
        for column in self.values.values():
            if len(column) == place:
                column.append(None)


@dataclass(slots=True)
class Interval:
    """Which job had which part of this node, and when. The agent sends it again whenever it learns more.

    The agent chooses `id`, unique on its node for ever; a later interval with the same id replaces the
    earlier one. Without `step` the interval is a job's allocation on the node, with cores and GPUs. With
    `step` it is one of the job's steps, and `slot` is the device of kind "step" that carried its figures. A
    requeued job has another interval with the same job and, if Slurm reported it, the next `restart`.
    """

    id: str
    job: int
    start_ms: int
    end_ms: int | None = None
    step: str | None = None
    slot: int | None = None
    restart: int | None = None
    uid: int | None = None
    user: str | None = None
    partition: str | None = None
    cpus: int | None = None
    cores: list[int] | None = None  # logical CPUs it may run on; None until its first process is seen
    gpus: list[str] = field(default_factory=list)
    memory_bytes: int | None = None
    source: str = "prolog"  # who reported it first: prolog, slurm, processes


@dataclass(slots=True)
class Note:
    """An event that the agent saw. `kind` is one of batch_check.NOTES."""

    kind: str
    time_ms: int
    job: int | None = None  # the job of the process, or the job that the note is about
    owner: int | None = None  # for a foreign process: the job that has the GPU
    gpu: str | None = None
    uid: int | None = None
    pids: list[int] = field(default_factory=list)
    count: int | None = None
    text: str = ""  # a program's name, or what could not be read


RENDER_MINORS = 128  # the smallest N of /dev/dri/renderDN; that of /dev/nvidiaN is smaller


@dataclass(slots=True)
class Gpu:
    """A GPU or MIG instance of the node, as the driver and Slurm see it."""

    uuid: str  # of an AMD GPU: GPU- and its unique id, or PCI- and its address
    name: str = ""
    memory_bytes: int | None = None
    index: int | None = None  # NVML's index, which may change at a reboot; of AMD GPUs in their order on PCI
    minor: int | None = None  # N of /dev/nvidiaN, or of an AMD GPU's /dev/dri/renderDN
    parent: str | None = None  # for a MIG instance: the UUID of its GPU


@dataclass(slots=True)
class Facts:
    """A node's properties. Sent when the agent starts, when they change, and once an hour."""

    cpus: int
    memory_bytes: int
    interval_ms: int
    cgroup: str  # "v2", "v1" or "none" (then steps are followed through /proc)
    agent: str  # its version
    kernel: str = ""
    gpus: list[Gpu] = field(default_factory=list)
    nics: list[str] = field(default_factory=list)
    filesystems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Batch:
    """One round of measuring on one node. (node, stream, seq) identifies it for ever.

    `stream` is a random id, made with the spool; `seq` counts the spool's batches from 1. All times except
    mono_ms are from the node's wall clock, as it was set when the batch was made.
    """

    node: str
    stream: str
    seq: int
    boot: str
    wall_ms: int
    mono_ms: int
    samples: dict[str, Samples] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    facts: Facts | None = None
    unknown: tuple[str, ...] = ()  # names that decode ignored, because the agent is newer


def encode(batch: Batch) -> bytes:
    """The batch as bytes; fields that are empty or None are left out."""
    content: dict[str, Any] = {name: getattr(batch, name) for name in _PLAIN}
    content["version"] = VERSION
    content["samples"] = {
        kind: {"devices": part.devices, "values": part.values} for kind, part in batch.samples.items()
    }
    content["intervals"] = [_sparse(_flat(each)) for each in batch.intervals]
    content["notes"] = [_sparse(_flat(each)) for each in batch.notes]
    if batch.facts is not None:
        content["facts"] = _sparse(asdict(batch.facts))
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), 6)


def _flat(record: Interval | Note) -> dict[str, Any]:
    """Its fields by name. Unlike asdict() it copies none of them, which takes a quarter of the time."""
    return {each.name: getattr(record, each.name) for each in fields(record)}


def _sparse(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out fields that have decode's default value."""
    kept: dict[str, Any] = {}
    for name, item in value.items():
        if item is None or item in ([], {}, "", ()):
            continue
        if isinstance(item, dict):
            kept[name] = _sparse(item)
        elif isinstance(item, list) and isinstance(item[0], dict):
            kept[name] = [_sparse(each) for each in item]
        else:
            kept[name] = item
    return kept
