"""Two NICs for one halo: with a route table, each carries the messages that suit it better."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from launching import ROOT, Run, clean_environment, peerway

from peerway import _core
from peerway_measure.tune import draft

HYBRID = ROOT / "apps" / "hybrid"
NEAR, FAR = "nic:near", "nic:far"
ROWS, COLUMNS = 16, 4096
SMALL = ROWS * 8  # bytes of a side that is a column; each element is one put
LARGE = COLUMNS * 8  # bytes of a side that is a row


def table() -> str:
    """A table by which nic:near carries small blocks, and nic:far all contiguous data above 8 KiB."""
    sizes, base = (8, 1 << 20), (100.0, 500.0)
    blocks = {NEAR: [(size, base[0] + size / 30, 0.0) for size in sizes]}
    blocks[FAR] = [(size, 10 * base[1] + size / 60, 0.0) for size in sizes]
    lines = {NEAR: blocks[NEAR], FAR: [(size, base[1] + size / 1000, 0.0) for size in sizes]}
    costs = {("put", "contiguous", "host->host"): lines, ("put", "blocks-16", "host->host"): blocks}
    return _core.table_text(json.dumps(draft.table(costs, [], {}, {}, 65536)))


def carried(counters: Path) -> dict[int, int]:
    """The bytes that each node of a NIC put."""
    lines = [json.loads(line) for line in counters.read_text().splitlines()]
    return {line["node"]: line["put_bytes"] for line in lines if "node" in line}


@pytest.mark.parametrize("near", [pytest.param("near.json", marks=pytest.mark.long), "islands.json"])
def test_each_nic_carries_the_sides_that_it_is_better_at(near: str, tmp_path: Path, run: Run) -> None:
    (tmp_path / "routes.json").write_text(table())
    nics = [
        f"{name}=torus?file={HYBRID / file},counters={tmp_path / name}"
        for name, file in (("near", near), ("far", "far.json"))
    ]
    halo = ["halo", "--grid", "2x2", "--local", f"{ROWS}x{COLUMNS}", "--element", "8", "--device", "host"]
    options = [
        "--paths",
        f"{NEAR}+{FAR}",
        "--table",
        tmp_path / "routes.json",
        "--quick",
        "--format",
        "jsonl",
    ]
    done = run(peerway("bench", *halo, *options), env=clean_environment(PEERWAY_NIC=";".join(nics)))
    assert done.returncode == 0, done.stderr
    (record,) = [json.loads(line) for line in done.stdout.splitlines()]
    assert record["validated"]
    assert record["via"] == f"{NEAR}+{FAR}"
    small, large = carried(tmp_path / "near"), carried(tmp_path / "far")
    assert sorted(small) == sorted(large) == [0, 1, 2, 3]
    for node in range(4):  # besides the data, words of a few bytes are sent
        refreshes = large[node] // (2 * LARGE)
        assert refreshes > 0
        assert 2 * SMALL * refreshes <= small[node] < LARGE + 4 * SMALL * refreshes
