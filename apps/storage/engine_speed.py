"""The engine posix beside fio, in an order that is drawn anew each round: what is compared are the ratios of
a round. Each writes a file of its own, and all read one and the same file.

With O_DIRECT fio is measured twice: as it comes, and with its buffers in huge pages as those of posix are.

All begin in the same state. A file is read once before each read of it, so that none finds it warmer than
another below this machine; then it is dropped from the page cache, and `resident_before_reads` is what was
left of it. Before a buffered write another file is written and dropped. Some virtual machines give their free
memory back to the host, and fill the page cache at a fraction of their speed until they have it again:
without this, whoever starts later after a pause is the slower one.
"""

from __future__ import annotations

import os
import random
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import floor, sqrt
from pathlib import Path
from typing import Any

from peerway.storage.engines import ENGINES
from peerway.storage.engines.base import Job, Outcome
from peerway.storage.folder import RunFolder
from peerway.storage.operation import operate
from peerway.storage.request import Files

_LIMIT_S = 600
_HUGE = "fio_huge"


def engines(folder: Path, size: int, rounds: int, mode: str, **_: Any) -> dict[str, Any]:
    """Sequential writes and reads of a file: medians of each, and of the ratios with their interval."""
    files = Files(size, 1 << 20, 1, mode, False, frozenset(("write", "read")))
    arms = ("posix", "fio", *([_HUGE] if files.direct else []))
    outcomes: dict[tuple[str, str], list[Outcome]] = {}
    resident = 0
    place = RunFolder.make(folder, _LIMIT_S)
    order = random.Random(1)
    try:
        for number in range(rounds):
            for arm in order.sample(arms, len(arms)):
                own = Job(place.prefix(f"{arm}{number}"), files, number + 1, _LIMIT_S, files.block)
                if not files.direct:
                    _have_memory("write", replace(own, path=place.prefix("before")), place)
                outcomes.setdefault((arm, "write"), []).append(_run(arm, "write", own))
                place.remove(own.path.name.partition(".")[2])
            read = Job(place.prefix("read"), files, number + 1, _LIMIT_S, files.block)
            _run("posix", "write", read)
            for arm in order.sample(arms, len(arms)):
                _have_memory("read", read, place)
                resident += operate("residency", _LIMIT_S, path=f"{read.path}.0")["resident"]
                outcomes.setdefault((arm, "read"), []).append(_run(arm, "read", read))
            place.remove("read")
    finally:
        place.remove()
    known = {"size": size, "mode": mode, "rounds": rounds, "resident_before_reads": resident}
    return known | _told(outcomes, arms, size)


def _told(outcomes: dict[tuple[str, str], list[Outcome]], arms: tuple[str, ...], size: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for (arm, operation), several in outcomes.items():
        name = f"{arm}_{operation}"
        found[f"{name}_MBps"] = round(statistics.median(size / o.ns * 1e3 for o in several), 1)
        found[f"{name}_cpu_percent"] = round(statistics.median(o.cpu_us * 1e5 / o.ns for o in several), 1)
        own = statistics.median(o.user_us * 1e5 / o.ns for o in several)
        found[f"{name}_own_percent"] = round(own, 1)  # beside the kernel's copy
    for operation in ("write", "read"):
        for arm in arms[1:]:
            pairs = zip(outcomes[arm, operation], outcomes["posix", operation], strict=True)
            ratios = sorted(theirs.ns / ours.ns for theirs, ours in pairs)
            name = f"{operation}_posix_to_{arm}"
            found[name] = round(statistics.median(ratios), 4)
            found[f"{name}_interval"] = [round(end, 4) for end in _interval(ratios)]
            found[f"{name}_ratios"] = [round(ratio, 3) for ratio in ratios]
    return found


def _run(arm: str, operation: str, job: Job) -> Outcome:
    with _buffers(arm):
        outcome = ENGINES[arm.partition("_")[0]].run(operation, job)
    operate("let-go", _LIMIT_S, path=f"{job.path}.0")
    return outcome


def _have_memory(operation: str, job: Job, place: RunFolder) -> None:
    """Do it once before it is measured, and drop from the page cache what that brought there."""
    _run("posix", operation, job)
    if operation == "write":
        place.remove(job.path.name.partition(".")[2])


@contextmanager
def _buffers(arm: str) -> Iterator[None]:
    """fio's in huge pages, by a tunable of glibc from 2.35 on."""
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
    """Of the median, with 95 %: the order statistics between which it lies whatever the distribution."""
    below = max(0, floor(len(ordered) / 2 - 0.98 * sqrt(len(ordered))))
    return ordered[below], ordered[-1 - below]
