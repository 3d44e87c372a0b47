"""Detects which kind of Peerway file was passed by mistake: records or a route table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from peerway_common import atomic_file

TABLE_FORMAT = "peerway route table"
_MOST_TABLE = 64 << 20  # bytes
_MOST_RECORD = 1 << 20


def is_route_table(path: Path) -> bool:
    """Whether the file is a route table of `peerway tune`, of any version."""
    if not path.is_file():  # a pipe can be read only once, by the command itself
        return False
    try:
        document = _object(atomic_file.read(path, _MOST_TABLE))
    except (OSError, ValueError):
        return False
    return document.get("format") == TABLE_FORMAT


def has_records(path: Path) -> bool:
    """Whether the file begins with a record, as files of `peerway bench --out` do."""
    if not path.is_file():
        return False
    try:
        with path.open("rb") as file:
            document = _object(file.readline(_MOST_RECORD))
    except OSError:
        return False
    return {"test", "via", "bytes"} <= document.keys()


def _object(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return document if isinstance(document, dict) else {}
