"""The comparison of collectives through PyTorch runs, and records what it measured."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).resolve().parents[2] / "collectives" / "over_torch.py"


@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "all_to_all"])
@pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="no PyTorch (pip install 'peerway[torch]')"
)
def test_collectives_of_peerway_and_gloo_are_recorded(operation: str, tmp_path: Path) -> None:
    out = tmp_path / "records.jsonl"
    options = ["--operation", operation, "--samples", "10", "--times", "1", "--out", str(out)]
    subprocess.run([sys.executable, str(PROGRAM), *options], check=True)
    records = [json.loads(line) for line in out.read_text().splitlines()]
    for library in ("peerway", "peerway plan", "gloo"):
        sizes = [record["bytes"] for record in records if record["library"] == library]
        assert (len(sizes), sizes[0], sizes[-1]) == (10, 8, 256 << 20)
    assert all(0 < record["min_us"] <= record["p50_us"] <= record["p99_us"] for record in records)
