"""IOR 3.3 and 4: its JSON (-O summaryFormat=JSON), or the table that it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from peerway.records import Record
from peerway.storage.imports.source import Source, moved
from peerway.units import size_text

_ROW = re.compile(
    r"^(write|read)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+([\d.]+)\s+(\d+)\s*$"
)


def records_of(source: Source) -> list[Record] | None:
    """One for each repetition; None for a file of something else."""
    if isinstance(source.data, dict) and "tests" in source.data and "Command line" in source.data:
        return [record for test in source.data["tests"] for record in _of_test(source, source.data, test)]
    if re.match(r"\s*IOR-\d", source.text):
        return list(_of_text(source))
    return None


def _of_test(source: Source, whole: dict[str, Any], test: dict[str, Any]) -> Iterator[Record]:
    options = test["Options"]
    extra = {
        "tool_version": str(whole.get("Version", "")),
        "api": str(options["api"]),
        "nodes": int(options["nodes"]),
    }
    host = str(whole.get("Machine", "")).partition(" ")[2]
    for row in _flat(test["Results"]):
        if row["access"] in ("write", "read"):
            yield _record(
                source,
                row["access"],
                int(options["tasks"]),
                str(options["access"]),
                row["bwMiB"],
                row["totalTime"],
                int(row["xferKiB"] * 1024),
                host,
                extra,
            )


def _flat(results: list[Any]) -> Iterator[dict[str, Any]]:
    """Some versions have a list for each repetition."""
    for row in results:
        if isinstance(row, list):
            yield from _flat(row)
        else:
            yield row


def _of_text(source: Source) -> Iterator[Record]:
    said = dict(re.findall(r"^([A-Za-z][\w ]*?)\s*: (.*?)\s*$", source.text, re.MULTILINE))
    version = re.match(r"\s*IOR-(\S+?):", source.text)
    extra = {"tool_version": version[1] if version else "", "api": said["api"], "nodes": int(said["nodes"])}
    host = said.get("Machine", "").partition(" ")[2]
    for line in source.text.splitlines():
        if match := _ROW.match(line.strip()):
            op, rate, took, transfer = match[1], float(match[2]), float(match[10]), float(match[6])
            yield _record(
                source, op, int(said["tasks"]), said["access"], rate, took, int(transfer * 1024), host, extra
            )


def _record(
    source: Source,
    op: str,
    tasks: int,
    access: str,
    mib_s: float,
    seconds: float,
    transfer: int,
    host: str,
    extra: dict[str, Any],
) -> Record:
    kind = "shared" if "shared" in access else "sequential"
    size = round(mib_s * seconds * (1 << 20) / tasks)
    return source.record(
        "ior",
        moved(op),
        op,
        f"{kind} {size_text(transfer)}",
        size=size,
        streams=tasks,
        seconds=seconds,
        host=host,
        extra=extra,
    )
