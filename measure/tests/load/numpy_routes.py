"""What a route table makes of NumPy's memory: puts and gets of registered arrays by the route, beside every
path alone and beside the order of preference that counts where there is no table.

    peerway tune --out table.json
    peerway run -n 2 -- python measure/tests/load/numpy_routes.py table.json \
        --out results/cpu-2-numpy/routes.jsonl

All ways are timed in turn by the same two processes, round by round, and only ratios within a round count:
the machine may be shared. The best path is chosen by the first half of the rounds and compared in the second,
so that nothing is called best for its luck.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import peerway

SIZES = [4 << 10 << power for power in range(0, 13, 2)]  # 4 KiB to 16 MiB
ROUNDS = 60
SLOT_NS = 1_000_000  # time of one way in one round, after an operation that does not count
FEWEST = 3
TUNED, UNTUNED = "route", "order of preference"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to put and get: a context, its allowed paths, and both ends as its objects."""

    context: peerway.Context
    paths: str  # "route" for the choice by its table
    near: peerway.Region
    far: peerway.Remote

    def operation(self, op: str, size: int) -> Callable[[], None]:
        """One whole put or get."""
        near, far, context = self.near[0:size], self.far[0:size], self.context

        def put() -> None:
            context.put(far, near)
            context.flush()

        def get() -> None:
            context.get(near, far)
            context.flush()

        return put if op == "put" else get


def context_with(team: peerway.Team, table: str) -> peerway.Context:
    """A context with this route table; with none if the name is empty."""
    with tempfile.TemporaryDirectory() as nothing:
        os.environ["PEERWAY_ROUTES"], os.environ["XDG_CONFIG_HOME"] = table, nothing
        return peerway.Context(team)


def once(way: Way, op: str, size: int, count: int) -> float:
    """The median of `count` operations, in nanoseconds."""
    way.context.use(way.paths)
    operation = way.operation(op, size)
    operation()
    times = []
    for _ in range(count):
        began = time.perf_counter_ns()
        operation()
        times.append(time.perf_counter_ns() - began)
    return float(np.median(times))


def measured(ways: dict[str, Way], op: str, size: int) -> dict[str, list[float]]:
    """The times of all rounds, by way.

    The order within a round is random, so that each way finds the caches as another one left them.
    """
    counts = {name: max(FEWEST, int(SLOT_NS / once(way, op, size, FEWEST))) for name, way in ways.items()}
    times: dict[str, list[float]] = {name: [] for name in ways}
    make = random.Random(size)
    for _ in range(ROUNDS):
        for name in make.sample(list(ways), len(ways)):
            times[name].append(once(ways[name], op, size, counts[name]))
    return times


def described(op: str, size: int, times: dict[str, list[float]], chosen: str) -> dict[str, Any]:
    half = ROUNDS // 2
    paths = [name for name in times if name not in (TUNED, UNTUNED)]
    best = min(paths, key=lambda name: float(np.median(times[name][:half])))
    return {
        "test": f"numpy_{op}", "bytes": size, "chosen": chosen, "best": best,
        "route_to_best": ratio(times[TUNED][half:], times[best][half:]),
        "route_to_untuned": ratio(times[TUNED], times[UNTUNED]),
        "p50_us": {name: round(float(np.median(row)) / 1e3, 3) for name, row in times.items()},
        "rounds": ROUNDS,
    }  # fmt: skip


def ratio(first: list[float], other: list[float]) -> dict[str, float]:
    """Quartiles of the ratios of times from the same round."""
    quartiles = np.percentile(np.divide(first, other), (25, 50, 75))
    return {name: round(float(q), 3) for name, q in zip(("p25", "p50", "p75"), quartiles, strict=True)}


def chosen(ways: dict[str, Way], op: str, size: int) -> str:
    """The table's choice for this size."""
    way = ways[TUNED]
    way.context.use("route")
    text = peerway._core.explain_for(
        way.context._core, way.far._core, way.near._core, op, peerway._core.shape_class(1, size)
    )
    rows = json.loads(text)["rows"]
    return next(str(row["via"]) for row in rows if size < (row["to"] or float("inf")))


def right(way: Way, op: str, size: int, mine: np.ndarray[Any, Any]) -> bool:
    """Whether a put and a get carry exactly these bytes in both directions."""
    way.context.use(way.paths)
    mine[:size] = np.random.default_rng(size).integers(0, 256, size, np.uint8)
    kept = mine[:size].copy()
    way.operation("put", size)()
    mine[:size] = 0
    way.operation("get", size)()
    return bool((mine[:size] == kept).all())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("table", type=Path, help="of peerway tune")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    table = str(asked.table.resolve(strict=True))
    with peerway.Team.from_launcher() as team:
        contexts = {TUNED: context_with(team, table), UNTUNED: context_with(team, "")}
        mine = np.zeros(SIZES[-1], np.uint8)
        ends = {}
        for name, context in contexts.items():
            region = context.register(mine)
            ends[name] = region, context.import_key(team.all_gather(region.key())[1 - team.rank])
        ways = {name: Way(context, "route", *ends[name]) for name, context in contexts.items()}
        tuned = contexts[TUNED]
        serving = [path.name for path in tuned.paths(ends[TUNED][1], ends[TUNED][0]) if path.available]
        ways |= {name: Way(tuned, name, *ends[TUNED]) for name in serving}
        if team.rank == 0:
            lead(ways, mine, asked.out)
        team.barrier()
        for context in contexts.values():
            context.close()


def lead(ways: dict[str, Way], mine: np.ndarray[Any, Any], out: Path) -> None:
    known = {
        "ranks": 2, "host": "vm", "device": peerway._core.machine().get("cpu", platform.machine()),
        "version": peerway.__version__, "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "load": round(os.getloadavg()[0], 1),
        "command": " ".join(["peerway run -n 2 -- python", *sys.argv]),
    }  # fmt: skip
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("w") as records:
        for op in ("put", "get"):
            for size in SIZES:
                valid = all(right(way, op, size, mine) for way in ways.values())
                found = described(op, size, measured(ways, op, size), chosen(ways, op, size))
                line = json.dumps(found | {"validated": valid} | known)
                print(line, file=records, flush=True)
                told = {name: found[name]["p50"] for name in ("route_to_best", "route_to_untuned")}
                print(op, size, found["chosen"], "best:", found["best"], told, flush=True)


main()
