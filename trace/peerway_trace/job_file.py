"""The file that `peerway trace` leaves with the rings of a job, for a later `peerway trace collect`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from peerway_trace import memory

NAME = "job.json"


def write(rings: Path, about: dict[str, Any], readings: dict[str, list[tuple[int, int]]]) -> None:
    """Keep what trace.json will say about the job, and readings of clocks. Raises OSError."""
    (rings / NAME).write_text(json.dumps({"about": about, "readings": readings}) + "\n")


def remove(rings: Path) -> None:
    """Remove the rings, wherever they are."""
    memory.discard(rings)
    shutil.rmtree(rings)


def read(rings: Path) -> tuple[dict[str, Any], dict[str, list[tuple[int, int]]]]:
    """Read both; if `peerway trace` was killed first, return defaults."""
    try:
        result = json.loads((rings / NAME).read_text())
        readings = {
            host: [(int(t), int(n)) for t, n in several] for host, several in result["readings"].items()
        }
        return dict(result["about"]), readings
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {"command": [], "level": "", "began": "", "seconds": 0.0, "status": None}, {}
