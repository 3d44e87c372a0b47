"""Synthetic records for the tests of compare and report: no number here was measured."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from peerway_measure.cube import cube_shape
from peerway_measure.records import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

HOST = "synthetic01"
# Start-up cost in µs and bandwidth in MB/s of each path or peer, for an invented machine.
LINES = {
    "peer/store": (0.25, 9_000.0),
    "peer/copy": (1.5, 14_000.0),
    "staged": (6.0, 5_000.0),
    "openmpi": (0.9, 6_500.0),
}


# Fields that are not computed from samples.
GIVEN = (
    *("test", "via", "op", "shape", "bytes", "ranks", "source", "target", "validated", "cpu_percent"),
    *("host", "device", "driver", "version"),
)


def record(**changed: Any) -> Record:
    """One valid record, with the given fields changed."""
    values: dict[str, Any] = {
        "test": "put_latency",
        "via": "peer/store",
        "op": "put",
        "shape": "contiguous",
        "bytes": 8,
        "ranks": 2,
        "source": "host",
        "target": "host",
        "iterations": 1000,
        "p50_us": 0.3,
        "p99_us": 0.5,
        "min_us": 0.25,
        "mean_us": 0.31,
        "bandwidth_MBps": 26.7,
        "messages_per_s": 3.3e6,
        "validated": True,
        "cpu_percent": 99.0,
        "host": HOST,
        "device": "synthetic cpu",
        "driver": "",
        "version": "0.1.0",
        "time": "2026-01-01T00:00:00Z",
        "command": "synthetic: made by tests/shared/synthetic_records.py",
    }
    return Record(**(values | changed))


def sampled(median_us: float, *, seed: int, spread: float = 0.02, **fields: Any) -> Record:
    """A record built from random samples around a median, as bench does it."""
    samples = np.random.default_rng(seed).lognormal(np.log(median_us * 1e3), spread, 400)
    base = record(**fields)
    kept = (*GIVEN, "time", "command", "extra")
    return Record.from_samples(samples, **{name: getattr(base, name) for name in kept})


def curves(
    tests: tuple[str, ...] = ("put_latency", "put_bw"),
    vias: tuple[str, ...] = tuple(LINES),
    pair: tuple[str, str] = ("host", "host"),
    slower: float = 1.0,
    **fields: Any,
) -> Iterator[Record]:
    """Every size from 8 B to 64 MiB for each test and path, and the route as the best of the paths."""
    for test in tests:
        for power in range(3, 27):
            size = 1 << power
            costs = {via: LINES[via][0] * slower + size / LINES[via][1] for via in vias}
            for seed, (via, cost) in enumerate(costs.items()):
                yield sampled(
                    cost,
                    seed=seed + power,
                    test=test,
                    via=via,
                    bytes=size,
                    source=pair[0],
                    target=pair[1],
                    **fields,
                )
            best = min((via for via in costs if "/" in via or via == "staged"), key=costs.__getitem__)
            extra = {"chosen": best}
            yield sampled(
                costs[best] * 1.03,
                seed=power,
                test=test,
                via="route",
                bytes=size,
                source=pair[0],
                target=pair[1],
                extra=extra,
                **fields,
            )


def cube(vias: tuple[str, ...] = tuple(LINES), **fields: Any) -> Iterator[Record]:
    """The three faces of cubes of doubles, N = 2 to 512."""
    for seed, via in enumerate(vias):
        for n in (2**power for power in range(1, 10)):
            for across, factor in (("i", 1.0), ("j", 1.4), ("k", 4.0)):
                cost = LINES[via][0] + factor * 8 * n * n / LINES[via][1]
                yield sampled(
                    cost,
                    seed=seed + n,
                    test="cube_face",
                    via=via,
                    shape=cube_shape(n, across),
                    bytes=8 * n * n,
                    **fields,
                )
