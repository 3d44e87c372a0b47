"""The engine fio, whose results come from its JSON.

It reads files that `posix` wrote, and the data is compared afterwards. Files that fio writes, it fills
itself.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from peerway_common.printable import one_line
from peerway_measure.storage.engines.base import FileOperation, Outcome
from peerway_measure.storage.operation import OperationFailed, finished

_RW = {"write": "write", "read": "read", "random_write": "randwrite", "random_read": "randread"}


class Fio:
    """The fio of the distribution."""

    name = "fio"
    memory = "host"
    operations = frozenset(_RW)
    takes_direct = True

    def missing(self) -> str:
        """What to install; "" if nothing is missing."""
        return "" if shutil.which("fio") else "fio is not installed: apt-get install fio, or dnf install fio"

    def run(self, operation: str, job: FileOperation) -> Outcome:
        """Carry out the job. Raises OperationFailed."""
        if job.wait_for_nodes:
            job.wait_for_nodes()
        before = getrusage(RUSAGE_CHILDREN).ru_inblock
        status, out, err = finished(command(operation, job), job.limit_s, f"fio {operation}")
        fetched = (
            getrusage(RUSAGE_CHILDREN).ru_inblock - before
        ) * 512  # counts fio alone, the only child that ended meanwhile
        try:
            answer = json.loads(out[out.index("{") :])
        except ValueError:
            raise OperationFailed(
                f"fio {operation} ended with status {status}: {one_line('fio', err)}"
            ) from None
        wrong = {j["jobname"]: j["error"] for j in answer["jobs"] if j["error"]}
        if status or wrong:
            raise OperationFailed(
                f"fio {operation} ended with status {status}: {one_line('fio', err) or wrong}"
            )
        return replace(outcome(operation, answer), bytes_below_cache=fetched)


def command(operation: str, job: FileOperation) -> list[str]:
    """The command line: a job of fio for each stream."""
    f = job.files
    sequential = operation in ("write", "read")
    words = [
        "fio",
        "--output-format=json",
        f"--rw={_RW[operation]}",
        f"--bs={job.block_bytes}",
        f"--direct={int(f.direct)}",
        f"--ioengine={_io_engine() if sequential else 'psync'}",
        f"--iodepth={f.depth if sequential else 1}",
        "--fallocate=none",
        "--invalidate=0",
        "--create_on_open=1",
        f"--randseed={job.seed}",
        "--thread",
        "--allow_file_create=1",
        "--group_reporting=0",
        "--fadvise_hint=0",
    ]
    if operation == "write":
        words += ["--refill_buffers=0", "--scramble_buffers=1", "--fsync_on_close=0"]
    if operation == "write" and f.fsync:
        words += ["--end_fsync=1"]
    if operation == "random_write" and f.fsync:
        words += ["--fdatasync=1"]
    for stream in range(f.streams):
        number, start = (0, (job.first_stream + stream) * f.size) if f.shared else (stream, 0)
        words += [
            f"--name=s{stream}",
            f"--filename={_escaped(f'{job.path}.{number}')}",
            f"--offset={start}",
            f"--size={f.size}",
        ]
        words += (
            [f"--io_size={job.blocks_per_stream * job.block_bytes}", "--norandommap=1"]
            if not sequential
            else []
        )
    return words


def outcome(operation: str, answer: dict[str, Any]) -> Outcome:
    """Read the outcome from fio's JSON. The slowest stream counts."""
    side = "write" if operation.endswith("write") else "read"
    jobs = answer["jobs"]
    took = max(_runtime_ns(j[side]) for j in jobs)
    cpu = sum((j["usr_cpu"] + j["sys_cpu"]) / 100 * j["job_runtime"] * 1e3 for j in jobs)
    user = sum(j["usr_cpu"] / 100 * j["job_runtime"] * 1e3 for j in jobs)
    quantiles: dict[str, float] = {}
    if operation.startswith("random"):
        latencies = [j[side]["clat_ns"] for j in jobs]
        total = sum(each["N"] for each in latencies) or 1
        quantiles = {
            "p50": sum(each["percentile"]["50.000000"] * each["N"] for each in latencies) / total,
            "p99": max(each["percentile"]["99.000000"] for each in latencies),
            "min": min(each["min"] for each in latencies),
            "mean": sum(each["mean"] * each["N"] for each in latencies) / total,
        }
    return Outcome(int(took), int(cpu), int(user), quantiles=quantiles, extra={"io": answer["fio version"]})


def _runtime_ns(side: dict[str, Any]) -> float:
    """The exact run time. fio itself rounds it to whole milliseconds, which is half a per cent of a fifth of
    a second.
    """
    runtime = side["runtime"] * 1e6
    if runtime <= 0:
        raise OperationFailed("fio measured less than a millisecond: a larger --size is needed")
    return float(runtime)


@cache
def _io_engine() -> str:
    try:
        off = Path("/proc/sys/kernel/io_uring_disabled").read_text().strip() != "0"
    except OSError:
        off = False
    return "psync" if off else "io_uring"


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:")
