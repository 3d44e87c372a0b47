"""The process that moves bytes between GPU memory and files for the engine gds. Its argument is the job, its
answer a line of JSON.

It has not yet run on a machine whose file system supports GPUDirect Storage.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import resource
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NVIDIA_FS = Path("/proc/driver/nvidia-fs/stats")  # includes transfers of other processes


@dataclass(frozen=True)
class Part:
    """What one stream moves: a whole buffer of the GPU, and its place in a file."""

    buffer: Any
    name: str
    start: int


@dataclass(frozen=True)
class Counts:
    """Counters that are read before and after: seconds, seconds of CPUs, bytes from below the page cache, and
    the operations of nvidia-fs.
    """

    at: float
    cpu: float
    fetched: int
    moved: int | None

    @classmethod
    def now(cls) -> Counts:
        """The present counts."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu, fetched = used.ru_utime + used.ru_stime, used.ru_inblock * 512
        return cls(time.perf_counter(), cpu, fetched, moved(_text(NVIDIA_FS)))


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Carry out the job, and report how long it took and which mechanism the library used."""
    import cupy  # type: ignore[import-not-found, unused-ignore]
    import kvikio  # type: ignore[import-not-found, unused-ignore]
    import kvikio.cufile_driver  # type: ignore[import-not-found, unused-ignore]
    import kvikio.defaults  # type: ignore[import-not-found, unused-ignore]

    setting = request["setting"]
    if setting != "bounce":
        mode = kvikio.CompatMode.OFF if setting == "direct" else kvikio.CompatMode.ON
        kvikio.defaults.set("compat_mode", mode)
    parts = _parts(request)
    before, after = _move(request, parts)
    really = active(
        setting == "direct" and kvikio.defaults.get("compat_mode") != kvikio.CompatMode.ON,
        bool(kvikio.cufile_driver.get("is_gds_available")),
        before.moved,
        after.moved,
    )
    return {
        "ns": int((after.at - before.at) * 1e9),
        "cpu_us": int((after.cpu - before.cpu) * 1e6),
        # The kernel may not count bytes that go from the disk directly to the GPU.
        "fetched": after.fetched - before.fetched if really["gds_active"] is False else None,
        # After reads and writes alike, the GPU must hold what POSIX reads from the file.
        "right": all(
            _on_disk(p.name, p.start, p.buffer.size) == cupy.asnumpy(p.buffer).tobytes() for p in parts
        ),
        "extra": {**really, "io": f"KvikIO {kvikio.__version__}"},
    }


def _parts(request: dict[str, Any]) -> list[Part]:
    """The part of each stream. Files to be written are created without truncating what other nodes wrote."""
    import cupy  # type: ignore[import-not-found, unused-ignore]

    write, size, shared = request["operation"] == "write", request["size"], request["shared"]
    random = cupy.random.RandomState(request["seed"] % (1 << 32))
    parts = []
    for number in range(request["streams"]):
        buffer = random.randint(0, 256, size, dtype=cupy.uint8) if write else cupy.zeros(size, cupy.uint8)
        start = (request["first"] + number) * size if shared else 0
        parts.append(Part(buffer, f"{request['path']}.{0 if shared else number}", start))
    for part in parts if write else ():
        os.close(os.open(part.name, os.O_WRONLY | os.O_CREAT, 0o600))
    return parts


def _move(request: dict[str, Any], parts: list[Part]) -> tuple[Counts, Counts]:
    """Move all parts at once. Returns the counts when the last stream was ready, and when the last
    had ended.
    """
    import cupy  # type: ignore[import-not-found, unused-ignore]

    write = request["operation"] == "write"
    move = _bounce if request["setting"] == "bounce" else _cufile
    begun: list[Counts] = []
    failures: list[BaseException] = []
    together = threading.Barrier(len(parts), lambda: begun.append(Counts.now()))

    def stream(part: Part) -> None:
        try:
            cupy.cuda.Device(0).use()
            move(part.buffer, part.name, part.start, request["block"], write, together)
            if write and "fsync" in request["mode"]:
                _fsync(part.name)
        except BaseException as error:
            failures.append(error)
            together.abort()

    threads = [threading.Thread(target=stream, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended = Counts.now()
    if failures:
        raise failures[0]
    return begun[0], ended


def _fsync(name: str) -> None:
    descriptor = os.open(name, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _cufile(buffer: Any, name: str, start: int, block: int, write: bool, together: threading.Barrier) -> None:
    import kvikio  # type: ignore[import-not-found, unused-ignore]

    flags = "r+" if write else "r"
    with kvikio.CuFile(name, flags) as file:
        together.wait()
        for at in range(0, buffer.size, block):
            part = buffer[at : at + block]
            moved = (file.raw_write if write else file.raw_read)(part, file_offset=start + at)
            if moved != part.size:
                raise OSError(f"{moved} of {part.size} bytes were moved at {start + at} of {name}")


def _bounce(buffer: Any, name: str, start: int, block: int, write: bool, together: threading.Barrier) -> None:
    import cupy  # type: ignore[import-not-found, unused-ignore]

    pinned = cupy.cuda.alloc_pinned_memory(block)
    view = memoryview((ctypes.c_char * block).from_address(pinned.ptr)).cast("B")
    descriptor = os.open(name, (os.O_WRONLY | os.O_CREAT) if write else os.O_RDONLY, 0o600)
    together.wait()
    for at in range(0, buffer.size, block):
        part = buffer[at : at + block]
        if write:
            cupy.cuda.runtime.memcpy(
                pinned.ptr, part.data.ptr, part.size, cupy.cuda.runtime.memcpyDeviceToHost
            )
            moved = os.pwrite(descriptor, view[: part.size], start + at)
        else:
            moved = os.preadv(descriptor, [view[: part.size]], start + at)
            cupy.cuda.runtime.memcpy(
                part.data.ptr, pinned.ptr, part.size, cupy.cuda.runtime.memcpyHostToDevice
            )
        if moved != part.size:
            raise OSError(f"{moved} of {part.size} bytes were moved at {start + at} of {name}")
    os.close(descriptor)


def _on_disk(name: str, start: int, size: int) -> bytes:
    with open(name, "rb") as file:  # noqa: PTH123
        file.seek(start)
        return file.read(size)


def active(direct: bool, available: bool, before: int | None, after: int | None) -> dict[str, str | bool]:
    """Whether GPUDirect Storage was used, and how that is known: never from the request.

    cuFile falls back on POSIX without a word. So its use counts as proved only if nvidia-fs has counted
    operations meanwhile.
    """
    if not direct:
        return {"gds_active": False, "gds_known_by": "the setting, which does not use it"}
    if not available:
        return {"gds_active": False, "gds_known_by": "cuFile, which says that it is not available"}
    if before is None or after is None:
        return {"gds_active": "unknown", "gds_known_by": "nothing: nvidia-fs keeps no statistics here"}
    return {"gds_active": after > before, "gds_known_by": "the operations that nvidia-fs has counted"}


def moved(statistics: str) -> int | None:
    """The reads and writes that nvidia-fs has done; None if it does not count them."""
    if not re.search(r"^IO stats: Enabled", statistics, re.MULTILINE):
        return None
    return sum(int(n) for n in re.findall(r"^(?:Reads|Writes)\s*: n=\d+ ok=(\d+)", statistics, re.MULTILINE))


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    os.chdir(request["log"])  # cuFile writes its log into the current folder
    print(json.dumps(main(request)))
