"""Tests of a campaign that are applications: their lines become records."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from peerway_measure.campaign.applications import read
from peerway_measure.records import RecordError

RESULTS = Path(__file__).resolve().parents[3] / "results"


def test_hpl_is_a_record_of_its_time(tmp_path: Path) -> None:
    printed = tmp_path / "out"
    kept = (RESULTS / "hpl" / "cpu-2.jsonl").read_text().splitlines()
    lines = [line for line in kept if '"comm"' in line]  # others are of hpcc, beside which it was measured
    printed.write_text("\n".join(["Finished 1 test", *lines, ""]))
    first, measured = json.loads(lines[0]), read(printed, "hpl --json")
    assert len(measured) == len(lines)
    assert measured[0].p50_us == pytest.approx(first["seconds"] * 1e6)
    assert (measured[0].test, measured[0].ranks, measured[0].validated) == ("hpl", 2, True)
    assert measured[0].shape == "N 4000 NB 192 1x2 1ring"
    assert measured[0].extra["gflops"] == first["gflops"]
    assert (measured[0].source, measured[0].command) == ("host", "hpl --json")
    assert len({r.via for r in measured}) > 1  # over Peerway and over MPI


def test_lqcd_is_a_record_of_each_part(tmp_path: Path) -> None:
    kept = RESULTS / "h200-x1" / "lqcd.jsonl"
    line = next(
        single for single in map(json.loads, kept.read_text().splitlines()) if single["record"] == "lqcd"
    )
    parts = {r.test: r for r in read(kept, "evaluate") if r.via == line["program"]}
    assert {"lqcd_hop", "lqcd_algebra", "lqcd_iteration"} <= parts.keys()
    assert {r.source for r in parts.values()} == {"cuda:0"}
    assert all(r.validated for r in parts.values())
    single = tmp_path / "one"
    single.write_text(json.dumps(line) + "\n")
    hop = next(r for r in read(single, "evaluate") if r.test == "lqcd_hop")
    assert hop.p50_us == pytest.approx(line["hop_us"], rel=1e-3)
    assert hop.shape.startswith(f"{line['lattice'][0]}\u2074 {line['layout']} ")


def test_a_line_that_lacks_something_is_refused(tmp_path: Path) -> None:
    printed = tmp_path / "out"
    printed.write_text('{"record": "hpl", "seconds": 1}\n')
    with pytest.raises(RecordError, match="a line of hpl is incomplete"):
        read(printed, "hpl")
    printed.write_text("no record at all\n")
    with pytest.raises(RecordError, match="out:1"):
        read(printed, "hpl")
