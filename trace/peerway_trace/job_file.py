"""What `peerway trace` leaves beside the rings of a job, for who makes a trace of them later."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from peerway_trace import memory

NAME = "job.json"


def write(rings: Path, about: dict[str, Any], readings: dict[str, list[tuple[int, int]]]) -> None:
    """Keep what trace.json says of the job, and the readings of clocks. Raises OSError."""
    (rings / NAME).write_text(json.dumps({"about": about, "readings": readings}) + "\n")


def remove(rings: Path) -> None:
    """Remove the rings, wherever they are."""
    memory.discard(rings)
    shutil.rmtree(rings)


def read(rings: Path) -> tuple[dict[str, Any], dict[str, list[tuple[int, int]]]]:
    """Give both; where `peerway trace` was ended first, what stands for them."""
    try:
        result = json.loads((rings / NAME).read_text())
        readings = {
            host: [(int(t), int(n)) for t, n in several] for host, several in result["readings"].items()
        }
        return dict(result["about"]), readings
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {"command": [], "level": "", "began": "", "seconds": 0.0, "status": None}, {}
