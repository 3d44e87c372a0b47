"""docs/nic/hybrid.md has the figures of results/cpu-2-hybrid, and both NICs together are the fastest."""

from __future__ import annotations

from pathlib import Path

import pytest

from peerway_common.units import time_text
from peerway_measure import records

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "nic" / "hybrid.md").read_text()
NEAR, FAR, BOTH = "nic:near", "nic:far", "nic:near+nic:far"
ROWS = {
    "everywhere": ("both networks reach all", (NEAR, FAR, BOTH)),
    "islands": ("`near` reaches", (FAR, BOTH)),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_has_the_numbers_of_its_records(name: str) -> None:
    begins, networks = ROWS[name]
    found = records.read(ROOT / "results" / "cpu-2-hybrid" / f"{name}.jsonl")
    assert all(record.validated for record in found)
    times = {record.via: record.p50_us for record in found}
    assert set(times) == set(networks)
    assert all(times[BOTH] < times[network] for network in networks if network != BOTH)
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {begins}")]
    cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
    assert cells == [time_text(times[network]) if network in times else "–" for network in (NEAR, FAR, BOTH)]
