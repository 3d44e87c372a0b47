"""The doctor's page, its JSON and its command, on made-up nodes and on the machine that runs the tests."""

from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from doctor_nodes import NODES, dgx, pcie_pair
from rich.cells import cell_len
from rich.console import Console

from peerway_measure.cli.doctor import command
from peerway_measure.doctor import report_json
from peerway_measure.doctor.checks import examine
from peerway_measure.doctor.decode import decode, encode
from peerway_measure.doctor.facts import Facts
from peerway_measure.doctor.finding import Group, Status
from peerway_measure.doctor.page import COLLAPSED, show

DOCS = Path(__file__).parents[3] / "docs" / "measure" / "doctor.md"


def page(facts: Facts, width: int, encoding: str = "utf-8", why: bool = False) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    show(Console(file=file, width=width, highlight=False), facts, examine(facts), why)
    file.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [30, 59, 60, 80, 120])
@pytest.mark.parametrize("node", NODES)
def test_page_fits_and_has_every_group(node: str, width: int) -> None:
    text = page(NODES[node](), width)
    lines = text.splitlines()
    assert max(cell_len(line) for line in lines) <= width
    assert all(line == line.rstrip() for line in lines)
    assert [line for line in lines if line in set(Group)] == list(Group)
    assert "…" not in text  # nothing is cut off
    shown = set(text.split())
    for finding in examine(NODES[node]()):
        if finding.observed not in COLLAPSED:
            for word in f"{finding.title} {finding.observed}".replace(";", "").split():
                assert len(word) > 20 or {word, f"{word};"} & shown, word


@pytest.mark.parametrize("node", NODES)
def test_page_says_status_and_remedy_of_each_finding(node: str) -> None:
    facts = NODES[node]()
    text = page(facts, 200)
    for finding in examine(facts):
        assert finding.title in text
        if finding.observed not in COLLAPSED:
            assert finding.todo in text
    for status, symbol in (("ok", "✓"), ("off", "○"), ("absent", "–")):
        assert f"{symbol} {status}" in text


def test_page_without_unicode_still_tells_the_statuses_apart() -> None:
    text = page(pcie_pair(), 80, encoding="ascii")
    for words in ("+ ok", "o off", "! warning", "- absent", "> reseat the NIC", "GPU 1 x8 of x16"):
        assert words in text


def test_peer_matrix_shows_links_and_refusals() -> None:
    assert re.search(r"GPU1\s+NV18\s+·\s+NV18", page(dgx(), 80))
    text = page(pcie_pair(), 80)
    assert re.search(r"GPU0\s+·\s+no switch", text)
    assert "no: peer access refused" in text


def test_wide_matrix_continues_below() -> None:
    text = page(dgx(), 50)
    assert len(re.findall(r"^\s+GPU0\s+·", text, re.MULTILINE)) == 1
    assert len(re.findall(r"^\s+GPU0 ", text, re.MULTILINE)) >= 2


def test_why_is_shown_on_demand() -> None:
    facts = dgx()
    with_reasons, without = page(facts, 250, why=True), page(facts, 250)
    findings = [finding for finding in examine(facts) if finding.observed not in COLLAPSED]
    assert findings
    for finding in findings:
        assert finding.why in with_reasons
        assert finding.why not in without


@pytest.mark.parametrize("node", NODES)
def test_json_is_read_back_as_it_was(node: str, tmp_path: Path) -> None:
    facts = NODES[node]()
    path = tmp_path / "node.json"
    path.write_text(report_json.to_json(facts, examine(facts)), encoding="utf-8")
    assert report_json.read(path) == facts


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "not JSON"),
        ("[]", "schema is None"),
        ('{"schema": "other/1"}', "schema is 'other/1', not 'peerway_measure.doctor/1'"),
        ('{"schema": "peerway_measure.doctor/1"}', "Facts is None"),
        (
            '{"schema": "peerway_measure.doctor/1", "facts": {"gpus": [{"index": "x"}]}}',
            "Facts.gpus[0].index is 'x'",
        ),
        ('{"schema": "peerway_measure.doctor/1", "facts": {"gpus": [{"index": true}]}}', "int was expected"),
        (
            '{"schema": "peerway_measure.doctor/1", "facts": {}}',
            "facts lacks date, driver, gpus, pairs, mapping, ",
        ),
        (
            '{"schema": "peerway_measure.doctor/1", "facts": {"gpus": []}}',
            "facts lacks date, driver, pairs, mapping, ",
        ),
    ],
)
def test_bad_file_is_refused_with_the_reason(text: str, says: str, tmp_path: Path) -> None:
    path = tmp_path / "node.json"
    path.write_text(text, encoding="utf-8")
    result = CliRunner().invoke(command, ["--from", str(path)])
    assert result.exit_code == 2  # 1 says with --strict that there is a warning
    assert says in result.output


def test_decode_ignores_what_it_does_not_know() -> None:
    assert decode(Facts, {"date": "d", "later": 1}).date == "d"


def test_strict_fails_on_a_warning_only(tmp_path: Path) -> None:
    for facts, code in ((dgx(), 0), (pcie_pair(), 1)):
        path = tmp_path / "node.json"
        path.write_text(report_json.to_json(facts, []), encoding="utf-8")
        assert CliRunner().invoke(command, ["--from", str(path), "--strict"]).exit_code == code
        assert CliRunner().invoke(command, ["--from", str(path)]).exit_code == 0


def test_this_machine() -> None:
    """A real run: whatever this machine is, the command answers, and its JSON is complete and consistent."""
    result = CliRunner().invoke(command, ["--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.output)
    facts = decode(Facts, data["facts"])
    assert data["schema"] == report_json.SCHEMA
    assert [f["id"] for f in data["findings"]] == [f.id for f in examine(Facts())]
    assert {f["status"] for f in data["findings"]} <= set(Status)
    assert facts.kernel.release == Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert facts.host.cores == Path("/proc/cpuinfo").read_text().count("processor\t")
    assert facts.host.memfd is True
    assert facts.problems == []
    assert [encode(f) for f in examine(facts)] == data["findings"]


def test_docs_name_every_finding_and_every_fact() -> None:
    text = DOCS.read_text(encoding="utf-8")
    for finding in examine(Facts()):
        assert f"`{finding.id}`" in text, finding.id
    for field in dataclasses.fields(Facts):
        assert f"`{field.name}`" in text, field.name
    assert report_json.SCHEMA in text
