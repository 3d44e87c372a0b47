"""Converts results of IOR 3 and 4: its JSON (-O summaryFormat=JSON), or the table that it prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from peerway_common.units import size_text
from peerway_measure.records import Record
from peerway_measure.storage.imports.rows import BadRow, Rows, above_zero, number, whole
from peerway_measure.storage.imports.source import MIB, Source, moved

# By how much rate times time may differ from the bytes of a complete run: each is printed with 3 digits or
# more. With a larger difference the run moved another amount (-D ends a run early).
_ROUNDING = 0.02
_HEADER = re.compile(r"access\s+bw\(MiB/s\)\s")
_OPTION = re.compile(r"([A-Za-z][\w ]*?)\s*: (.*?)\s*$")


@dataclass(frozen=True)
class _Run:
    """What all repetitions of a test have in common."""

    tasks: int
    access: str
    segments: int
    host: str
    extra: dict[str, Any]


def records_of(source: Source) -> Rows | None:
    """A record for each repetition; None if the file is of something else."""
    whole_run = _lower(source.data)
    rows = Rows()
    if "tests" in whole_run and "command line" in whole_run:
        for test in whole_run["tests"]:
            _of_test(source, rows, whole_run, test)
        return rows
    if re.match(r"\s*IOR-\d", source.text):
        _of_text(source, rows)
        return rows
    return None


def _lower(data: object) -> dict[str, Any]:
    """The data with keys in lower case, because versions differ in "Command line" and "command line"."""
    return {key.lower(): value for key, value in data.items()} if isinstance(data, dict) else {}


def _of_test(source: Source, rows: Rows, whole_run: dict[str, Any], test: dict[str, Any]) -> None:
    options, exact = test["Options"], test.get("Parameters", {})
    run = _Run(
        tasks=int(options["tasks"]),
        access=str(options["access"]),
        segments=int(exact.get("segmentCount", options.get("segments", 1))),
        host=str(whole_run.get("machine", "")).partition(" ")[2],
        extra={
            "tool_version": str(whole_run.get("version", "")),
            "api": str(options["api"]),
            "nodes": int(options["nodes"]),
        },
    )
    for row in _flat(test["Results"]):
        if row.get("access") in ("write", "read"):
            rows.add(source.line(row), _of_object, source, run, row)


def _of_object(source: Source, run: _Run, row: dict[str, Any]) -> Record:
    names = ("bwMiB", "totalTime", "blockKiB", "xferKiB")
    return _record(source, run, row["access"], {name: row[name] for name in names})


def _flat(results: list[Any]) -> Iterator[dict[str, Any]]:
    """The results as one list. Some versions have a list for each repetition."""
    for row in results:
        if isinstance(row, list):
            yield from _flat(row)
        else:
            yield row


def _of_text(source: Source, rows: Rows) -> None:
    """The records in the printed table. Each test prints its options, the names of the columns, and its rows
    up to the summary.
    """
    options: dict[str, str] = {}
    version = re.match(r"\s*IOR-(\S+?):", source.text)
    columns: list[str] = []
    for at, line in enumerate(source.text.splitlines(), 1):
        words = line.split()
        if _HEADER.match(line.strip()):
            columns = words
        elif re.match(r"\s*(Max (Write|Read)|Summary of)", line):
            columns = []
        elif columns and words[:1] in (["write"], ["read"]):
            run = _Run(
                tasks=int(options["tasks"]),
                access=options["access"],
                segments=int(options.get("segments", "1")),
                host=options.get("Machine", "").partition(" ")[2],
                extra={
                    "tool_version": version[1] if version else "",
                    "api": options["api"],
                    "nodes": int(options["nodes"]),
                },
            )
            rows.add(at, _of_line, source, run, columns, words)
        elif not columns and (match := _OPTION.match(line)):
            options[match[1]] = match[2]


def _of_line(source: Source, run: _Run, columns: list[str], words: list[str]) -> Record:
    if len(words) != len(columns):
        raise BadRow(f"{len(words)} values, where the table has {len(columns)} columns")
    values = dict(zip(columns, words, strict=True))
    names = ("bw(MiB/s)", "total(s)", "block(KiB)", "xfer(KiB)")
    return _record(source, run, words[0], {name: values[name] for name in names})


def _record(source: Source, run: _Run, op: str, row: dict[str, Any]) -> Record:
    """The record of a row.

    The bytes are those that the run was told to move, and its time follows from the rate. The product of the
    printed rate and time, which are rounded, would differ in each repetition.
    """
    (rate_name, rate), (time_name, time), (block_name, block), (transfer_name, transfer) = row.items()
    rate, time = above_zero(rate, rate_name), number(time, time_name)
    size = round(above_zero(block, block_name) * 1024) * run.segments
    extra = run.extra
    did = rate * time * MIB / run.tasks
    if abs(did - size) > max(_ROUNDING * size, _last_digit(row[time_name]) * rate * MIB / run.tasks):
        extra = extra | {"moved_bytes": round(did)}
    kind = "shared" if "shared" in run.access else "sequential"
    return source.record(
        "ior",
        moved(op),
        op,
        f"{kind} {size_text(whole(number(transfer, transfer_name) * 1024, transfer_name))}",
        size=size,
        streams=run.tasks,
        seconds=size * run.tasks / (rate * MIB),
        host=run.host,
        extra=extra,
    )


def _last_digit(value: object) -> float:
    """The value of a number's last digit, which is how far it may be off: 1.92 -> 0.01."""
    mantissa, _, exponent = str(value).lower().partition("e")
    return float(10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2])))
