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
                    operate("let-go", _LIMIT_S, path=f"{job.path}.0")
                place.remove(f"{name}{number}")
    finally:
        place.remove()
    found: dict[str, Any] = {"size": size, "mode": mode, "rounds": rounds}
    for name, values in rates.items():
        found[f"{name}_MBps"] = round(statistics.median(values), 1)
        found[f"{name}_cpu_percent"] = round(statistics.median(cpu[name]), 1)
    for operation in ("write", "read"):
        ratios = [
            ours / theirs
            for ours, theirs in zip(rates[f"posix_{operation}"], rates[f"fio_{operation}"], strict=True)
        ]
        found[f"{operation}_posix_to_fio"] = round(statistics.median(ratios), 4)
        found[f"{operation}_ratios"] = [round(ratio, 3) for ratio in sorted(ratios)]
    return found


def campaign(folder: Path, nodes: int, repeats: int, **_: Any) -> dict[str, Any]:
    """A campaign of virtual nodes, of a command that takes a known time: what is its own?"""
    seconds = 0.5
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        write(place / "record.jsonl", [_record(0)])
        agent = place / "agent"
        agent.write_text('#!/bin/sh\nshift\neval "$*"\n')
        agent.chmod(0o755)
        (place / "campaign.toml").write_text(
            f'repeats = {repeats}\n[nodes]\nall = ["v[001-{nodes:03}]"]\n[launch]\n'
            f'agent = "{agent}"\n[limits]\nnodes_at_once = 1\n'
            f'[[tests]]\nname = "t"\ncommand = "sleep {seconds}; cat {place}/record.jsonl"\n'
        )
        began, used = time.monotonic(), os.times()
        subprocess.run(
            [sys.executable, "-m", "peerway", "campaign", "run", place], check=True, stdout=subprocess.DEVNULL
        )
        took, after = time.monotonic() - began, os.times()
        cpu = after.children_user + after.children_system - used.children_user - used.children_system
        done = len(list((place / "results").glob("*.jsonl")))
    return {
        "nodes": nodes,
        "repeats": repeats,
        "measurements": done,
        "seconds_each": seconds,
        "wall_s": round(took, 1),
        "own_percent": round(100 * (1 - done * seconds / took), 1),
        "own_s_each": round(took / done - seconds, 3),
        "runner_cpu_s": round(cpu, 2),
    }


def page(folder: Path, count: int, **_: Any) -> dict[str, Any]:
    """The page of a campaign of so many records: seconds and bytes."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        (place / "results").mkdir()
        (place / "campaign.toml").write_text(
            '[nodes]\nv100 = ["v[001-100]"]\na100 = ["a[001-100]"]\n[[tests]]\nname = "t"\ncommand = "true"\n'
        )
        write(place / "results" / "all.jsonl", [_record(i) for i in range(count)])
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
            "records": count,
            "wall_s": round(time.monotonic() - began, 2),
            "cpu_s": round(cpu, 2),
            "bytes": out.stat().st_size,
        }


def _record(number: int) -> Record:
    kind = "va"[number % 2]
    return Record.from_samples(
        [1e9 * (1 + 0.1 * ((number * 7919) % 1000) / 1000)],
        test=("file_write_bw", "file_read_cold_bw")[number // 2 % 2],
        via="posix",
        op="write",
        shape="sequential 1 MiB",
        bytes=1 << 30,
        ranks=1,
        source="host",
        target="file",
        validated=True,
        cpu_percent=None,
        host=f"{kind}{number // 4 % 100 + 1:03}",
        device="",
        driver="",
        version="0",
        extra={"node_type": f"{kind}100", "round": number // 800, "run": f"r{number // 800}"},
    )


if __name__ == "__main__":
    main()
