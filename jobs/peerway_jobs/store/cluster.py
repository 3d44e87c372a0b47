"""The cluster's state as Slurm last reported it: one row of JSON, written by sync.py."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from peerway_jobs.store.connection import Connection
from peerway_jobs.store.stored import (
    SIZE,
    TEXT,
    TIME,
    Kind,
    Unreadable,
    choice,
    content,
    is_text,
    is_whole,
    number,
    readable,
)

NODE_STATES = ("busy", "partly busy", "free", "reserved", "blocked", "off", "unknown")
MOST_GPUS = 4096
_COUNT = number(0, MOST_GPUS, whole=True)
_NODE: dict[str, Kind] = {
    "name": TEXT, "state": choice(*NODE_STATES, absent="unknown"), "cores": SIZE, "cores_busy": SIZE,
    "memory": SIZE, "memory_busy": SIZE, "gpus": _COUNT, "gpus_busy": _COUNT, "gpus_blocked": _COUNT,
    "gpu_type": TEXT, "reason": TEXT, "node_type": TEXT,
}  # fmt: skip
_LATER = {"node_type": ""}  # what servers before this version did not store
_TOTALS: dict[str, Any] = {
    "running": 0, "users": 0, "waiting": 0, "waiting_cores": 0, "waiting_gpus": 0, "reasons": [],
}  # fmt: skip


@dataclass
class ClusterState:
    """Slurm's last report; `at` is its time, None if there is none. `unreadable` lists what cannot be
    read.
    """

    at: float | None = None
    nodes: list[dict[str, Any]] = field(default_factory=list)
    totals: dict[str, Any] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)


def cluster_state(base: Connection) -> ClusterState:
    """The row, as far as it can be read; a node that cannot be read is left out and listed."""
    state = ClusterState()
    row = base.execute("SELECT at, body FROM cluster").fetchone()
    if row is None:
        return state
    values, state.unreadable = readable(CLUSTER, row)
    state.at = values["at"]
    body = values["body"] or {}
    for place, entry in enumerate(body.get("nodes", [])):
        node = {**_LATER, **entry} if isinstance(entry, dict) else entry
        if _is_node(node):
            state.nodes.append(node)
        else:
            state.unreadable.append(f"nodes[{place}]")
    for name, absent in _TOTALS.items():
        value = body.get(name, absent)
        good = _is_reasons(value) if name == "reasons" else _is(SIZE, value)
        state.totals[name] = value if good else absent
        state.unreadable += [] if good else [name]
    state.unreadable = [f"cluster.{name}" for name in state.unreadable]
    return state


def _body(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict) or not isinstance(content.get("nodes"), list):
        raise Unreadable
    return content


def _is(kind: Kind, value: Any) -> bool:
    try:
        kind.parse(value)
    except ValueError:
        return False
    return True


def _is_node(node: Any) -> bool:
    return (
        isinstance(node, dict)
        and all(_is(kind, node.get(name)) for name, kind in _NODE.items())
        and isinstance(partitions := node.get("partitions"), list)
        and all(map(is_text, partitions))
    )


def _is_reasons(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, list) and len(each) == 2 and is_text(each[0]) and is_whole(each[1]) for each in value
    )


CLUSTER = {"at": replace(TIME, absent=None), "body": content(_body)}
