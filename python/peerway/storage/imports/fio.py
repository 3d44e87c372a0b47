"""fio's JSON (--output-format=json or json+): a record for each job and direction."""

from __future__ import annotations

from typing import Any

from peerway.records import Record
from peerway.storage.imports.source import Source, moved
from peerway.units import size_text

_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


def records_of(source: Source) -> list[Record] | None:
    """One for each job and direction; None for a file of something else."""
    data = source.data
    if not (isinstance(data, dict) and "fio version" in data and "jobs" in data):
        return None
    return [
        record
        for job in data["jobs"]
        for op in ("read", "write")
        if (record := _record(source, data, job, op))
    ]


def _record(source: Source, data: dict[str, Any], job: dict[str, Any], op: str) -> Record | None:
    side = job[op]
    if not side["total_ios"]:
        return None
    options = {**data.get("global options", {}), **job.get("job options", {})}
    block = _bytes(str(options.get("bs", "4k")))
    streams = max(1, int(str(options.get("numjobs", "1")))) if "group_reporting" in options else 1
    words = ["random" if str(options.get("rw", "")).startswith("rand") else "sequential", size_text(block)]
    words += ["direct"] if str(options.get("direct", "0")) == "1" else []
    common: dict[str, Any] = {
        "streams": streams,
        "time": float(data.get("timestamp", 0)),
        "host": str(job.get("hostname", "")),
        "extra": {
            "tool_version": str(data["fio version"]),
            "ioengine": str(options.get("ioengine", "")),
            "iodepth": int(str(options.get("iodepth", "1"))),
        },
    }
    if words[0] == "random":
        clat = side["clat_ns"]
        p99 = clat.get("percentile", {}).get("99.000000", clat["mean"])
        return source.record(
            "fio",
            f"file_random_{op}_latency",
            op,
            " ".join(words),
            size=block,
            seconds=clat["mean"] / 1e9,
            p99_s=p99 / 1e9,
            min_s=clat["min"] / 1e9,
            iterations=int(side["total_ios"]),
            **common,
        )
    seconds = side["runtime"] / 1e3
    return source.record(
        "fio", moved(op), op, " ".join(words), size=side["io_bytes"] // streams, seconds=seconds, **common
    )


def _bytes(text: str) -> int:
    number = text.split(",")[0].strip().lower().removesuffix("ib").removesuffix("b")
    digits = number.rstrip("kmg")
    return int(digits) * _UNITS[number[len(digits) :]]
