"""What an agent sends: one batch for each round of measuring, and how it becomes bytes.

The bytes are JSON deflated by zlib. Both are in Python's standard library, a person can read a batch with one
line of Python, and inflating is bounded while it happens. MessagePack would save about a millisecond in 10 s.
`batch_check.decode` is the way back; it trusts nothing.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any

VERSION = 1
_PLAIN = ("node", "stream", "seq", "boot", "wall_ms", "mono_ms")

Values = list[float | int | None]


@dataclass(slots=True)
class Samples:
    """The samples of one kind of device, as columns: values[metric][i] is of devices[i], None is unknown."""

    devices: list[str] = field(default_factory=list)
    values: dict[str, Values] = field(default_factory=dict)

    def add(self, device: str, figures: dict[str, float | int]) -> None:
        """Append a device; figures that others have and it has not are None, and the other way round."""
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
    """Who had what of this node, from when to when. The agent sends it anew whenever it learns more.

    `id` is the agent's, one for each interval of a node for ever; a later one with the same id replaces the
    earlier. Without `step` it is a job's allocation on the node, with cores and GPUs. With `step` it is one
    of its steps, and `slot` is the device of kind "step" that carried its figures. A job that was requeued
    has another interval with the same job and, where Slurm has said it, the next `restart`.
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
    cores: list[int] | None = None  # the logical CPUs it may run on; None until its first process is seen
    gpus: list[str] = field(default_factory=list)
    memory_bytes: int | None = None
    source: str = "prolog"  # what told of it first: prolog, slurm, processes


@dataclass(slots=True)
class Note:
    """Something the agent saw that is no figure. `kind` is one of batch_check.NOTES."""

    kind: str
    time_ms: int
    job: int | None = None  # whose process it is, or which job it is about
    owner: int | None = None  # of a foreign process: the job that has the GPU
    gpu: str | None = None
    uid: int | None = None
    pids: list[int] = field(default_factory=list)
    count: int | None = None
    text: str = ""  # a program's name, or what could not be read


@dataclass(slots=True)
class Gpu:
    """A GPU or MIG instance of the node, as the driver and Slurm see it."""

    uuid: str
    name: str = ""
    memory_bytes: int | None = None
    index: int | None = None  # NVML's, which may change at a reboot
    minor: int | None = None  # of /dev/nvidiaN
    parent: str | None = None  # the GPU of a MIG instance


@dataclass(slots=True)
class Facts:
    """What a node is. Sent when it changed, when the agent starts, and once an hour."""

    cpus: int
    memory_bytes: int
    interval_ms: int
    cgroup: str  # "v2", "v1" or "none": then steps are followed through /proc
    agent: str  # version
    kernel: str = ""
    gpus: list[Gpu] = field(default_factory=list)
    nics: list[str] = field(default_factory=list)
    filesystems: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Batch:
    """One round of measuring of one node. (node, stream, seq) names it for ever.

    `stream` is thrown when a spool is made, `seq` grows by one a batch in it from 1. All times but mono_ms
    are told by the node's wall clock as it was when the batch was made.
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
    unknown: tuple[str, ...] = ()  # names that decode did not know and left out: the agent is newer


def encode(batch: Batch) -> bytes:
    """The batch as bytes; what is empty or None is left out."""
    content: dict[str, Any] = {name: getattr(batch, name) for name in _PLAIN}
    content["version"] = VERSION
    content["samples"] = {
        kind: {"devices": part.devices, "values": part.values} for kind, part in batch.samples.items()
    }
    content["intervals"] = [_sparse(asdict(each)) for each in batch.intervals]
    content["notes"] = [_sparse(asdict(each)) for each in batch.notes]
    if batch.facts is not None:
        content["facts"] = _sparse(asdict(batch.facts))
    text = json.dumps(content, separators=(",", ":"), allow_nan=False)
    return zlib.compress(text.encode(), 6)


def _sparse(value: dict[str, Any]) -> dict[str, Any]:
    """Leave out what has the value that decode assumes."""
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
