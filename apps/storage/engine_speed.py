"""Compares the engine posix with fio, in an order that is random in each round.

The ratios within a round are compared. Each engine writes a file of its own, and all read the same file. With
O_DIRECT, fio is measured twice: by default, and with its buffers in huge pages like those of posix.

All begin in the same state. The file is read once before each measured read, so that no read finds it warmer
in caches below this machine; then it is dropped from the page cache, and `resident_before_reads` is what
remained there. Each measured write directly follows another one, whose pages were dropped. Some virtual
machines return free memory to their host and then fill the page cache at a fraction of their speed until they
have it back: without this, an engine that starts after a pause would be slower.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import floor, sqrt
from pathlib import Path
from typing import Any

from peerway_measure.storage.engines import ENGINES
from peerway_measure.storage.engines.base import FileOperation, Outcome
from peerway_measure.storage.folder import RunFolder
from peerway_measure.storage.operation import operate
from peerway_measure.storage.request import Files

_LIMIT_S = 600
_HUGE = "fio_huge"


def engines(folder: Path, size: int, rounds: int, minutes: float, mode: str, **_: Any) -> dict[str, Any]:
    """Measure sequential writes and reads: the medians of each engine, and of the ratios with their interval.

    Fewer rounds are made if they would take more than `minutes`.
    """
    files = Files(size, 1 << 20, 1, mode, False, frozenset(("write", "read")))
    arms = ("posix", "fio", *([_HUGE] if files.direct else []))
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    resident = 0
    place = RunFolder.make(folder, _LIMIT_S)
    order, began, done = random.Random(1), time.monotonic(), 0
    try:
        while done < rounds and time.monotonic() - began < minutes * 60:
            done += 1
            read = FileOperation(place.prefix("read"), files, done, _LIMIT_S, files.block)
            _run("posix", "write", read)
            for arm in order.sample(arms, len(arms)):
                own = FileOperation(place.prefix(f"{arm}{done}"), files, done, _LIMIT_S, files.block)
                outcomes.setdefault((arm, "write"), []).append(_run(arm, "write", own))
                place.remove(own.path.name.partition(".")[2])
            for arm in order.sample(arms, len(arms)):
                _run("posix", "read", read)
                resident += operate("residency", _LIMIT_S, path=f"{read.path}.0")["resident"]
                outcomes.setdefault((arm, "read"), []).append(_run(arm, "read", read))
            place.remove("read")
    finally:
        place.remove()
    known = {"size": size, "mode": mode, "rounds": done, "resident_before_reads": resident}
    return known | {"disk": _disk(folder)} | _summary(outcomes, arms, size)


def _disk(folder: Path) -> str:
    """The device of the folder, as the kernel calls it."""
    device = folder.stat().st_dev
    block = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}").resolve()
    behind = block / "loop" / "backing_file"
    if behind.exists() and behind.read_text().startswith("/dev/shm/"):
        return "loop device in memory"
    return "virtual disk" if block.name.startswith("vd") else block.name


def _summary(
    outcomes: dict[tuple[str, str], list[Outcome]], arms: tuple[str, ...], size: int
) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for (arm, operation), several in outcomes.items():
        name = f"{arm}_{operation}"
        fields[f"{name}_MBps"] = round(statistics.median(size / o.elapsed_ns * 1e3 for o in several), 1)
        fields[f"{name}_cpu_percent"] = round(
            statistics.median(o.cpu_us * 1e5 / o.elapsed_ns for o in several), 1
        )
        own = statistics.median(o.user_us * 1e5 / o.elapsed_ns for o in several)
        fields[f"{name}_own_percent"] = round(own, 1)  # besides the kernel's copy
    for operation in ("write", "read"):
        for arm in arms[1:]:
            pairs = zip(outcomes[arm, operation], outcomes["posix", operation], strict=True)
            ratios = sorted(theirs.elapsed_ns / ours.elapsed_ns for theirs, ours in pairs)
            name = f"{operation}_posix_to_{arm}"
            fields[name] = round(statistics.median(ratios), 4)
            fields[f"{name}_interval"] = [round(end, 4) for end in _interval(ratios)]
            fields[f"{name}_ratios"] = [round(ratio, 3) for ratio in ratios]
    return fields


def _run(arm: str, operation: str, job: FileOperation) -> Outcome:
    with _buffers(arm):
        outcome = ENGINES[arm.partition("_")[0]].run(operation, job)
    operate("let-go", _LIMIT_S, path=f"{job.path}.0")
    return outcome


@contextmanager
def _buffers(arm: str) -> Iterator[None]:
    """Put fio's buffers in huge pages, with a glibc tunable (from 2.35 on)."""
    before = os.environ.get("GLIBC_TUNABLES")
    if arm == _HUGE:
        os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
    try:
        yield
    finally:
        if arm == _HUGE:
            del os.environ["GLIBC_TUNABLES"]
            if before is not None:
                os.environ["GLIBC_TUNABLES"] = before


def _interval(ordered: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median by order statistics, valid for any distribution."""
    below = max(0, floor(len(ordered) / 2 - 0.98 * sqrt(len(ordered))))
    return ordered[below], ordered[-1 - below]
