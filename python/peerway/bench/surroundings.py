"""What each record says of its run: which one it was, and what of the host can change between two of them."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from peerway.records import LOAD, RUN

if TYPE_CHECKING:
    from peerway.bench.plan import Plan
    from peerway.bench.results import Results

ROOT = Path("/")
_WINDOW_S = 0.2  # in which the CPU time of other work is counted


def runs(plan: Plan, results: Results) -> Iterator[Plan]:
    """What to measure in each run: all cases once, with fresh ranks. What differs from run to run (where
    memory lies, which CPUs the ranks get, who else is at work) does not average out within one, so that a
    repeat is a whole run, and the cases take turns.
    """
    began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in range(1, plan.repeat + 1):
        results.stamp = {RUN: f"{began}-{os.getpid()}.{number}", **surroundings()}
        yield replace(plan, repeat=1, run=number - 1)


def surroundings(root: Path = ROOT) -> dict[str, Any]:
    """What of this host the extra of a record tells. What there is none of is left out. This process sleeps
    meanwhile, so that the CPU time that is used is others'.
    """
    cpus = sorted(os.sched_getaffinity(0))
    found = {
        "kernel": platform.release(),
        "governor": ", ".join(sorted(_governors(root, cpus))),
        "numa": _numa(root, cpus),
        "slurm_job": os.environ.get("SLURM_JOB_ID", ""),
    }
    return {LOAD: _load(root, cpus)} | {name: text for name, text in found.items() if text}


def _governors(root: Path, cpus: list[int]) -> set[str]:
    folder = root / "sys/devices/system/cpu"
    return {_text(folder / f"cpu{cpu}/cpufreq/scaling_governor").strip() for cpu in cpus} - {""}


def _numa(root: Path, cpus: list[int]) -> str:
    """The CPUs that this process may use, and the NUMA nodes that they are of: "CPUs 0-3 of node 0 of 2"."""
    folders = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    own = {int(f.name[4:]) for f in folders if any((f / f"cpu{cpu}").exists() for cpu in cpus)}
    if not own:
        return ""
    return f"CPUs {_ranges(cpus)} of node {_ranges(sorted(own))} of {len(folders)}"


def _ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] -> "0-2,5"."""
    parts = []
    for _, several in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in several]
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}")
    return ",".join(parts)


def _load(root: Path, cpus: list[int]) -> float:
    """How many of the CPUs other work keeps busy."""
    start, before = time.monotonic(), _busy_s(root, cpus)
    time.sleep(_WINDOW_S)
    busy = _busy_s(root, cpus) - before
    return round(min(max(0.0, busy) / (time.monotonic() - start), len(cpus)), 2)


def _busy_s(root: Path, cpus: list[int]) -> float:
    """The seconds that the CPUs have worked since the start, for whomever: for users, the kernel, interrupts
    and other guests of the same hardware.
    """
    total = 0
    for line in _text(root / "proc/stat").splitlines():
        name, *times = line.split() or [""]
        if name.startswith("cpu") and name[3:].isdecimal() and int(name[3:]) in cpus:
            user, nice, system, _idle, _wait, *rest = map(int, times)
            total += user + nice + system + sum(rest[:3])
    return total / os.sysconf("SC_CLK_TCK")


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""  # not on this kernel, or not in this container
