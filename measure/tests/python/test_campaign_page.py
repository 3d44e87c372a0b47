"""The pages of campaigns and rehearsals have the numbers of the records under results/storage, and
simulated campaigns take the time that they have to.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from peerway_measure import records
from peerway_measure.compare.node_type_text import cells_of
from peerway_measure.compare.node_types import rows
from peerway_measure.storage.states import STATES
from peerway_measure.storage.states import test_of as read_of

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "storage"))

from load import CannotSimulate, Cluster, build, order, simulate  # noqa: E402
from load import main as load  # noqa: E402

SIDES = ("before", "after")
PAGE = (ROOT / "docs" / "measure" / "campaigns.md").read_text()


def lines(name: str) -> list[dict[str, Any]]:
    text = (ROOT / "results" / "storage" / name).read_text()
    return [json.loads(line) for line in text.splitlines()]


def duration(hours: float) -> str:
    return f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"


@pytest.mark.parametrize("record", lines("load.jsonl"), ids=lambda r: f"{r['nodes']} nodes, {r['at_once']}")
def test_the_table_of_load_is_of_the_records(record: dict[str, Any]) -> None:
    cells = [
        f"{record['nodes']:,}",
        str(record["servers"]),
        str(record["at_once"]),
        duration(record["hours"]),
        f"{record['written_TB']:g} TB",
        *(
            f"{record[name]:g} %"
            for name in ("disk_percent", "write_slower_percent", "least_write_slower_percent")
        ),
    ]
    assert f"| {' | '.join(cells)} |" in PAGE


@pytest.mark.parametrize(
    "record", lines("detection.jsonl"), ids=lambda r: f"{r['background']}, {r['rounds']}"
)
def test_the_table_of_detection_is_of_the_records(record: dict[str, Any]) -> None:
    assert record["campaigns"] >= 1000
    assert record["false"] <= 0.05
    assert record["wrong_way"] == 0
    names = ("found_30_percent", "found_3.8_percent", "false", "interval_holds_truth")
    shown = [str(record["rounds"]), *(f"{record[name] * 100:.3g} %" for name in names)]
    assert f"| {' | '.join(shown)} |" in PAGE


def test_the_table_of_the_study_is_of_its_records() -> None:
    page = (ROOT / "docs" / "measure" / "rehearsal.md").read_text()
    before, after = (records.read(ROOT / "results/storage/study" / f"{side}.jsonl") for side in SIDES)
    table = rows(before, after, ("campaign", "state"))
    assert {row.pair.before[0].test for row in table} == {"file_write_bw", *map(read_of, STATES)}
    for row in table:
        assert f"| `{row.pair.before[0].test}` | {' | '.join(cells_of(row))} |" in page
    alone = {row.pair.before[0].test: row.verdict for row in rows(before, after, ("campaign",))}
    assert alone["file_read_warm_here_bw"] == "not attributable"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        return build(tmp_path_factory.mktemp("load"))
    except CannotSimulate as why:
        if "missing" in str(why):
            pytest.skip(str(why))
        raise


SMALL = Cluster(
    nodes=4, at_once=1, repeats=3, servers=1, stream=1e9, server=1e10, disk=5e8, start_s=0, local_s=1
)


@pytest.mark.long
def test_one_after_the_other_takes_what_each_takes(program: Path) -> None:
    outcome = simulate(program, SMALL)  # 2 s to write, 1 s to read, 1 s here
    assert outcome["measurements"] == 12
    assert outcome["hours"] * 3600 == pytest.approx(12 * 4, rel=0.01)
    assert outcome["write_slower_percent"] == outcome["read_slower_percent"] == 0
    assert outcome["disk_percent"] == pytest.approx(50, rel=0.01)


@pytest.mark.long
def test_nodes_at_once_share_a_disk(program: Path) -> None:
    outcome = simulate(program, replace(SMALL, at_once=4, local_s=0))
    assert outcome["hours"] * 3600 >= 12 * 2  # what the disk alone needs
    assert outcome["least_write_slower_percent"] == pytest.approx(75, abs=1)


@pytest.mark.long
def test_more_servers_disturb_less(program: Path) -> None:
    outcomes = [simulate(program, replace(SMALL, at_once=4, servers=n)) for n in (1, 4)]
    assert outcomes[0]["write_slower_percent"] > 10
    assert outcomes[1]["write_slower_percent"] == 0


@pytest.mark.parametrize("words", [["--nodes", "0"], ["--repeats", "0"], ["--stream", "nan"]])
def test_a_cluster_that_cannot_be_is_refused(words: list[str]) -> None:
    refused = CliRunner().invoke(load, words)
    assert refused.exit_code == 2
    assert f"Invalid value for '{words[0]}'" in refused.output


def test_the_order_is_the_campaigns_own() -> None:
    drawn = order(SMALL)
    assert [sorted(drawn[i : i + 4]) for i in (0, 4, 8)] == [[0, 1, 2, 3]] * 3
    assert drawn[:4] != drawn[4:8] or drawn[4:8] != drawn[8:]
