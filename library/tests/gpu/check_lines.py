"""Reads the output of the GPU tests' programs: one check per line of JSON."""

from __future__ import annotations

import json


def right(output: str) -> int:
    """Fail the test for checks that failed; returns the number of checks."""
    checks = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    failed = [f"rank {one['rank']}, {one['check']}: {one['detail']}" for one in checks if not one["ok"]]
    assert failed == []
    return len(checks)
