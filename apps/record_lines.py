"""Keeps the records of the apps: JSON objects, one on a line of a file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def now() -> str:
    """The time of a record: UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def append(file: Path | None, record: Mapping[str, Any]) -> None:
    """Append a record to a file, whose folder is made if there is none; without a file, do nothing.

    Raises OSError if the file cannot be written.
    """
    if file is None:
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as lines:
        lines.write(json.dumps(record) + "\n")
