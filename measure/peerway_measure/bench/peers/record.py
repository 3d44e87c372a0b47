"""Makes records of a peer's results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peerway_measure import records

if TYPE_CHECKING:
    from collections.abc import Mapping

    from peerway_measure.bench.peers.plan import Plan, Result

_TAKEN = (
    *("via", "test", "shape", "bytes", "ranks", "iterations", "p50_us", "p99_us", "min_us", "mean_us"),
    *("bandwidth_MBps", "messages_per_s", "validated", "cpu_percent"),
)


def as_record(result: Result, plan: Plan, known: Mapping[str, Any]) -> records.Record:
    """The record of a result.

    `known` has the fields that the program cannot know (host, driver, command, and device unless it is a
    GPU's name). The version is that of the peer's library. Window and batch are kept in `extra`.
    """
    memory = (
        ["host", "host"] if plan.device == "host" else [f"{plan.device}:{gpu}" for gpu in plan.ordinals(2)]
    )
    fields = {name: result[name] for name in _TAKEN}
    fields |= {"op": _op(result["test"]), "source": memory[0], "target": memory[1]}
    if result["test"].startswith("get"):
        fields |= {"source": memory[1], "target": memory[0]}
    if plan.device != "host":
        fields["device"] = result["device"]
    extra = {"window": result["window"], "batch": result["batch"]}
    rest = {"driver": "", "device": "", "time": records.now(), **known}
    return records.Record(**{**rest, **fields}, version=result["library"], extra=extra)


def _op(test: str) -> str:
    if test.startswith("get"):
        return "get"
    return {"signal_latency": "signal", "halo": "halo", "exchange": "exchange"}.get(test, "put")
