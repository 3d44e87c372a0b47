"""The engine gds on a host with a GPU, as `peerway storage` runs it, beside `cat`: the whole file read into
pinned host memory, then one copy. Each round has all three settings of gds in a random order, and cat before
or after them. Each line of the output is a record of one setting and operation, with what was really active.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from peerway_common.units import size_text
from peerway_measure import records
from peerway_measure.bench import machine
from peerway_measure.bench.shapes import parse_size
from peerway_measure.storage import place as places
from peerway_measure.storage.operation import operate
from peerway_measure.storage.states import test_of as read_of

SETTINGS = ("direct", "compat", "bounce")
OPERATIONS = {"file_write_bw": "write", read_of("cold"): "read_cold", read_of("warm_here"): "read_warm"}
LIMIT_S = 60


class Study:
    """The results of all rounds, by setting and operation."""

    def __init__(self, folder: Path, size: int, block: int, streams: int) -> None:
        self.folder, self.size, self.block, self.streams = folder, size, block, streams
        self.rates: dict[tuple[str, str], list[float]] = defaultdict(list)
        self.states: dict[tuple[str, str], dict[str, Any]] = {}
        self.notes: dict[str, str] = {}

    def gds(self) -> None:
        """Run the command once; it writes a file with each setting and reads it in each state."""
        out = self.folder / "records.jsonl"
        command = [sys.executable, "-m", "peerway", "storage", self.folder, "write", "read"]
        command += ["--engine", "gds", "--size", self.size, "--block", self.block, "--streams", self.streams]
        command += ["--states", "cold,warm_here", "--limit", LIMIT_S, "--out", out]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        print(done.stdout, done.stderr, file=sys.stderr)
        for line in done.stderr.splitlines():
            for setting in SETTINGS:
                if f"by gds/{setting} (" in line:
                    self.notes.setdefault(setting, line.partition("was not measured: ")[2] or line)
        for record in records.read(out) if out.exists() else ():
            key = record.via.removeprefix("gds/"), OPERATIONS.get(record.test, "read_unproved")
            known = ("gds_active", "gds_known_by", "state_proved", "state_proof", "io")
            notes = {name: record.extra[name] for name in known if name in record.extra}
            right = record.validated and self.states.get(key, {}).get("right", True)
            self.rates[key].append(record.bandwidth_MBps)
            self.states[key] = {"right": right, **notes}
        out.unlink(missing_ok=True)

    def cat(self) -> None:
        """Do what a script without Peerway would do, with a file of its own."""
        path = self.folder / "cat"
        if not path.exists():
            path.write_bytes(os.urandom(self.size))
        for operation in ("read_cold", "read_warm"):
            if operation == "read_cold":
                operate("let-go", LIMIT_S, path=path)
            took, right = _cat(path, self.size)
            self.rates["cat", operation].append(self.size / took * 1e3)
            self.states["cat", operation] = {"right": right, "io": "read, then one copy"}

    def lines(self) -> list[dict[str, Any]]:
        """A record for each setting and operation; for a setting without results, why."""
        lines = []
        sizes = {"size": self.size, "block": self.block, "streams": self.streams}
        of_cat = {"size": self.size, "block": self.size, "streams": 1}
        for (setting, operation), rates in self.rates.items():
            rate = {"MBps": round(statistics.median(rates)), "MBps_all": [round(each) for each in rates]}
            notes = self.states[setting, operation]
            parameters = of_cat if setting == "cat" else sizes
            lines.append({"setting": setting, "operation": operation, **parameters, **rate, **notes})
        for setting in SETTINGS:
            if not any(setting == each for each, _ in self.rates):
                why = self.notes.get(setting, "it gave no record, and did not say why")
                lines.append({"setting": setting, "operation": "all", **sizes, "error": why[:400]})
        return lines


def main() -> int:
    """Measure and print the records; returns 1 if bytes were wrong, or a setting other than direct failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--size", default="1G", help="bytes of each stream's file")
    parser.add_argument("--block", default="1M", help="bytes of one read or write")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3600, help="begin no round later")
    parser.add_argument(
        "--table", type=Path, help="only print the table of docs/measure/storage.md from these records"
    )
    options = parser.parse_args()
    if options.table:
        print(*table([json.loads(line) for line in options.table.read_text().splitlines()]), sep="\n")
        return 0
    if lacking := [name for name in ("cupy", "kvikio") if importlib.util.find_spec(name) is None]:
        print(f"{' and '.join(lacking)} cannot be imported (docs/measure/storage.md)", file=sys.stderr)
        return 2
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix="peerway-gds-") as name:
        study = Study(Path(name), parse_size(options.size), parse_size(options.block), options.streams)
        done = 0
        while done < options.rounds and (not done or time.monotonic() - began < options.seconds):
            for arm in (study.gds, study.cat)[:: 1 if done % 2 else -1]:
                arm()
            done += 1
    facts = {
        "rounds": done,
        "folder": _file_system(options.folder),
        "kernel": platform.release(),
        "gpu": _gpu(),
        "command": machine.recorded_command(
            ["python", "apps/storage/gds.py", *sys.argv[1:]], {options.folder: "FOLDER"}
        ),
        "date": records.now()[:10],
    }
    lines = study.lines()
    for line in lines:
        print(json.dumps({"test": "storage_gds", **line, **facts}), flush=True)
    failed = {line["setting"] for line in lines if "error" in line} - {"direct"}
    return int(bool(failed) or any(line.get("right") is False for line in lines))


def table(lines: list[dict[str, Any]]) -> list[str]:
    """The rows of docs/measure/storage.md: one for each GPU, setting and number of streams."""
    rows: dict[tuple[str, ...], dict[str, dict[str, Any]]] = {}
    for line in lines:
        gpu = line["gpu"].partition(",")[0].removeprefix("NVIDIA ")
        block = "whole file" if line["setting"] == "cat" else size_text(line["block"])
        size = size_text(line["size"])
        key: tuple[str, ...] = (gpu, line["setting"], f"{line['streams']} of {size}", block)
        rows.setdefault(key, {})[line["operation"]] = line
    cells_of = []
    for key, several in rows.items():
        rates = [several.get(operation, {}).get("MBps") for operation in OPERATIONS.values()]
        active = {str(line.get("gds_active", "-")) for line in several.values() if "error" not in line}
        cells = ["-" if rate is None else f"{rate / 1000:.1f} GB/s" for rate in rates]
        words = {"False": "not active", "True": "active"}
        state = ", ".join(sorted(words.get(each, each) for each in active)) or "failed"
        cells_of.append(f"| {' | '.join([*key, *cells, state])} |")
    return cells_of


def _cat(path: Path, size: int) -> tuple[int, bool]:
    """The nanoseconds of the read and copy, and whether the GPU then has the file's content."""
    import cupy  # type: ignore[import-not-found, unused-ignore]

    pinned = cupy.cuda.alloc_pinned_memory(size)
    view = memoryview((ctypes.c_char * size).from_address(pinned.ptr)).cast("B")
    ctypes.memset(pinned.ptr, 0, size)
    on_gpu = cupy.zeros(size, cupy.uint8)
    began = time.perf_counter_ns()
    with path.open("rb", buffering=0) as file:
        at = 0
        while at < size and (moved := file.readinto(view[at:])):
            at += moved
    cupy.cuda.runtime.memcpy(on_gpu.data.ptr, pinned.ptr, size, cupy.cuda.runtime.memcpyHostToDevice)
    took = time.perf_counter_ns() - began
    return took, cupy.asnumpy(on_gpu).tobytes() == path.read_bytes()


def _file_system(folder: Path) -> str:
    device = folder.stat().st_dev
    return places.find(folder.absolute(), f"{os.major(device)}:{os.minor(device)}").file_system


def _gpu() -> str:
    """The GPU's name and driver version; empty without nvidia-smi."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader", "--id=0"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
