"""Measures what a campaign adds to its measurements.

Virtual nodes run a command that takes a known time, and a plain loop runs the same commands before and after
each campaign. Two figures follow. `own_percent` is how much longer a campaign takes than the loop; it may be
negative if others use the machine. `own_at_most_percent` needs no loop: commands that only sleep cannot end
before their sleeps, so the time of the campaign beyond the sleeps is an upper bound of its own work.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from synthetic import synthetic_record

from peerway_measure.records import write

_SECONDS = 0.5


def campaign(
    folder: Path, nodes: int, repeats: int, at_once: int, campaigns: int, **_: Any
) -> dict[str, Any]:
    """Run campaigns, each between two halves of the loop."""
    count = nodes * repeats
    took, bare, done, used = [], [], 0, os.times()
    for _number in range(campaigns):
        with tempfile.TemporaryDirectory(dir=folder) as name:
            agent, command = _prepared(Path(name), nodes, repeats, at_once)
            before = _bare([agent, "node", command], count // 2, at_once)
            began = time.monotonic()
            run = [sys.executable, "-m", "peerway", "campaign", "run", name]
            subprocess.run(run, check=True, stdout=subprocess.DEVNULL)
            took.append(time.monotonic() - began)
            bare.append(before + _bare([agent, "node", command], count - count // 2, at_once))
            done += len(list((Path(name) / "results").glob("*.jsonl")))
    after = os.times()
    cpu = after.children_user + after.children_system - used.children_user - used.children_system
    own = [100 * (1 - loop / own) for loop, own in zip(bare, took, strict=True)]
    slept = count * _SECONDS / at_once
    return {
        "nodes": nodes,
        "repeats": repeats,
        "at_once": at_once,
        "campaigns": campaigns,
        "measurements": done,
        "seconds_each": _SECONDS,
        "wall_s": round(sum(took), 1),
        "bare_wall_s": round(sum(bare), 1),
        "own_percent": round(statistics.median(own), 1),
        "own_percents": sorted(round(value, 1) for value in own),
        "own_at_most_percent": round(100 * (1 - slept * campaigns / sum(took)), 1),
        "all_cpu_s": round(cpu, 2),  # CPU time of the campaigns, their commands and the loops
    }


def _prepared(place: Path, nodes: int, repeats: int, at_once: int) -> tuple[str, str]:
    """Make a campaign's folder; returns the agent that reaches its nodes, and the command of its test."""
    write(place / "record.jsonl", [synthetic_record(0)])
    agent = place / "agent"
    agent.write_text('#!/bin/sh\nshift\neval "$*"\n')
    agent.chmod(0o755)
    command = f"sleep {_SECONDS}; cat {place}/record.jsonl"
    (place / "campaign.toml").write_text(
        f'repeats = {repeats}\n[nodes]\nall = ["v[001-{nodes:03}]"]\n[launch]\n'
        f'agent = "{agent}"\n[limits]\nnodes_at_once = {at_once}\n'
        f'[[tests]]\nname = "t"\ncommand = "{command}"\n'
    )
    return str(agent), command


def _bare(command: list[str], count: int, at_once: int) -> float:
    """The seconds of `count` runs of a command, `at_once` of them in parallel."""
    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        for done in pool.map(
            lambda _: subprocess.run(command, capture_output=True, check=True), range(count)
        ):
            assert done.stdout
    return time.monotonic() - began
