"""Converts the line that gdsio of NVIDIA's cuFile prints for a run."""

from __future__ import annotations

import re

from peerway_common.units import size_text
from peerway_measure.records import Record
from peerway_measure.storage.imports.rows import BadRow, Rows, above_zero, number, whole
from peerway_measure.storage.imports.source import Source, moved

_LINE = re.compile(
    r"IoType: (?P<op>READ|WRITE|RANDREAD|RANDWRITE) XferType: (?P<xfer>\S+) Threads: (?P<threads>\S+) "
    r"DataSetSize: (?P<moved>\S+)/\S+?\(KiB\) IOSize: (?P<io>\S+?)\(KiB\) "
    r"Throughput: (?P<rate>\S+) GiB/sec,? "
    r"Avg_Latency: (?P<latency>\S+) usecs ops: (?P<ops>\S+) total_time (?P<time>\S+) secs"
)
_ENGINES = {
    "GPUD": "gds/direct",
    "CPUONLY": "gds/cpu",
    "CPU_GPU": "gds/bounce",
    "CPU_ASYNC_GPU": "gds/bounce-async",
    "GPU_BATCH": "gds/batch",
    "GPU_ASYNC": "gds/async",
}


def records_of(source: Source) -> Rows | None:
    """A record for each line; None if the file is of something else."""
    rows = Rows()
    for at, line in enumerate(source.text.splitlines(), 1):
        if "IoType: " in line and "XferType: " in line:
            rows.add(at, _record, source, line)
    return rows if rows.records or rows.omitted else None


def _record(source: Source, line: str) -> Record:
    match = _LINE.search(line)
    if match is None:
        raise BadRow("it does not have the fields of a gdsio result in their order")
    random, op = match["op"].startswith("RAND"), match["op"].removeprefix("RAND").lower()
    threads = whole(match["threads"], "Threads")
    block = whole(match["io"].partition("-")[0], "IOSize") * 1024
    shape = f"{'random' if random else 'sequential'} {size_text(block)}"
    memory = "host" if match["xfer"] == "CPUONLY" else "cuda"
    # The line does not say whether GPUDirect Storage was really used; cuFile's log does.
    extra = {"xfer_type": match["xfer"], "average_latency_us": number(match["latency"], "Avg_Latency")}
    return source.record(
        _ENGINES.get(match["xfer"], f"gds/{match['xfer'].lower()}"),
        moved(op),
        op,
        shape,
        size=whole(match["moved"], "DataSetSize") * 1024 // threads,
        streams=threads,
        seconds=above_zero(match["time"], "total_time"),
        source=memory,
        extra=extra,
    )
