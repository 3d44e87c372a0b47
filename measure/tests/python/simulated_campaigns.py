"""Campaigns with a known truth, made by seed: what the table by node type finds of it, and what it invents.

46 nodes of four types, 25 rounds over 50 hours (or more of both), a spread of 5 to 15 % between measurements
of one node, 3 % between nodes of a type. Of the four types one changes by 30 %, one by 3.8 %, two not at all.
The background is calm; or it drifts with the day by 5 %, each side from its own hour; or neighbouring rounds
are correlated besides (0.5, 2 %). `python measure/tests/python/simulated_campaigns.py` measures 1,000 of each
kind, and how often the interval of 95 % holds the truth.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import click
import numpy as np

from peerway_measure.compare.node_types import rows
from peerway_measure.records import Record

TYPES = {
    "v100": (8, 0.30),
    "a100": (12, 0.038),
    "cpu": (22, 0.0),  # the larger a type, the less its nodes hide that rounds are alike
    "big": (4, 0.0),
}  # nodes, and what the upgrade changes
ROUNDS, HOURS = 25, 2.0
HELD = "interval holds the truth"
BACKGROUNDS = {
    "calm": (0.0, 0.0),
    "daily": (0.05, 0.0),
    "daily and correlated": (0.05, 0.02),
}  # amplitudes of the two
_BASE = {
    "test": "file_write_bw",
    "via": "posix",
    "op": "write",
    "shape": "sequential 1 MiB",
    "bytes": 1 << 30,
    "ranks": 1,
    "source": "host",
    "target": "file",
    "iterations": 1,
    "messages_per_s": 1.0,
    "validated": True,
    "cpu_percent": None,
    "device": "",
    "driver": "",
    "version": "0",
    "command": "simulated",
}


def sides(seed: int, background: str, rounds: int = ROUNDS) -> tuple[list[Record], list[Record]]:
    """One campaign before an upgrade, and one after it."""
    random = np.random.default_rng(seed)
    levels = {f"{kind}-{i}": random.normal(0, 0.03) for kind, (n, _) in TYPES.items() for i in range(n)}
    spread = random.uniform(0.05, 0.15)
    before, after = (_side(random, levels, spread, background, late, rounds) for late in (False, True))
    return before, after


def _side(
    random: np.random.Generator,
    levels: dict[str, float],
    spread: float,
    background: str,
    after: bool,
    rounds: int,
) -> list[Record]:
    daily, correlated = BACKGROUNDS[background]
    start = (40 if after else 0) * 86400 + random.uniform(0, 86400)
    times = start + np.arange(rounds) * HOURS * 3600
    noise = np.zeros(rounds)
    for i in range(rounds):
        noise[i] = (0.5 * noise[i - 1] if i else 0) + random.normal(0, correlated * (0.75**0.5 if i else 1))
    drift = daily * np.sin(2 * np.pi * (times % 86400) / 86400) + noise
    records = []
    for number in range(rounds):
        when = datetime.fromtimestamp(times[number], UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for node, level in levels.items():
            kind = node.partition("-")[0]
            change = np.log1p(TYPES[kind][1]) if after else 0.0
            rate = 1000 * float(np.exp(level + drift[number] + change + random.normal(0, spread)))
            us = (1 << 30) / rate
            extra = {"run": f"{after}.{number}", "round": number, "node_type": kind}
            records.append(
                Record(
                    **_BASE,
                    host=node,
                    time=when,
                    p50_us=us,
                    p99_us=us,
                    min_us=us,
                    mean_us=us,
                    bandwidth_MBps=rate,
                    extra=extra,
                )
            )
    return records


def counted(campaigns: int, background: str, first: int = 0, number: int = ROUNDS) -> dict[str, Counter[str]]:
    """How often each verdict was given to each type, and how often its interval held the truth."""
    verdicts: dict[str, Counter[str]] = {kind: Counter() for kind in TYPES}
    for seed in range(first, first + campaigns):
        for row in rows(*sides(seed, background, number)):
            truth = 100 * TYPES[row.node_type][1]
            held = row.low is not None and row.high is not None and row.low <= truth <= row.high
            verdicts[row.node_type] += Counter({str(row.verdict): 1, HELD: int(held)})
    return verdicts


def shares(counts: dict[str, Counter[str]]) -> dict[str, float]:
    """The share of true changes that were found, and of types without a change that were called changed."""

    def share(kinds: Iterator[str] | list[str], *verdicts: str) -> float:
        several = [counts[kind] for kind in kinds]
        return sum(c[v] for c in several for v in verdicts) / sum(c.total() - c[HELD] for c in several)

    return {
        "found_30_percent": share(["v100"], "faster"),
        "found_3.8_percent": share(["a100"], "faster"),
        "false": share(["cpu", "big"], "faster", "slower"),
        "wrong_way": share(["v100", "a100"], "slower"),
        "interval_holds_truth": share(list(TYPES), HELD),
    }


@click.command()
@click.option("--campaigns", default=1000, show_default=True)
@click.option("--first", default=0, show_default=True, help="Seed of the first.")
@click.option("--rounds", "number", default=ROUNDS, show_default=True, help="Of each side.")
@click.option("--out", type=click.File("w"), default="-")
def main(campaigns: int, first: int, number: int, out: Any) -> None:
    """Measure how often the table by node type is right."""
    for background in BACKGROUNDS:
        verdicts = counted(campaigns, background, first, number)
        line = {
            "test": "detection",
            "background": background,
            "campaigns": campaigns,
            "rounds": number,
            **shares(verdicts),
            "verdicts": verdicts,
        }
        options = f"--campaigns {campaigns} --first {first} --rounds {number}"
        line["command"] = f"python measure/tests/python/simulated_campaigns.py {options}"
        out.write(json.dumps(line) + "\n")
        out.flush()


if __name__ == "__main__":
    main()
