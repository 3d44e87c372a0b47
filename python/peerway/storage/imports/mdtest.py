"""mdtest 3 and 4: the summary of rates that it prints. It gives no single iterations, so a record is the mean
of all.
"""

from __future__ import annotations

import re

from peerway.records import Record
from peerway.storage.imports.source import Source

_ROW = re.compile(
    r"^\s*(File|Directory) (creation|stat|read|removal|rename)\s*:?\s+"
    r"([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s*$"
)
_NAMES = {"creation": "create", "stat": "stat", "read": "read", "removal": "remove", "rename": "rename"}


def records_of(source: Source) -> list[Record] | None:
    """One for each operation; None for a file of something else."""
    launched = re.search(
        r"mdtest-(\S+) was launched with (\d+) total task\(s\) on (\d+) node\(s\)", source.text
    )
    if not launched:
        return None
    tasks = int(launched[2])
    repeated = re.search(r"SUMMARY rate.*\(of (\d+) iterations\)", source.text)
    shape = (
        "a folder for each stream"
        if re.search(r"Command line used:.*[\s'\"]-[a-zA-Z]*u[\s'\"]", source.text)
        else "one folder"
    )
    found = []
    for line in source.text.splitlines():
        if (row := _ROW.match(line)) and float(row[5]) > 0:
            kind = "file" if row[1] == "File" else "folder"
            name, mean, best = _NAMES[row[2]], float(row[5]), float(row[3])
            found.append(
                source.record(
                    "mdtest",
                    f"{kind}_{name}_mr",
                    name,
                    shape,
                    size=0,
                    streams=tasks,
                    seconds=tasks / mean,
                    min_s=tasks / best,
                    iterations=int(repeated[1]) if repeated else 1,
                    extra={"tool_version": launched[1], "nodes": int(launched[3])},
                )
            )
    return found
