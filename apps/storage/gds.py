"""The engine gds on a host with a GPU: file to GPU memory and back by each of its settings, in turn, beside
`cat`: the whole file read into pinned host memory, then one copy. Each line of the output is a record of one
case, with what was really active. The library and its build are not needed, only CuPy and KvikIO.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CHILD = Path(__file__).resolve().parents[2] / "python" / "peerway" / "storage" / "engines" / "gds_child.py"
SETTINGS = ("cat", "bounce", "compat", "direct")
LIMIT_S = 200


def main() -> int:
    """Measure all cases; 1 where bytes were wrong, or a setting other than direct failed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--size", type=int, default=1 << 30, help="bytes of each file")
    parser.add_argument("--block", type=int, nargs="+", default=[1 << 20, 16 << 20])
    parser.add_argument("--streams", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--rounds", type=int, default=3)
    asked = parser.parse_args()
    facts = {"folder": _file_system(asked.folder), "kernel": platform.release(), "gpu": _gpu()}
    bad = False
    with tempfile.TemporaryDirectory(dir=asked.folder, prefix="peerway-gds-") as name:
        for block in asked.block:
            for streams in asked.streams:
                found = _case(Path(name), asked.size // streams, block, streams, asked.rounds)
                for line in found:
                    print(json.dumps({"test": "storage_gds", **line, **facts}), flush=True)
                    failed = "error" in line and line["setting"] != "direct"
                    bad = bad or failed or line.get("right") is False
    return int(bad)


def _case(folder: Path, size: int, block: int, streams: int, rounds: int) -> list[dict[str, Any]]:
    """Each setting in turn: writes a new file, and reads it cold and again."""
    ns: dict[tuple[str, str], list[int]] = {}
    rest: dict[tuple[str, str], dict[str, Any]] = {}
    for number in range(rounds):
        turn = number % len(SETTINGS)
        for setting in (*SETTINGS[turn:], *SETTINGS[:turn]):
            for operation in ("write", "read_cold", "read_warm"):
                if operation == "read_cold":
                    _let_go(folder)
                if "error" in rest.get((setting, operation), {}) or (
                    setting == "cat" and (operation == "write" or streams > 1)
                ):
                    continue
                path = folder / "f"
                answer = _run(setting, operation.partition("_")[0], path, size, block, streams, number)
                rest[setting, operation] = {k: v for k, v in answer.items() if k not in ("ns", "cpu_us")}
                if "ns" in answer:
                    ns.setdefault((setting, operation), []).append(answer["ns"])
        for file in folder.iterdir():
            file.unlink()
    found = []
    for (setting, operation), more in rest.items():
        rates = [size * streams / each * 1e3 for each in ns.get((setting, operation), [])]
        line = {"setting": setting, "operation": operation, "size": size, "block": block, "streams": streams}
        if rates:
            line |= {"MBps": round(statistics.median(rates)), "MBps_all": [round(rate) for rate in rates]}
        found.append(line | more)
    return found


def _run(
    setting: str, operation: str, path: Path, size: int, block: int, streams: int, seed: int
) -> dict[str, Any]:
    if setting == "cat":
        return _cat(Path(f"{path}.0"), size)
    asked = {"setting": setting, "operation": operation, "path": str(path), "seed": seed, "size": size}
    asked |= {"block": block, "streams": streams, "shared": False}
    try:
        done = subprocess.run(
            [sys.executable, CHILD, json.dumps(asked)],
            capture_output=True, text=True, check=False, timeout=LIMIT_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"error": f"did not end within {LIMIT_S} s"}
    if done.returncode or not done.stdout.strip():
        print(f"{setting} {operation}: {done.stderr.strip()}", file=sys.stderr)
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"error": f"status {done.returncode}: {last[:300]}"}
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    extra: dict[str, Any] = answer.pop("extra")
    return answer | extra


def _cat(path: Path, size: int) -> dict[str, Any]:
    """What a script without Peerway would do. It reads the file that another setting wrote."""
    import cupy  # type: ignore[import-not-found, unused-ignore]

    if not path.exists():
        path.write_bytes(os.urandom(size))
        _let_go(path.parent)
    pinned = cupy.cuda.alloc_pinned_memory(size)
    view = memoryview((ctypes.c_char * size).from_address(pinned.ptr)).cast("B")
    ctypes.memset(pinned.ptr, 0, size)
    on_gpu = cupy.zeros(size, cupy.uint8)
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        at = 0
        while at < size and (moved := file.readinto(view[at:])):
            at += moved
    cupy.cuda.runtime.memcpy(on_gpu.data.ptr, pinned.ptr, size, cupy.cuda.runtime.memcpyHostToDevice)
    took = time.perf_counter() - began
    right = cupy.asnumpy(on_gpu).tobytes() == path.read_bytes()
    return {"ns": int(took * 1e9), "right": right, "io": "read, then one copy"}


def _let_go(folder: Path) -> None:
    """Drop our own files from the page cache, as `peerway storage` does it."""
    for path in folder.iterdir():
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def _file_system(folder: Path) -> str:
    done = subprocess.run(
        ["stat", "-f", "-c", "%T", folder], capture_output=True, text=True, check=False
    ).stdout
    return done.strip() or "unknown"


def _gpu() -> str:
    """ "" where the driver's tool is not there: the first line that needs the GPU then says more."""
    try:
        done = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    except OSError:
        return ""
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
