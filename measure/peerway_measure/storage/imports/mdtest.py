"""Converts the summary of rates that mdtest 3 and 4 print. It has no single iterations, so a record is the
mean of all.
"""

from __future__ import annotations

import re
from typing import Any

from peerway_measure.records import Record
from peerway_measure.storage.imports.rows import Rows, above_zero, number
from peerway_measure.storage.imports.source import Source

_ROW = re.compile(
    r"^\s*(?P<kind>File|Directory) (?P<operation>creation|stat|read|removal|rename)\s*:?\s+"
    r"(?P<max>\S+)\s+(?P<min>\S+)\s+(?P<mean>\S+)\s+(?P<deviation>\S+)\s*$"
)
_NAMES = {"creation": "create", "stat": "stat", "read": "read", "removal": "remove", "rename": "rename"}


def records_of(source: Source) -> Rows | None:
    """A record for each operation; None if the file is of something else."""
    launched = re.search(
        r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node\(s\)", source.text
    )
    if not launched:
        return None
    repeated = re.search(r"SUMMARY rate.*\(of (\d+) iterations\)", source.text)
    alone = re.search(r"Command line used:.*[\s'\"]-[a-zA-Z]*u[\s'\"]", source.text)
    common: dict[str, Any] = {
        "shape": "a folder for each stream" if alone else "one folder",
        "streams": int(launched[2]),
        "iterations": int(repeated[1]) if repeated else 1,
        "extra": {"tool_version": launched[1], "nodes": int(launched[3])},
    }
    rows = Rows()
    for at, line in enumerate(source.text.splitlines(), 1):
        if match := _ROW.match(line):
            rows.add(at, _record, source, match, common)
    return rows


def _record(source: Source, row: re.Match[str], common: dict[str, Any]) -> Record | None:
    mean, best = number(row["mean"], "the mean"), number(row["max"], "the maximum")
    if mean == best == 0:  # this is how mdtest reports an operation that it did not do
        return None
    name, kind = _NAMES[row["operation"]], "file" if row["kind"] == "File" else "folder"
    tasks = common["streams"]
    return source.record(
        "mdtest",
        f"{kind}_{name}_mr",
        name,
        size=0,
        seconds=tasks / above_zero(row["mean"], "the mean"),
        min_s=tasks / above_zero(row["max"], "the maximum"),
        **common,
    )
