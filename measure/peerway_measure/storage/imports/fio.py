"""Converts fio's JSON (--output-format=json or json+): a record for each job and direction."""

from __future__ import annotations

import re
from typing import Any

from peerway_common.units import size_text
from peerway_measure.records import Record
from peerway_measure.storage.imports.rows import BadRow, Rows, above_zero, number, whole
from peerway_measure.storage.imports.source import Source, moved

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DEFAULT = "4k"


def records_of(source: Source) -> Rows | None:
    """A record for each job and direction; None if the file is of something else."""
    data = source.data
    if not (isinstance(data, dict) and "fio version" in data and "jobs" in data):
        return None
    rows = Rows()
    for job in data["jobs"]:
        for op in ("read", "write"):
            rows.add(source.line(job), _named_record, source, data, job, op)
    return rows


def _named_record(source: Source, data: dict[str, Any], job: dict[str, Any], op: str) -> Record | None:
    try:
        return _record(source, data, job, op)
    except KeyError as error:
        raise BadRow(f"job {job.get('jobname', '')}, {op}: it has no {error}") from None
    except BadRow as error:
        raise BadRow(f"job {job.get('jobname', '')}, {op}: {error}") from None


def _record(source: Source, data: dict[str, Any], job: dict[str, Any], op: str) -> Record | None:
    side = job[op]
    done = whole(side["total_ios"], "total_ios", least=0)
    if done == 0:
        return None
    options = {**data.get("global options", {}), **job.get("job options", {})}
    blocks = _blocks(options, op)
    streams = whole(options.get("numjobs", "1"), "numjobs") if "group_reporting" in options else 1
    pattern = str(options.get("rw", options.get("readwrite", "")))
    words = ["random" if pattern.startswith("rand") else "sequential"]
    words.append(" to ".join(size_text(size) for size in dict.fromkeys(blocks)))
    words += ["direct"] if str(options.get("direct", "0")) == "1" else []
    common: dict[str, Any] = {
        "streams": streams,
        "time": number(data.get("timestamp", 0), "timestamp"),
        "host": str(job.get("hostname", "")),
        "extra": {
            "tool_version": str(data["fio version"]),
            "ioengine": str(options.get("ioengine", "")),
            "iodepth": whole(options.get("iodepth", "1"), "iodepth"),
        },
    }
    size = _moved_bytes(data, side)
    if words[0] == "random":
        each = blocks[0] if blocks[0] == blocks[-1] else round(size / done)
        latency = _latency_ns(side)
        return source.record(
            "fio",
            f"file_random_{op}_latency",
            op,
            " ".join(words),
            size=each,
            seconds=above_zero(latency["mean"], "the mean latency") / 1e9,
            p99_s=latency["p99"] / 1e9,
            min_s=latency["min"] / 1e9,
            iterations=done,
            **common,
        )
    seconds = above_zero(side["runtime"], "runtime") / 1e3
    return source.record(
        "fio", moved(op), op, " ".join(words), size=size // streams, seconds=seconds, **common
    )


def _moved_bytes(data: dict[str, Any], side: dict[str, Any]) -> int:
    """The bytes of a direction. Versions before fio 2.21 call KiB bytes, and have no `io_kbytes`."""
    count = whole(side["io_bytes"], "io_bytes")
    old = str(data["fio version"]).startswith("fio-2") and "io_kbytes" not in side
    return count * 1024 if old else count


def _latency_ns(side: dict[str, Any]) -> dict[str, float]:
    """The latencies in nanoseconds. fio 2 reports microseconds under other names."""
    unit = 1 if "clat_ns" in side else 1000
    latency = side["clat_ns"] if unit == 1 else side["clat"]
    mean = number(latency["mean"], "the mean latency")
    p99 = latency.get("percentile", {}).get("99.000000", mean)
    return {
        "mean": mean * unit,
        "p99": number(p99, "the 99th percentile of latency") * unit,
        "min": number(latency["min"], "the smallest latency") * unit,
    }


def _blocks(options: dict[str, Any], op: str) -> tuple[int, int]:
    """The smallest and the largest block of a direction.

    `bs`, `bsrange` and `bssplit` name blocks of reads, then those of writes, or one value for both. An empty
    value stands for the default.
    """

    def of(*names: str) -> str:
        text = next((str(options[name]) for name in names if name in options), "")
        both = text.split(",")
        return (both[1] if op == "write" and len(both) > 1 else both[0]).strip()

    base = int(options.get("kb_base", 1024))
    if split := of("bssplit"):
        sizes = [_bytes(part.partition("/")[0], base) for part in split.split(":")]
    elif span := of("bsrange", "blocksize_range"):
        sizes = [_bytes(part, base) for part in span.split("-")]
    else:
        sizes = [_bytes(of("bs", "blocksize") or _DEFAULT, base)]
    return min(sizes), max(sizes)


def _bytes(text: str, base: int) -> int:
    match = re.fullmatch(r"(0x[0-9a-f]+|\d+)([kmgtp]?)(i?)(b?)", text.strip().lower())
    if match is None or int(match[1], 0) == 0:
        raise BadRow(f"the block size {text!r} is not a number with an optional unit such as k or MiB")
    return int(int(match[1], 0) * (1024 if match[3] else base) ** _POWERS[match[2]])
