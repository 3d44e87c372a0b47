"""Collects facts for each record about its run: the run's number, and the state of the host, which can change
between runs.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from peerway_measure.bench import conditions
from peerway_measure.records import LOAD, RUN

if TYPE_CHECKING:
    from pathlib import Path

    from peerway_measure.bench.plan import Plan
    from peerway_measure.bench.results import Results


def runs(plan: Plan, repeat: int, results: Results) -> Iterator[Plan]:
    """What to measure in each of `repeat` runs: all cases once, with fresh ranks.

    Some conditions are the same for a whole run and differ between runs: where memory lies, which CPUs the
    ranks get, which other processes are at work. They do not average out within one run. So each repetition
    is a whole run, and the cases take turns.
    """
    began = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in range(1, repeat + 1):
        results.stamp = {RUN: f"{began}-{os.getpid()}.{number}", **host_state()}
        yield replace(plan, run=number - 1)


def host_state(root: Path = conditions.ROOT) -> dict[str, Any]:
    """Facts about this host for `extra` of a record. Empty facts are omitted."""
    now = conditions.read(root)
    fields = {
        "kernel": platform.release(),
        "governor": ", ".join(sorted(now.governors)),
        "numa": _numa(root, sorted(os.sched_getaffinity(0))),
        **_nics(root),
        "slurm_job": os.environ.get("SLURM_JOB_ID", ""),
    }
    return {LOAD: round(now.busy, 2)} | {name: text for name, text in fields.items() if text}


def _numa(root: Path, cpus: list[int]) -> str:
    """The CPUs that this process may use, and their NUMA nodes: "CPUs 0-3 of node 0 of 2"."""
    folders = list((root / "sys/devices/system/node").glob("node[0-9]*"))
    own = {int(f.name[4:]) for f in folders if any((f / f"cpu{cpu}").exists() for cpu in cpus)}
    if not own:
        return ""
    return f"CPUs {_ranges(cpus)} of node {_ranges(sorted(own))} of {len(folders)}"


def _nics(root: Path) -> dict[str, str]:
    """The firmware of InfiniBand and RoCE NICs, and the version of their driver if it has one (OFED)."""
    nics = sorted((root / "sys/class/infiniband").glob("*"))
    firmware = {_text(nic / "fw_ver") for nic in nics}
    drivers = {_text(nic / "device/driver/module/version") for nic in nics}
    return {
        "nic_firmware": ", ".join(sorted(firmware - {""})),
        "nic_driver": ", ".join(sorted(drivers - {""})),
    }


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def _ranges(numbers: list[int]) -> str:
    """[0, 1, 2, 5] -> "0-2,5"."""
    parts = []
    for _, several in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        run = [number for _, number in several]
        parts.append(f"{run[0]}-{run[-1]}" if len(run) > 1 else f"{run[0]}")
    return ",".join(parts)
