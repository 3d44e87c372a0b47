"""How fast `peerway storage` and `peerway campaign` themselves are: the engine posix beside fio in turn on
one folder, the share of a campaign's time that is its own, and the page of 100,000 records. Each line of
the output is a record of one of these, with its command and the load of the machine.
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import click

from peerway.bench.surroundings import surroundings
from peerway.records import Record, now, write
from peerway.storage.engines import ENGINES
from peerway.storage.engines.base import Job
from peerway.storage.folder import RunFolder
from peerway.storage.operation import operate
from peerway.storage.request import Files

_LIMIT_S = 600


@click.command()
@click.argument("what", type=click.Choice(["engines", "campaign", "page"]))
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False, exists=True), default=Path())
@click.option("--size", default=1 << 30, show_default=True, help="engines: bytes of the file.")
@click.option("--rounds", default=10, show_default=True, help="engines: of both engines, in turn.")
@click.option(
    "--mode", type=click.Choice(["buffered", "fsync", "direct"]), default="buffered", show_default=True
)
@click.option("--nodes", default=46, show_default=True, help="campaign: virtual nodes.")
@click.option("--at-once", default=4, show_default=True, help="campaign: nodes at the same time.")
@click.option("--repeats", default=25, show_default=True, help="campaign: rounds.")
@click.option("--records", "count", default=100_000, show_default=True, help="page: records.")
def main(what: str, folder: Path, **asked: Any) -> None:
    """Measure one of them, and print its record."""
    before = surroundings()
    measures: dict[str, Callable[..., dict[str, Any]]] = {
        "engines": engines,
        "campaign": campaign,
        "page": page,
    }
    found = measures[what](folder.absolute(), **asked)
    program = shlex.join(["python", "apps/storage/speed.py", *sys.argv[1:]])
    line = {
        "test": f"storage_{what}",
        **found,
        "load_before": before["load"],
        "cpus": os.cpu_count(),
        "time": now(),
        "command": program,
    }
    print(json.dumps(line))


def engines(folder: Path, size: int, rounds: int, mode: str, **_: Any) -> dict[str, Any]:
    """Sequential writes and reads of one file by each engine in turn: medians, and those of the ratios."""
    files = Files(size, 1 << 20, 1, mode, False, frozenset(("write", "read")))
    rates: dict[str, list[float]] = {}
    cpu: dict[str, list[float]] = {}
    own: dict[str, list[float]] = {}
    place = RunFolder.make(folder, _LIMIT_S)
    try:
        for number in range(rounds):
            order = ("posix", "fio") if number % 2 else ("fio", "posix")
            for name in order:
                job = Job(place.prefix(f"{name}{number}"), files, number + 1, _LIMIT_S, files.block)
                for operation in ("write", "read"):
                    outcome = ENGINES[name].run(operation, job)
                    rates.setdefault(f"{name}_{operation}", []).append(size / outcome.ns * 1e3)
                    cpu.setdefault(f"{name}_{operation}", []).append(outcome.cpu_us * 1e3 / outcome.ns * 100)
                    own.setdefault(f"{name}_{operation}", []).append(outcome.user_us * 1e5 / outcome.ns)
                    operate("let-go", _LIMIT_S, path=f"{job.path}.0")
                place.remove(f"{name}{number}")
    finally:
        place.remove()
    found: dict[str, Any] = {"size": size, "mode": mode, "rounds": rounds}
    for name, values in rates.items():
        found[f"{name}_MBps"] = round(statistics.median(values), 1)
        found[f"{name}_cpu_percent"] = round(statistics.median(cpu[name]), 1)
        found[f"{name}_own_percent"] = round(statistics.median(own[name]), 1)  # beside the kernel's copy
    for operation in ("write", "read"):
        ratios = [
            ours / theirs
            for ours, theirs in zip(rates[f"posix_{operation}"], rates[f"fio_{operation}"], strict=True)
        ]
        found[f"{operation}_posix_to_fio"] = round(statistics.median(ratios), 4)
        found[f"{operation}_ratios"] = [round(ratio, 3) for ratio in sorted(ratios)]
    return found


def campaign(folder: Path, nodes: int, repeats: int, at_once: int, **_: Any) -> dict[str, Any]:
    """A campaign of virtual nodes, of a command that takes a known time, and the same commands by a plain
    loop, half of them before it and half after: what is more is the campaign's own.
    """
    seconds = 0.5
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write(place / "record.jsonl", [_record(0)])
        agent = place / "agent"
        agent.write_text('#!/bin/sh\nshift\neval "$*"\n')
        agent.chmod(0o755)
        command = f"sleep {seconds}; cat {place}/record.jsonl"
        (place / "campaign.toml").write_text(
            f'repeats = {repeats}\n[nodes]\nall = ["v[001-{nodes:03}]"]\n[launch]\n'
            f'agent = "{agent}"\n[limits]\nnodes_at_once = {at_once}\n'
            f'[[tests]]\nname = "t"\ncommand = "{command}"\n'
        )
        half = nodes * repeats // 2
        bare = _bare([str(agent), "node", command], half, at_once)
        began, used = time.monotonic(), os.times()
        subprocess.run(
            [sys.executable, "-m", "peerway", "campaign", "run", place], check=True, stdout=subprocess.DEVNULL
        )
        took, after = time.monotonic() - began, os.times()
        bare += _bare([str(agent), "node", command], nodes * repeats - half, at_once)
        cpu = after.children_user + after.children_system - used.children_user - used.children_system
        done = len(list((place / "results").glob("*.jsonl")))
    return {
        "nodes": nodes,
        "repeats": repeats,
        "at_once": at_once,
        "measurements": done,
        "seconds_each": seconds,
        "wall_s": round(took, 1),
        "bare_wall_s": round(bare, 1),
        "own_percent": round(100 * (1 - bare / took), 1),
        "runner_cpu_s": round(cpu, 2),
    }


def _bare(command: list[str], count: int, at_once: int) -> float:
    """Seconds of so many runs of a command, as many at once."""
    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        for done in pool.map(
            lambda _: subprocess.run(command, capture_output=True, check=True), range(count)
        ):
            assert done.stdout
    return time.monotonic() - began


def page(folder: Path, count: int, **_: Any) -> dict[str, Any]:
    """The page of a campaign of so many records, as `peerway storage` makes them: 46 nodes, 25 rounds, and a
    file for each measurement. Seconds and bytes.
    """
    nodes, rounds = 46, 25
    each = -(-count // (nodes * rounds))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        (place / "results").mkdir()
        (place / "campaign.toml").write_text(
            f'repeats = {rounds}\n[nodes]\nv100 = ["v[01-23]"]\na100 = ["a[01-23]"]\n'
            '[[tests]]\nname = "t"\ncommand = "true"\n'
        )
        for measurement in range(nodes * rounds):
            number, node = divmod(measurement, nodes)
            kind, own = "va"[node % 2], f"{'va'[node % 2]}{node // 2 + 1:02}"
            many = [_record(measurement * each + i, own, kind, number, i) for i in range(each)]
            write(place / "results" / f"{number:04}.t.{own}.jsonl", many)
        began, used = time.monotonic(), os.times()
        out = place / "page.html"
        subprocess.run(
            [sys.executable, "-m", "peerway", "campaign", "report", place, "-o", out],
            check=True,
            stderr=subprocess.DEVNULL,
        )
        after = os.times()
        cpu = after.children_user + after.children_system - used.children_user - used.children_system
        return {
            "records": each * nodes * rounds,
            "tests": min(each, _TESTS),
            "wall_s": round(time.monotonic() - began, 2),
            "cpu_s": round(cpu, 2),
            "bytes": out.stat().st_size,
        }


_TESTS = 40  # of one `peerway storage` with three numbers of streams


def _record(luck: int, node: str = "v01", kind: str = "v", number: int = 0, test: int = 0) -> Record:
    return Record.from_samples(
        [1e9 * (1 + 0.1 * ((luck * 7919) % 1000) / 1000)],
        test=("file_write_bw", "file_read_cold_bw", "file_read_warm_here_bw")[test % 3],
        via="posix",
        op="write",
        shape=f"sequential {1 << test % _TESTS // 12} MiB",
        bytes=1 << 30,
        ranks=test % _TESTS // 3 + 1,
        source="host",
        target="file",
        validated=True,
        cpu_percent=None,
        host=node,
        device="",
        driver="",
        version="0",
        command="peerway storage /scratch/me write read --size 1G --streams 1,4,all --out -",
        extra={
            "node_type": f"{kind}100", "mount_point": "/scratch", "file_system": "lustre", "kernel": "6.1.0",
            "mount_options": "rw,flock,lazystatfs", "fill_percent": 61.2, "load": 0.4, "io": "io_uring",
            "iterations_fixed": True, "state": "cold", "state_proved": True, "fetched_bytes": 1 << 30,
            "state_proof": "cachestat and Lustre osc", "round": number, "run": f"r{luck // 87}",
            "campaign": "before",
        },
    )  # fmt: skip


if __name__ == "__main__":
    main()
