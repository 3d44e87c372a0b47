"""gdsio of NVIDIA's cuFile: the line that it prints for a run."""

from __future__ import annotations

import re

from peerway.records import Record
from peerway.storage.imports.source import Source, moved
from peerway.units import size_text

_LINE = re.compile(
    r"IoType: (?P<op>READ|WRITE|RANDREAD|RANDWRITE) XferType: (?P<way>\S+) Threads: (?P<threads>\d+) "
    r"DataSetSize: (?P<moved>\d+)/\d+\(KiB\) IOSize: (?P<io>[\d-]+)\(KiB\) "
    r"Throughput: (?P<rate>[\d.]+) GiB/sec,? "
    r"Avg_Latency: (?P<latency>[\d.]+) usecs ops: (?P<ops>\d+) total_time (?P<time>[\d.]+) secs"
)
_WAYS = {
    "GPUD": "gds/direct",
    "CPUONLY": "gds/cpu",
    "CPU_GPU": "gds/bounce",
    "CPU_ASYNC_GPU": "gds/bounce-async",
    "GPU_BATCH": "gds/batch",
    "GPU_ASYNC": "gds/async",
}


def records_of(source: Source) -> list[Record] | None:
    """One for each line; None for a file of something else."""
    found = [_record(source, match) for match in _LINE.finditer(source.text)]
    return found or None


def _record(source: Source, match: re.Match[str]) -> Record:
    random, op = match["op"].startswith("RAND"), match["op"].removeprefix("RAND").lower()
    threads = int(match["threads"])
    block = int(match["io"].partition("-")[0]) * 1024
    shape = f"{'random' if random else 'sequential'} {size_text(block)}"
    memory = "host" if match["way"] == "CPUONLY" else "cuda"
    # Whether GPUDirect Storage was really used is in cuFile's log, not in this line.
    extra = {"xfer_type": match["way"], "average_latency_us": float(match["latency"])}
    return source.record(
        _WAYS.get(match["way"], f"gds/{match['way'].lower()}"),
        moved(op),
        op,
        shape,
        size=int(match["moved"]) * 1024 // threads,
        streams=threads,
        seconds=float(match["time"]),
        source=memory,
        extra=extra,
    )
