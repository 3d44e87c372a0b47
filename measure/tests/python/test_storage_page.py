"""docs/measure/storage.md and docs/measure/campaigns.md have the figures of results/storage/speed.jsonl."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "storage"))

from gds import table  # noqa: E402

STORAGE, CAMPAIGNS = (
    (ROOT / "docs" / "measure" / f"{name}.md").read_text() for name in ("storage", "campaigns")
)
RECORDS = [json.loads(line) for line in (ROOT / "results/storage/speed.jsonl").read_text().splitlines()]


def of(test: str) -> list[dict[str, Any]]:
    return [r for r in RECORDS if r["test"] == test]


def ratio(record: dict[str, Any], name: str) -> str:
    low, high = record[f"{name}_interval"]
    return f"{record[name]:.2f} ({low:.2f} to {high:.2f})"


@pytest.mark.parametrize("record", of("storage_engines"), ids=lambda r: f"{r['mode']}, {r['disk']}")
def test_the_table_of_engines_is_of_the_records(record: dict[str, Any]) -> None:
    for arm, name in (("fio", ""), ("fio_huge", ", fio in huge pages")):
        if f"write_posix_to_{arm}" in record:
            ratios = [ratio(record, f"{op}_posix_to_{arm}") for op in ("write", "read")]
            cells = [record["disk"], record["mode"] + name, str(record["rounds"]), *ratios]
            assert f"| {' | '.join(cells)} |" in STORAGE
    assert record["resident_before_reads"] == 0  # all reads began in the same state


def test_the_table_of_gds_is_of_the_records() -> None:
    lines = [json.loads(line) for line in (ROOT / "results/storage/gds.jsonl").read_text().splitlines()]
    assert not any(line.get("right") is False for line in lines)
    of_records = table(lines)
    assert of_records
    for row in of_records:
        assert row in STORAGE, f"`python apps/storage/gds.py --table` prints {row}"


def test_posix_is_no_slower_than_fio_on_a_local_disk() -> None:
    line = next(r for r in of("storage_engines") if r["mode"] == "direct" and "virtual" in r["disk"])
    assert line["rounds"] >= 100
    assert line["size"] == 1 << 30
    for operation in ("write", "read"):
        assert line[f"{operation}_posix_to_fio_interval"][0] >= 1
        assert line[f"{operation}_posix_to_fio_huge"] >= 0.97


def test_posix_with_fsync_is_within_3_percent_of_fio_on_a_local_disk() -> None:
    all_rounds = [r for r in of("storage_engines") if r["mode"] == "fsync" and "virtual" in r["disk"]]
    most = max(all_rounds, key=lambda r: r["rounds"])
    assert most["size"] == 1 << 30
    assert min(most["write_posix_to_fio"], most["read_posix_to_fio"]) >= 0.97


def test_what_posix_takes_beside_the_copy_is_below_its_bound() -> None:
    used = [r[f"posix_{op}_own_percent"] for r in of("storage_engines") for op in ("write", "read")]
    assert max(used) <= 5
    assert f"at most {max(used)} % of a core" in STORAGE


def test_a_campaigns_own_work_is_below_its_bound_and_told() -> None:
    for line in of("storage_campaign"):
        assert line["own_at_most_percent"] <= 10
        assert f"{line['own_at_most_percent']} %" in CAMPAIGNS
    assert any(r["nodes"] == 46 and r["repeats"] == 25 for r in of("storage_campaign"))


def test_the_page_of_100_000_records_is_quick_and_small() -> None:
    line = of("storage_page")[0]
    assert line["records"] >= 100_000
    assert line["wall_s"] < 5
    assert line["bytes"] < 10e6
    assert f"{line['wall_s']} s and {line['bytes'] / 1e6:.1f} MB" in CAMPAIGNS
