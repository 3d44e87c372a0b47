"""elbencho: a line of JSON for each phase (--jsonfile), or its CSV (--csvfile). The last thread's end counts,
and the first one's is kept.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from peerway.records import Record
from peerway.storage.imports.source import MIB, Source, moved
from peerway.units import size_text

_SMALL = {
    "MKDIRS": ("folder_create_mr", "create"),
    "STAT": ("file_stat_mr", "stat"),
    "RMFILES": ("file_remove_mr", "remove"),
    "RMDIRS": ("folder_remove_mr", "remove"),
}
_ENDED = "time ms [last]"


def records_of(source: Source) -> list[Record] | None:
    """One for each phase; None for a file of something else."""
    rows = source.data if isinstance(source.data, list) else [source.data]
    if not (rows and all(isinstance(row, dict) and _ENDED in row for row in rows)):
        first = source.text.partition("\n")[0]
        if "operation" not in first or _ENDED not in first:
            return None
        rows = list(csv.DictReader(io.StringIO(source.text)))
    return [record for row in rows if (record := _record(source, row))]


def _record(source: Source, row: dict[str, Any]) -> Record | None:
    operation = str(row["operation"])
    seconds = float(row[_ENDED]) / 1e3
    streams = int(row["threads"]) * max(1, int(row.get("hosts") or 1))
    extra = {
        "tool_version": str(row.get("version", "")),
        "label": str(row.get("label", "")),
        "nodes": max(1, int(row.get("hosts") or 1)),
    }
    if row.get("time ms [first]"):
        extra["first_done_s"] = float(row["time ms [first]"]) / 1e3
    if seconds <= 0:
        return None
    if operation in ("WRITE", "READ"):
        op = operation.lower()
        words = ["random" if _yes(row.get("random")) else "sequential", size_text(int(row["block size"]))]
        words += ["direct"] if _yes(row.get("direct IO")) else []
        size = round(float(row["MiB [last]"]) * MIB / streams)
        return source.record(
            "elbencho",
            moved(op),
            op,
            " ".join(words),
            size=size,
            streams=streams,
            seconds=seconds,
            extra=extra,
        )
    if operation in _SMALL and float(row["entries [last]"] or 0) > 0:
        test, op = _SMALL[operation]
        each = float(row["entries [last]"]) / streams
        return source.record(
            "elbencho",
            test,
            op,
            "a folder for each stream",
            size=0,
            streams=streams,
            seconds=seconds / each,
            extra=extra,
        )
    return None


def _yes(value: object) -> bool:
    return str(value).lower() in ("1", "true", "yes")
