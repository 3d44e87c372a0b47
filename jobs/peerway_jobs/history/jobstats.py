"""Reads the totals of a job that Jobstats keeps in AdminComment: JS1:, then base64 of gzip of JSON."""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from typing import Any

from peerway_jobs.history.totals import GpuTotals, NodeTotals

PREFIX = "JS1:"
_WITHOUT_DATA = ("Short", "None")  # what Jobstats writes for a job that was too short, or not measured
_MOST_TEXT = 16 << 20  # bytes of JSON: that of a job on 10,000 nodes
_GZIP = 16 + zlib.MAX_WBITS


class BadJobstats(ValueError):
    """An AdminComment that begins like one of Jobstats cannot be read; the message says why."""


def totals_of(comment: str) -> dict[str, NodeTotals]:
    """The totals by node; empty if the comment is not of Jobstats, or says that there are none. Raises
    BadJobstats.
    """
    if not comment.startswith(PREFIX) or comment[len(PREFIX) :].startswith(_WITHOUT_DATA):
        return {}
    try:
        packed = base64.b64decode(comment[len(PREFIX) :], validate=True)
        inflater = zlib.decompressobj(_GZIP)
        text = inflater.decompress(packed, _MOST_TEXT)
        if not inflater.eof:
            raise BadJobstats(f"it is cut off, or has more than {_MOST_TEXT:,} bytes")
        content = json.loads(text)
    except (binascii.Error, zlib.error, ValueError, RecursionError) as error:
        raise BadJobstats(str(error) or type(error).__name__) from None
    nodes = content.get("nodes") if isinstance(content, dict) else None
    if not isinstance(nodes, dict):
        raise BadJobstats("it names no nodes")
    return {str(name): _node(name, node) for name, node in nodes.items()}


def _node(name: str, node: Any) -> NodeTotals:
    if not isinstance(node, dict):
        raise BadJobstats(f"node {name!r} is no object")
    uses, used, had = (
        _by_gpu(name, node, key) for key in ("gpu_utilization", "gpu_used_memory", "gpu_total_memory")
    )
    gpus = {
        index: GpuTotals(None if use is None else use / 100, used.get(index), had.get(index))
        for index in sorted({*uses, *used, *had})
        for use in (uses.get(index),)
    }
    return NodeTotals(_figure(name, node, "total_time"), _figure(name, node, "used_memory"), gpus)


def _by_gpu(name: str, node: dict[str, Any], key: str) -> dict[str, float]:
    values = node.get(key, {})
    if not isinstance(values, dict):
        raise BadJobstats(f"{key} of node {name!r} is no object")
    return {str(index): value for index in values if (value := _figure(name, values, str(index))) is not None}


def _figure(name: str, values: dict[str, Any], key: str) -> float | None:
    value = values.get(key)
    if value is None:
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 <= value < 1e18:
        raise BadJobstats(f"{key} of node {name!r} is no figure")
    return float(value)
