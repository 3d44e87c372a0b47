"""Decodes a batch from untrusted bytes and checks every name, number and length in it.

Fields, metrics and kinds of device that this version does not know are left out and listed in
`Batch.unknown`, so that agents may be newer than the server. Figures that cannot be true (plausible.py) are
left out too, and so are intervals and notes that cannot be read; a note added to the batch says why. Any
other error refuses the whole batch.
"""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, TypeVar

from peerway_common.printable import shortened
from peerway_jobs import plausible
from peerway_jobs.batch import VERSION, Batch, Facts, Gpu, Interval, Note, Samples
from peerway_jobs.frames import MOST_PAYLOAD
from peerway_jobs.metrics import KINDS, METRICS
from peerway_jobs.untrusted import DEVICE, MOST_NUMBER, MOST_UNKNOWN, BadBatch, Part

MOST_TEXT = 4 << 20  # bytes of JSON in one batch; one of a node with 256 CPUs and 8 GPUs has about 15 KB
MOST_RATIO = 200  # of JSON bytes to compressed bytes, above SMALL_TEXT; zlib's own limit is 1,032
SMALL_TEXT = 256 << 10
MOST_VALUES = 300_000  # values in one batch, counted by their commas before any is parsed
MOST_DEVICES = 4096  # of one kind on a node
MOST_INTERVALS = 4096
MOST_GPUS = 512
MOST_NOTES = 1024
MOST_MINOR = 1 << 20  # Linux has no larger minor number
MOST_INTERVAL_MS = 3_600_000  # between samples
MOST_REASONS = 16  # notes that the server adds to a batch to say why figures were left out

NOTES = {
    "agent_started": "the agent began, or began anew",
    "clock_stepped": "the node's wall clock was set; count is by how many milliseconds",
    "dropped": "the spool was full; count batches, the oldest, are gone",
    "foreign_process": "a process uses a GPU that was not allocated to its job",
    "leftover": "processes of a job that has ended on this node",
    "oom_kill": "the kernel killed a process of the job for want of memory",
    "unreadable": "a source of figures could not be read; text says why",
}

_NODE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_-]|\.(?!\.)){0,62}", re.ASCII)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9.+_-]{0,95}", re.ASCII)
_STEP = re.compile(r"(?:[0-9]{1,10}(?:\+[0-9]{1,5})?|batch|extern|interactive)", re.ASCII)
_STREAM = re.compile(r"[0-9a-f]{32}", re.ASCII)
_BOOT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII)
_SOURCES = ("prolog", "slurm", "processes")
_ENTRIES = {"intervals": "an interval", "notes": "a note"}  # what an entry of each list is called in errors
_T = TypeVar("_T")
_U32 = (1 << 32) - 1
_MOST_MS = 1 << 48  # the year 10889


def is_node_name(text: str) -> bool:
    """Whether this may be a node's name: at most 63 characters, no slash, no "..", so safe in a file name."""
    return _NODE.fullmatch(text) is not None


def is_device_name(text: str) -> bool:
    """Whether this may be a device's name: like a node's name, also with : @ + and !, up to 128
    characters.
    """
    return DEVICE.fullmatch(text) is not None


def decode(payload: bytes) -> Batch:
    """The batch in these bytes. Raises BadBatch."""
    content = Part(_parse(_inflate(payload)), "batch")
    if (version := content.take("version")) != VERSION:
        content.refuse("version", f"is {shortened(repr(version), 24)}, this server reads version {VERSION}")
    batch = Batch(
        node=content.name("node", _NODE),
        stream=content.name("stream", _STREAM),
        boot=content.name("boot", _BOOT),
        seq=content.whole("seq", 1, MOST_NUMBER - 1),
        wall_ms=content.whole("wall_ms", 0, _MOST_MS),
        mono_ms=content.whole("mono_ms", 0, _MOST_MS),
    )
    unknown: list[str] = []
    reasons: list[str] = []
    batch.samples = _samples(content, unknown, reasons)
    batch.intervals = _readable(
        content.parts("intervals", MOST_INTERVALS, unknown), lambda part: _interval(part, reasons), reasons
    )
    notes = content.parts("notes", MOST_NOTES, unknown)
    batch.notes = _readable(
        [part for part in notes if _known(part.peek("kind"), NOTES, unknown, "notes")], _note, reasons
    )
    facts = content.take("facts")
    batch.facts = None if facts is None else _facts(Part(facts, "facts", unknown), reasons)
    batch.notes += [Note("unreadable", batch.wall_ms, text=why) for why in _counted(reasons)]
    content.rest(unknown)
    batch.unknown = tuple(dict.fromkeys(unknown))[:MOST_UNKNOWN]
    return batch


def inflated_bytes(payload: bytes) -> int:
    """The size of a payload's JSON in bytes. Raises BadBatch if it is too large."""
    return len(_inflate(payload))


def facts_of(content: Any) -> Facts:
    """A node's properties from a JSON object. Raises BadBatch."""
    return _facts(Part(content, "facts"), [])


def seq_of(payload: bytes) -> int:
    """The number of a batch that may otherwise be bad. Raises BadBatch if it cannot be read."""
    return Part(_parse(_inflate(payload)), "batch").whole("seq", 1, MOST_NUMBER - 1)


@lru_cache(1)
def _inflate(payload: bytes) -> bytes:
    if len(payload) > MOST_PAYLOAD:
        raise BadBatch(f"{len(payload):,} bytes, allowed are {MOST_PAYLOAD:,}")
    inflater = zlib.decompressobj()
    most = min(MOST_TEXT, max(SMALL_TEXT, MOST_RATIO * len(payload)))
    try:
        text = inflater.decompress(payload, most)
    except zlib.error:
        raise BadBatch("the bytes are not compressed by zlib") from None
    if not inflater.eof and len(text) == most:
        raise BadBatch(f"{len(payload):,} bytes unpack to {most:,} or more, allowed are fewer")
    if not inflater.eof:
        raise BadBatch(f"the compressed text is cut off after {len(payload):,} bytes")
    if inflater.unused_data:
        raise BadBatch(f"{len(inflater.unused_data):,} bytes follow the compressed text")
    if (values := text.count(b",")) > MOST_VALUES:
        raise BadBatch(f"{values:,} values, allowed are {MOST_VALUES:,}")
    return text


def _parse(text: bytes) -> Any:
    try:
        return json.loads(text)  # accepts NaN and Infinity: a figure with such a value is dropped alone
    except ValueError as error:
        raise BadBatch(f"the text is not JSON: {shortened(str(error), 128)}") from None
    except RecursionError:
        raise BadBatch("the JSON is nested too deeply") from None


def _known(word: Any, known: Iterable[str], unknown: list[str], where: str) -> bool:
    if isinstance(word, str) and word in known:
        return True
    unknown.append(shortened(f"{where} {word}"))
    return False


def _samples(content: Part, unknown: list[str], reasons: list[str]) -> dict[str, Samples]:
    kinds = content.take("samples") or {}
    if not isinstance(kinds, dict):
        content.refuse("samples", "is not an object")
    return {
        kind: _columns(Part(part, f"samples of {kind}"), kind, unknown, reasons)
        for kind, part in kinds.items()
        if _known(kind, KINDS, unknown, "samples of")
    }


def _columns(part: Part, kind: str, unknown: list[str], reasons: list[str]) -> Samples:
    devices = part.names("devices")
    if len(set(devices)) < len(devices):
        device, times = Counter(devices).most_common(1)[0]
        part.refuse("devices", f"contains {device} {times:,} times")
    values = part.take("values")
    if not isinstance(values, dict):
        part.refuse("values", "is not an object")
    part.rest(unknown)
    kept = {}
    for name, column in values.items():
        if not _known(name, METRICS, unknown, f"{kind} metric"):
            continue
        if METRICS[name].kind != kind:
            part.refuse(name, f"is a metric of kind {METRICS[name].kind}")
        if not isinstance(column, list):
            part.refuse(name, "is not a list")
        if len(column) != len(devices):
            part.refuse(name, f"has {len(column):,} values for {len(devices):,} devices")
        kept[name] = column
    reasons += [f"{kind} {device}: {why}" for device, _, why in plausible.sift(devices, kept)]
    return Samples(devices, kept)


def _counted(reasons: list[str]) -> list[str]:
    """The first MOST_REASONS reasons, and the number of the others."""
    more = len(reasons) - MOST_REASONS
    return [shortened(why, 128) for why in reasons[:MOST_REASONS]] + (
        [f"{more:,} more figures were left out"] if more > 0 else []
    )


def _readable(parts: list[Part], read: Callable[[Part], _T], reasons: list[str]) -> list[_T]:
    """The intervals or notes that can be read; the others are dropped, each with a reason."""
    kept: list[_T] = []
    for part in parts:
        job = "" if part.peek("job") is None else f" of job {shortened(repr(part.peek('job')), 24)}"
        try:
            kept.append(read(part))
        except BadBatch as error:
            reasons.append(f"{_ENTRIES[part.where]}{job} was left out: {error}")
    return kept


def _size(part: Part, name: str, most: int, reasons: list[str]) -> int | None:
    """A number of an interval; if it is out of range, None with a reason, and the interval is kept."""
    value = part.peek(name)
    try:
        return part.maybe(name, 0, most)
    except BadBatch:
        reasons.append(
            f"{part.where}: {name} is {shortened(repr(value), 24)}, which is not from 0 to {most:,}"
        )
        return None


def _interval(part: Part, reasons: list[str]) -> Interval:
    start = part.whole("start_ms", 0, _MOST_MS)
    interval = Interval(
        id=part.name("id", _ID),
        job=part.whole("job", 1, _U32),
        start_ms=start,
        end_ms=part.maybe("end_ms", start, _MOST_MS),
        step=part.maybe_name("step", _STEP),
        slot=part.maybe("slot", 0, MOST_DEVICES - 1),
        restart=_size(part, "restart", _U32, reasons),
        uid=_size(part, "uid", _U32, reasons),
        user=part.text("user", 64) or None,
        partition=part.text("partition", 64) or None,
        cpus=_size(part, "cpus", 1 << 20, reasons),
        cores=None if part.peek("cores") is None else part.wholes("cores", 1 << 20),
        gpus=part.names("gpus"),
        memory_bytes=_size(part, "memory_bytes", MOST_NUMBER - 1, reasons),
        source=part.text("source", 16),
    )
    if interval.source not in _SOURCES:
        part.refuse("source", f"is {interval.source!r}, which is none of {', '.join(_SOURCES)}")
    if (interval.step is None) != (interval.slot is None):
        part.refuse("slot", "and step must be given together")
    return _whole(part, interval)


def _note(part: Part) -> Note:
    return _whole(
        part,
        Note(
            kind=part.text("kind", 32),
            time_ms=part.whole("time_ms", 0, _MOST_MS),
            job=part.maybe("job", 1, _U32),
            owner=part.maybe("owner", 1, _U32),
            gpu=part.maybe_name("gpu", DEVICE),
            uid=part.maybe("uid", 0, _U32),
            pids=part.wholes("pids", _U32),
            count=part.maybe("count"),
            text=part.text("text"),
        ),
    )


def _facts(part: Part, reasons: list[str]) -> Facts:
    return _whole(
        part,
        Facts(
            cpus=part.whole("cpus", 1, 1 << 20),
            memory_bytes=part.whole("memory_bytes", 0, MOST_NUMBER - 1),
            interval_ms=part.whole("interval_ms", 1, MOST_INTERVAL_MS),
            cgroup=part.text("cgroup", 8),
            agent=part.text("agent", 64),
            kernel=part.text("kernel"),
            gpus=[_gpu(each, reasons) for each in part.parts("gpus", MOST_GPUS, part.unknown)],
            nics=part.names("nics"),
            filesystems=part.names("filesystems"),
        ),
    )


def _gpu(part: Part, reasons: list[str]) -> Gpu:
    memory = plausible.checked("gpu_memory_total_bytes", part.take("memory_bytes"))
    if memory.reason:
        reasons.append(f"facts of a GPU: {memory.reason}")
    return _whole(
        part,
        Gpu(
            uuid=part.name("uuid", DEVICE),
            name=part.text("name"),
            memory_bytes=None if memory.value is None else int(memory.value),
            index=part.maybe("index", 0, 1 << 16),
            minor=part.maybe("minor", 0, MOST_MINOR - 1),
            parent=part.maybe_name("parent", DEVICE),
        ),
    )


def _whole(part: Part, whole: _T) -> _T:
    """Return `whole` after noting the fields of `part` that nobody took."""
    part.rest(part.unknown)
    return whole
