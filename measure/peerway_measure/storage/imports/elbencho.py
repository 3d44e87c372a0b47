"""Converts results of elbencho: a line of JSON for each phase (--jsonfile), or its CSV (--csvfile).

The time is that of the last thread to end; that of the first one is kept in `extra`.
"""

from __future__ import annotations

import csv
import io
from typing import Any

from peerway_common.units import size_text
from peerway_measure.records import Record
from peerway_measure.storage.imports.rows import Rows, above_zero, number, whole
from peerway_measure.storage.imports.source import MIB, Source, moved

_SMALL = {
    "MKDIRS": ("folder_create_mr", "create"),
    "STAT": ("file_stat_mr", "stat"),
    "RMFILES": ("file_remove_mr", "remove"),
    "RMDIRS": ("folder_remove_mr", "remove"),
}
_ENDED = "time ms [last]"


def records_of(source: Source) -> Rows | None:
    """A record for each phase; None if the file is of something else."""
    entries = source.data if isinstance(source.data, list) else [source.data]
    rows = Rows()
    if entries and all(isinstance(row, dict) and _ENDED in row for row in entries):
        for row in entries:
            rows.add(source.line(row), _record, source, row)
        return rows
    first = source.text.partition("\n")[0]
    if "operation" not in first or _ENDED not in first:
        return None
    reader = csv.DictReader(io.StringIO(source.text))
    for row in reader:
        rows.add(reader.line_num, _record, source, row)
    return rows


def _record(source: Source, row: dict[str, Any]) -> Record | None:
    operation = str(row["operation"])
    if operation not in ("WRITE", "READ", *_SMALL):
        return None
    hosts = max(1, whole(row.get("hosts") or 1, "hosts"))
    streams = whole(row["threads"], "threads") * hosts
    common: dict[str, Any] = {
        "streams": streams,
        "extra": {
            "tool_version": str(row.get("version", "")),
            "label": str(row.get("label", "")),
            "nodes": hosts,
        },
    }
    if row.get("time ms [first]"):
        common["extra"]["first_done_s"] = number(row["time ms [first]"], "time ms [first]") / 1e3
    seconds = above_zero(row[_ENDED], _ENDED) / 1e3
    if operation in _SMALL:
        test, op = _SMALL[operation]
        each = above_zero(row["entries [last]"], "entries [last]") / streams
        shape = "a folder for each stream"
        return source.record("elbencho", test, op, shape, size=0, seconds=seconds / each, **common)
    op = operation.lower()
    block = whole(row["block size"], "block size")
    words = ["random" if _yes(row.get("random")) else "sequential", size_text(block)]
    words += ["direct"] if _yes(row.get("direct IO")) else []
    size = round(above_zero(row["MiB [last]"], "MiB [last]") * MIB / streams)
    return source.record("elbencho", moved(op), op, " ".join(words), size=size, seconds=seconds, **common)


def _yes(value: object) -> bool:
    return str(value).lower() in ("1", "true", "yes")
