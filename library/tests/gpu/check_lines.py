"""What the programs of the GPU tests tell: one check a line of JSON."""

from __future__ import annotations

import json


def right(output: str) -> int:
    """Fails for the checks that failed, as they were told in lines of JSON; how many there were."""
    checks = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    failed = [
        f"rank {check['rank']}, {check['check']}: {check['detail']}" for check in checks if not check["ok"]
    ]
    assert failed == []
    return len(checks)
