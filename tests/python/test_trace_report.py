"""`peerway trace report`: its findings name what is known to be wrong in a trace, and nothing in one that is
well.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_trace_analysis import receive, send, trace_of

from peerway.cli.trace import command
from peerway.trace.analysis import analyse
from peerway.trace.curve import Curve, of_records, of_table
from peerway.trace.page import covered, render
from peerway.trace.regions import enclosing
from peerway.trace.rings import Kind
from peerway.trace.store import SUM_COLUMNS, Thread, Trace, Writer, load

PUT = {"kind": Kind.PUT, "peer": 1, "bytes": 1000, "where": "peer/shm", "name": "put"}


def saved(trace: Trace, folder: Path, **about: Any) -> Path:
    """Write a trace as `peerway trace` does."""
    folder.mkdir()
    writer = Writer(folder)
    writer.add(trace.columns)
    none = {name: np.empty(0, kind) for name, kind in SUM_COLUMNS.items()}
    known = {"command": ["a program"], "level": "full", "began": "", "lost": [], **about}
    writer.end(known, trace.names, trace.threads, none, [])
    return folder


def late_trace() -> Trace:
    call = {"kind": Kind.COLLECTIVE, "name": "MPI_Barrier", "where": "world"}
    return trace_of(
        send(0, 1, 700, name="MPI_Send"), receive(1, 0, 0, 720, name="MPI_Recv"),
        {"rank": 0, "begin": 800, "duration": 110, **call}, {"rank": 1, "begin": 900, "duration": 10, **call},
        {"rank": 1, "kind": Kind.REGION, "begin": 0, "duration": 790, "name": "solve"},
    )  # fmt: skip


def test_lost_time_is_a_finding_with_its_place_and_who_was_late() -> None:
    findings = analyse(late_trace(), []).findings
    late = next(line for line in findings if line.startswith("MPI_Recv"))
    assert "at solve lost 700 ns (38.5 % of the ranks' time) to a late sender in 1 call" in late
    assert "rank 0 was the late one" in late
    barrier = next(line for line in findings if line.startswith("MPI_Barrier"))
    assert "lost 100 ns" in barrier
    assert "rank 1 was the late one" in barrier


def test_a_trace_without_faults_has_no_findings() -> None:
    trace = trace_of(*(send(0, 1, 100 * i) for i in range(5)), *(receive(1, 0, 100 * i) for i in range(5)))
    assert analyse(trace, []).findings == []


def test_messages_slower_than_the_curve_are_counted() -> None:
    curve = Curve("peer/shm", "put", np.array([8.0, 1e6]), np.array([100.0, 100.0]))
    puts = [{"rank": 0, "begin": 1000 * i, "duration": 500 if i % 4 == 0 else 90, **PUT} for i in range(100)]
    analysis = analyse(trace_of(*puts), [curve])
    assert any(line.startswith("25 % of the 100 messages by put over peer/shm") for line in analysis.findings)
    (table,) = [one for one in analysis.tables if one.title.startswith("Rates")]
    assert table.rows == [["put, peer/shm", "100", "25 %", "25 %", "10.0 µs"]]
    assert not [one for one in analyse(trace_of(*puts), []).tables if one.title.startswith("Rates")]


def test_an_uneven_matrix_is_a_finding() -> None:
    sends = [send(0, 1 + i % 3, 100 * i, bytes=10_000) for i in range(9)]
    sends += [send(i, 0, 100, bytes=100) for i in (1, 2, 3)]
    trace = trace_of(
        *sends,
        *({**one, "kind": Kind.RECV, "rank": one["peer"], "peer": one["rank"]} for one in sends),
        ranks=4,
    )
    analysis = analyse(trace, [])
    assert any(line.startswith("Rank 0 sends 87.9 KiB, 4.0 times the mean") for line in analysis.findings)
    assert analysis.matrix is not None
    assert analysis.matrix[0].tolist() == [0, 30_000, 30_000, 30_000]


def test_what_is_lost_and_what_was_open_come_first() -> None:
    trace = late_trace()
    trace.threads[0] = Thread(0, "a", 1, 1, "mpi", "", 0, 50, 5, 0, 0, 0)
    trace.about["lost"] = ["x.ring is damaged"]
    findings = analyse(trace, []).findings
    assert findings[0].startswith("55 events (91.7 %) are lost")
    assert findings[1] == "Not read: x.ring is damaged."


def test_sends_that_nobody_received_are_told() -> None:
    findings = analyse(trace_of(send(0, 1, 0), send(0, 1, 10, tag=4, where="world")), []).findings
    assert any("2 sends have no receive in the trace" in line for line in findings)


def test_an_event_lies_in_the_innermost_region_of_its_thread() -> None:
    region = {"kind": Kind.REGION}
    trace = trace_of(
        {"rank": 0, "begin": 0, "duration": 100, "name": "outer", **region},
        {"rank": 0, "begin": 10, "duration": 20, "name": "inner", **region},
        {"rank": 0, "begin": 50, "duration": 0, "name": "empty", **region},
        *({"rank": 0, "begin": at, **PUT} for at in (5, 15, 35, 60, 150)),
        {"rank": 1, "begin": 15, **PUT},
    )
    puts = np.flatnonzero(trace["kind"] == Kind.PUT)
    assert [trace.names[i] for i in enclosing(trace, puts)] == ["outer", "inner", "outer", "outer", "", ""]


def test_time_covered_is_that_of_a_simple_sum() -> None:
    random = np.random.default_rng(1)
    begin, duration = random.integers(0, 1000, 200), random.integers(0, 300, 200)
    times = np.linspace(0, 1500, 40)
    expected = [np.clip(t - begin, 0, duration).sum() for t in times]
    assert np.allclose(covered(begin, duration, times), expected)


def test_the_page_holds_every_part_and_no_script(tmp_path: Path) -> None:
    puts = [{"rank": 0, "begin": 1000 * i, "duration": 90 + i, **PUT} for i in range(100)]
    trace = trace_of(*puts)
    curve = Curve("peer/shm", "put", np.array([8.0, 1e6]), np.array([100.0, 100.0]))
    text = render(trace, analyse(trace, [curve]))
    for part in ("Findings", "Ranks over time", "Communication matrix", "measured curve", "Bursts"):
        assert part in text
    assert "<script" not in text
    assert 'class="curve"' in text


def test_names_of_programs_are_text_on_the_page() -> None:
    trace = trace_of({"rank": 0, "begin": 0, "duration": 5, **PUT, "where": "<script>alert(1)</script>"})
    assert "<script" not in render(trace, analyse(trace, []))


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    folder = saved(late_trace(), tmp_path / "trace")
    done = CliRunner().invoke(command, ["report", str(folder), "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert "MPI_Recv at solve lost 700 ns" in " ".join(done.output.split())
    assert "MPI_Recv at solve lost 700 ns" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda folder: (folder / "trace.json").unlink(), "holds no trace"),
        (lambda folder: (folder / "trace.json").write_text("{"), "cannot be read"),
        (lambda folder: (folder / "events.parquet").write_bytes(b"PAR1"), "cannot be read"),
        (lambda folder: (folder / "trace.json").write_text('{"version": 99}'), "of version 99"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, spoil: Callable[[Path], Any], said: str) -> None:
    folder = saved(late_trace(), tmp_path / "trace")
    spoil(folder)
    done = CliRunner().invoke(command, ["report", str(folder)], standalone_mode=False)
    assert done.exception is not None
    assert said in str(done.exception)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    trace = late_trace()
    again = load(saved(trace, tmp_path / "trace"))
    assert again.names == trace.names
    assert again.threads == trace.threads
    for name, column in trace.columns.items():
        assert np.array_equal(again[name], column)


def test_curves_come_from_a_table_and_from_records(tmp_path: Path) -> None:
    line = {"op": "put", "shape": "contiguous", "pair": "host->host", "path": "peer/shm"}
    table = {
        "format": "peerway route table",
        "version": 2,
        "splits": [],
        "unavailable": [],
        "costs": [{**line, "points": [[8, 0.1, 0.0], [1000, 0.2, 0.0]]}],
    }
    (tmp_path / "table.json").write_text(json.dumps(table))
    (curve,) = of_table(tmp_path / "table.json")
    assert (curve.path, curve.op) == ("peer/shm", "put")
    assert curve.at(np.array([8.0, 504.0, 1000.0, 2000.0])).tolist() == pytest.approx([100, 150, 200, 400])
    record = {
        "test": "pingpong",
        "shape": "contiguous",
        "via": "openmpi",
        "op": "send",
        "bytes": 8,
        "p50_us": 0.3,
    }
    (tmp_path / "records.jsonl").write_text(json.dumps(record) + "\n")
    (curve,) = of_records(tmp_path / "records.jsonl")
    assert (curve.path, curve.op, curve.ns.tolist()) == ("openmpi", "send", [300.0])


def test_the_help_of_each_verb_says_what_it_does() -> None:
    for verb in ("record", "report", "collect"):
        done = CliRunner().invoke(command, [verb, "--help"])
        assert done.exit_code == 0
        assert re.search(r"Usage: trace " + verb, done.output)
