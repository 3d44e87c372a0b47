"""Measures how long it takes to make a campaign's page, and how large the page is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from synthetic import TESTS, synthetic_record

from peerway_measure.records import write


def page(folder: Path, count: int, **_: Any) -> dict[str, Any]:
    """Make the page of a campaign with `count` records of `peerway storage`; returns seconds and bytes.

    There are 46 nodes and 25 rounds, with one file for each measurement.
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
            many = [synthetic_record(measurement * each + i, own, kind, number, i) for i in range(each)]
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
            "tests": min(each, TESTS),
            "wall_s": round(time.monotonic() - began, 2),
            "cpu_s": round(cpu, 2),
            "bytes": out.stat().st_size,
        }
