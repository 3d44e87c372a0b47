"""`peerway trace report`: its findings name what is known to be wrong in a trace, and nothing in one that is
well.
"""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console
from test_trace_analysis import receive, send, trace_of

from peerway_trace import pressure
from peerway_trace.analysis import analyse
from peerway_trace.cli import command
from peerway_trace.cli.record import summarize
from peerway_trace.curve import Curve, of_records, of_table
from peerway_trace.lanes import Cover
from peerway_trace.page import render, show
from peerway_trace.regions import enclosing
from peerway_trace.rings import Kind
from peerway_trace.store import SUM_COLUMNS, Thread, Trace, Writer, load
from peerway_trace.tables import Analysis, Finding

PUT = {"kind": Kind.PUT, "peer": 1, "bytes": 1000, "where": "peer/shm", "name": "put"}


def saved(trace: Trace, folder: Path, **about: Any) -> Path:
    """Write a trace like `peerway trace`."""
    folder.mkdir()
    writer = Writer(folder)
    writer.add(trace.columns)
    none = {name: np.empty(0, kind) for name, kind in SUM_COLUMNS.items()}
    known = {"command": ["a program"], "level": "full", "began": "", "lost": [], **trace.about, **about}
    writer.end(known, trace.names, trace.threads, none, [])
    return folder


def late_trace() -> Trace:
    call = {"kind": Kind.COLLECTIVE, "name": "MPI_Barrier", "where": "world"}
    return trace_of(
        send(0, 1, 700, name="MPI_Send"), receive(1, 0, 0, 720, name="MPI_Recv"),
        {"rank": 0, "begin": 800, "duration": 110, **call}, {"rank": 1, "begin": 900, "duration": 10, **call},
        {"rank": 1, "kind": Kind.REGION, "begin": 0, "duration": 790, "name": "solve"},
    )  # fmt: skip


def sentences_of(analysis: Analysis) -> list[str]:
    """The findings as the terminal shows them."""
    return [str(one) for one in analysis.findings]


def test_lost_time_is_a_finding_with_its_place_and_who_was_late() -> None:
    findings = analyse(late_trace(), []).findings
    late = next(one for one in findings if one.text.startswith("MPI_Recv"))
    assert late.text == (
        "MPI_Recv at solve lost 700 ns (38.5 % of the ranks' time, 1 call) to a sender that came late. "
        "Rank 0 caused all of it."
    )
    assert late.evidence == "Rank 1 lost all of it; the longest wait was 700 ns, at 0 on rank 1."
    assert late.todo
    assert late.link == "#t=0,900&rank=1"
    barrier = next(one for one in findings if "MPI_Barrier" in one.text)
    assert "lost 90.0 ns" in barrier.text
    assert barrier.text.endswith(
        "to ranks that computed longer before a collective. Rank 1 caused all of it."
    )


def test_a_rank_that_may_have_waited_for_a_cpu_is_not_told_to_do_less() -> None:
    """For hosts with enough CPUs, and if the number of CPUs is unknown, the advice is the usual one."""
    trace = late_trace()
    usual = sentences_of(analyse(trace, []))
    for cpus in ({"a": 2}, {"b": 1}):
        assert sentences_of(analyse(replace(trace, about={**trace.about, "cpus": cpus}), [])) == usual
    first, *others = analyse(replace(trace, about={**trace.about, "cpus": {"a": 1}}), []).findings
    assert first.text == "a ran 2 ranks on 1 CPU, so the ranks took turns."
    assert "Start at most 1 rank there" in first.todo
    late = next(one for one in others if one.text.startswith("MPI_Recv"))
    assert late.todo == "The rank may have waited for a CPU, as its host was busy: see above."
    path = next(one for one in others if one.text.startswith("To end earlier"))
    assert "may have waited for a CPU" in path.todo


def test_a_host_that_was_busy_with_other_work_is_told_as_well() -> None:
    trace = late_trace()
    about = {**trace.about, "cpus": {"a": 2}}
    usual = sentences_of(analyse(trace, []))
    assert sentences_of(analyse(replace(trace, about={**about, "cpu_waits": {"a": 0.04}}), [])) == usual
    first, *others = analyse(replace(trace, about={**about, "cpu_waits": {"a": 0.94}}), []).findings
    assert first.text == "In 94 % of the time, programs on a waited for a CPU."
    late = next(one for one in others if one.text.startswith("MPI_Recv"))
    assert late.todo == "The rank may have waited for a CPU, as its host was busy: see above."


def test_findings_of_one_advice_stand_together_and_the_page_shows_the_first_ones() -> None:
    analysis = analyse(late_trace(), [])
    advice = [*["Do less."] * 6, "Do it earlier.", "Do it later.", "", ""]
    analysis.findings = [
        Finding(f"Call {i} lost time.", f"Evidence {i}.", todo) for i, todo in enumerate(advice)
    ]
    printed = io.StringIO()
    show(Console(file=printed, width=200), analysis)
    html = render(late_trace(), analysis)
    for text in (printed.getvalue(), html):
        assert [text.count(todo) for todo in ("Do less.", "Do it earlier.", "Do it later.")] == [1, 1, 1]
        assert all(text.count(f"Call {i} lost time.") == 1 for i in range(len(advice)))
    findings = html[html.index('<section id="findings">') :].partition("</section>")[0]
    first, folded = findings.split('<details class="rest">')
    assert re.findall(r"Call \d", re.sub(r"<details>.*?</details>", "", first, flags=re.DOTALL)) == [
        "Call 0", "Call 6", "Call 7",
    ]  # fmt: skip
    assert "and 5 more with this advice" in first
    assert "2 more findings" in folded


def test_waits_for_a_cpu_are_those_of_the_cgroup_else_of_the_host(tmp_path: Path) -> None:
    def write(file: str, total: int) -> None:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        line = "avg10=1.00 avg60=2.00 avg300=3.00 total="
        (tmp_path / file).write_text(f"some {line}{total}\nfull {line}1\n")

    assert pressure.waited_us(tmp_path) is None
    assert pressure.Meter(tmp_path).share() is None
    write("proc/pressure/cpu", 500)
    assert pressure.waited_us(tmp_path) == 500
    (tmp_path / "proc/self").mkdir()
    (tmp_path / "proc/self/cgroup").write_text("1:cpu:/\n0::/job_7/step_0\n")
    assert pressure.waited_us(tmp_path) == 500
    write("sys/fs/cgroup/job_7/step_0/cpu.pressure", 70)
    assert pressure.waited_us(tmp_path) == 70
    meter = pressure.Meter(tmp_path)
    write("sys/fs/cgroup/job_7/step_0/cpu.pressure", 10**12)
    assert meter.share() == 1.0


def test_a_trace_without_faults_has_no_findings() -> None:
    trace = trace_of(*(send(0, 1, 100 * i) for i in range(5)), *(receive(1, 0, 100 * i) for i in range(5)))
    assert analyse(trace, []).findings == []


def of_a_gpu(*kernels: tuple[str, int, int]) -> Trace:
    """Kernels (name, begin, end) on two streams in turn."""
    events = [
        {"rank": i % 2, "kind": Kind.KERNEL, "name": name, "begin": begin, "duration": end - begin}
        for i, (name, begin, end) in enumerate(kernels)
    ]
    trace = trace_of(*events)
    trace.threads = [replace(one, source="gpu", thread=f"cuda:0/{one.tid}", pid=7) for one in trace.threads]
    return trace


def test_a_gpu_without_work_is_a_finding_with_what_came_next() -> None:
    trace = of_a_gpu(("a", 0, 500), ("b", 300, 600), ("late", 900, 950), ("a", 950, 960), ("b", 980, 1000))
    analysis = analyse(trace, [])
    (finding,) = (one for one in analysis.findings if "nothing to do" in one.text)
    assert finding.text == (
        "cuda:0 had nothing to do for 320 ns, 32 % of the time from its first work to its last, in 2 gaps."
    )
    assert finding.evidence == (
        "300 ns of it was before late; the longest gap was 300 ns, at 600 ns, before late."
    )
    assert finding.link.startswith("#t=525,975")
    (table,) = (one for one in analysis.tables if one.title == "GPUs")
    assert table.rows == [["cuda:0", "680 ns", "320 ns", "32 %", "2", "300 ns"]]


def test_a_gpu_that_is_busy_is_no_finding() -> None:
    analysis = analyse(of_a_gpu(("a", 0, 500), ("b", 500, 800), ("c", 802, 1000)), [])
    assert not [one for one in sentences_of(analysis) if "nothing to do" in one]


def test_messages_slower_than_the_curve_are_counted() -> None:
    curve = Curve("peer/shm", "put", np.array([8.0, 1e6]), np.array([100.0, 100.0]))
    puts = [{"rank": 0, "begin": 1000 * i, "duration": 500 if i % 4 == 0 else 90, **PUT} for i in range(100)]
    analysis = analyse(trace_of(*puts), [curve])
    assert any(
        line.startswith("25 % of the 100 messages by put over peer/shm") for line in sentences_of(analysis)
    )
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
    assert any(
        line.startswith("Rank 0 sends 87.9 KiB, 4.0 times the mean") for line in sentences_of(analysis)
    )
    assert analysis.matrix is not None
    assert analysis.matrix.bytes[0].tolist() == [0, 30_000, 30_000, 30_000]
    assert analysis.matrix.messages[0].tolist() == [0, 3, 3, 3]


def test_the_matrix_has_how_many_messages_their_sizes_and_rates() -> None:
    puts = [
        {"rank": 0, "begin": 1000 * i, "duration": 100 * (i + 1), **PUT, "bytes": 100 * (i + 1)}
        for i in range(3)
    ]
    analysis = analyse(trace_of(*puts), [])
    matrix = analysis.matrix
    assert matrix is not None
    at = (0, 1)
    assert (matrix.messages[at], matrix.bytes[at], matrix.ns[at]) == (3, 600, 600)
    assert (matrix.smallest[at], matrix.mean[at], matrix.largest[at], matrix.rate[at]) == (
        100,
        200,
        300,
        1000,
    )
    assert matrix.messages.sum() == 3
    assert matrix.smallest.sum() == 100
    (table,) = (one for one in analysis.tables if one.title == "Messages by pair of ranks")
    assert table.rows == [["0 to 1", "3", "600 B", "100 B", "200 B", "300 B", "600 ns", "1.00 GB/s"]]


def test_what_is_lost_and_what_was_open_come_first() -> None:
    trace = late_trace()
    trace.threads[0] = Thread(0, "a", 1, 1, "mpi", "", 0, 50, 5, 0, 0, 0)
    trace.about["lost"] = ["x.ring is damaged"]
    findings = sentences_of(analyse(trace, []))
    assert findings[0].startswith("55 events (91.7 %) are lost")
    assert findings[1] == "Not read: x.ring is damaged."


def test_sends_that_nobody_received_are_told() -> None:
    findings = sentences_of(analyse(trace_of(send(0, 1, 0), send(0, 1, 10, tag=4, where="world")), []))
    assert any("2 sends have no receive in the trace" in line for line in findings)


def test_a_message_with_other_bytes_at_its_receive_is_a_finding() -> None:
    trace = trace_of(
        send(0, 1, 0, bytes=8, where="world"), receive(1, 0, 5, bytes=8, where="world"),
        send(0, 1, 20, bytes=8, where="world"), receive(1, 0, 25, bytes=4, where="world"),
    )  # fmt: skip
    (finding,) = (one for one in analyse(trace, []).findings if "a different size" in one.text)
    assert finding.text == "1 message has a different size at the receive than at the send."
    assert finding.evidence == (
        "The first was sent by rank 0 at 20.0 ns with 8 B, and received by rank 1 with 4 B, tag 0, in world."
    )
    assert finding.rank == 0


def test_collectives_in_unlike_orders_are_a_finding() -> None:
    def calls(rank: int, *names: str) -> list[dict[str, Any]]:
        return [
            {"rank": rank, "kind": Kind.COLLECTIVE, "name": name, "where": "world", "begin": 100 * i + rank}
            for i, name in enumerate(names)
        ]

    same = calls(0, "MPI_Barrier", "MPI_Bcast_c"), calls(1, "MPI_Barrier", "MPI_Bcast")
    assert not [
        one for one in sentences_of(analyse(trace_of(*same[0], *same[1]), [])) if "not the same" in one
    ]
    unlike = (
        calls(0, "MPI_Barrier", "MPI_Bcast", "MPI_Barrier"),
        calls(1, "MPI_Barrier", "MPI_Reduce", "MPI_Barrier"),
    )
    (finding,) = (
        one for one in analyse(trace_of(*unlike[0], *unlike[1]), []).findings if "not the same" in one.text
    )
    assert finding.text.startswith("1 collective is not the same call on all ranks")
    assert finding.evidence == (
        "The first are MPI_Bcast of rank 0, at 100 ns, and MPI_Reduce of rank 1, at 101 ns, in world."
    )


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


def test_time_that_any_of_several_intervals_covers_is_counted_once() -> None:
    random = np.random.default_rng(1)
    begin, duration = random.integers(0, 1000, 60), random.integers(0, 30, 60)
    inside = np.zeros(1100, bool)
    for one, length in zip(begin, duration, strict=True):
        inside[one : one + length] = True
    times = np.arange(0, 1100, 7)
    cover = Cover(begin, begin + duration)
    assert cover.until(times).tolist() == [inside[:time].sum() for time in times]
    assert cover.total == inside.sum()
    other = Cover(np.array([100, 500]), np.array([300, 650]))
    assert cover.shared(other) == inside[100:300].sum() + inside[500:650].sum()


def test_the_page_holds_every_part(tmp_path: Path) -> None:
    puts = [{"rank": 0, "begin": 1000 * i, "duration": 90 + i, **PUT} for i in range(100)]
    trace = trace_of(*puts)
    curve = Curve("peer/shm", "put", np.array([8.0, 1e6]), np.array([100.0, 100.0]))
    text = render(trace, analyse(trace, [curve]))
    for part in ("Findings", "Timeline", "Communication matrix", "measured curve", "Bursts", "Critical path"):
        assert part in text
    assert "All 100 events" in text


def test_names_of_programs_are_text_on_the_page() -> None:
    trace = trace_of({"rank": 0, "begin": 0, "duration": 5, **PUT, "where": "<script>alert(1)</script>"})
    assert "<script>alert" not in render(trace, analyse(trace, []))


def test_the_command_prints_and_writes(tmp_path: Path) -> None:
    folder = saved(late_trace(), tmp_path / "trace")
    done = CliRunner().invoke(command, ["report", str(folder), "-o", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert "MPI_Recv at solve lost 700 ns" in " ".join(done.output.split())
    assert "MPI_Recv at solve lost 700 ns" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize("option", ["--out", "--bursts"])
def test_an_output_without_a_folder_is_refused(option: str, tmp_path: Path) -> None:
    folder, out = saved(late_trace(), tmp_path / "trace"), tmp_path / "no" / "file.csv"
    done = CliRunner().invoke(command, ["report", str(folder), option, str(out)])
    assert done.exit_code == 1
    assert (
        f"cannot write {out}: there is no folder {out.parent}; name another file with {option}" in done.output
    )
    assert not out.parent.exists()


def test_files_are_written_also_if_nobody_reads_what_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any) -> None:
        raise BrokenPipeError

    monkeypatch.setattr("peerway_trace.page.show", broken)
    folder = saved(late_trace(), tmp_path / "trace")
    page, bursts = tmp_path / "page.html", tmp_path / "bursts.csv"
    CliRunner().invoke(command, ["report", str(folder), "-o", str(page), "--bursts", str(bursts)])
    assert "MPI_Recv at solve lost 700 ns" in page.read_text()
    assert bursts.read_text().startswith('"gap_ns"')


def test_a_heading_counts_one_thing_as_one_and_says_that_there_is_no_event() -> None:
    one = trace_of({"rank": 0, "begin": 0, "duration": 5, **PUT}, ranks=1)
    assert analyse(one, []).heading[-1].startswith("1 rank, 1 thread, 1 event in 5.00 ns; ")
    assert analyse(one, []).heading[-1].endswith("; level unknown")
    nothing = trace_of(ranks=1)
    assert analyse(nothing, []).heading[-1].startswith("1 rank, 1 thread, no events; ")
    short = trace_of({"rank": 0, "begin": 0, **PUT}, ranks=1)
    assert analyse(short, []).heading[-1].startswith("1 rank, 1 thread, 1 event; ")


@pytest.mark.parametrize(
    ("level", "ranks", "why"),
    [
        ("full", 2, "its processes began to record, and called nothing that is recorded"),
        ("full", 0, "no process of the command made a Peerway context, called MPI or named a region"),
        ("profile", 2, "it was recorded with --level profile, which keeps sums alone"),
    ],
)
def test_a_trace_without_events_says_why(level: str, ranks: int, why: str) -> None:
    trace = trace_of(ranks=ranks)
    trace.about["level"] = level
    (finding,) = sentences_of(analyse(trace, []))
    assert finding.startswith(f"The trace has no events: {why}.")


@pytest.mark.parametrize(
    ("peers", "message"),
    [
        ((1,), ""),
        ((2,), "1 rank is not in the trace, though others communicate with it: 2."),
        ((2, 1, 5, -1), "2 ranks are not in the trace, though others communicate with them: 2, 5."),
    ],
)
def test_ranks_that_others_name_and_that_did_not_record_are_told(
    peers: tuple[int, ...], message: str
) -> None:
    puts = [{"rank": 0, "begin": 10 * i, "duration": 5, **PUT, "peer": peer} for i, peer in enumerate(peers)]
    trace = trace_of(*puts)
    found = [one for one in sentences_of(analyse(trace, [])) if "not in the trace, though" in one]
    assert [one[: len(message)] for one in found] == ([message] if message else [])
    trace.about["ranks"] = "0,1"  # it was left out on purpose
    assert not [one for one in sentences_of(analyse(trace, [])) if "not in the trace, though" in one]


def test_a_message_alone_makes_no_table_of_bursts() -> None:
    def bursts(*begins: int) -> int:
        puts = [{"rank": 0, "begin": begin, "duration": 5, **PUT} for begin in begins]
        return sum("Bursts" in table.title for table in analyse(trace_of(*puts), []).tables)

    assert bursts(0) == 0
    assert bursts(0, 100) == 1


def test_a_summary_counts_one_thing_as_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = trace_of({"rank": 0, "begin": 0, "duration": 5, **PUT}, ranks=1)
    trace.about.update(level="full", lost=[])
    summarize(trace, tmp_path)
    assert "trace: 1 rank, 1 thread, 1 event; `peerway trace report" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (shutil.rmtree, "there is no folder"),
        (lambda folder: (folder / "trace.json").unlink(), "holds no trace"),
        (lambda folder: (folder / "events.parquet").unlink(), "there is no events.parquet"),
        (lambda folder: (folder / "trace.json").write_text("{"), "trace.json cannot be read"),
        (lambda folder: (folder / "trace.json").write_text("[]"), "trace.json cannot be read"),
        (lambda folder: (folder / "trace.json").write_text('{"version": 1}'), "'names' is missing"),
        (lambda folder: (folder / "events.parquet").write_bytes(b"PAR1"), "events.parquet cannot be read"),
        (lambda folder: (folder / "sums.parquet").write_bytes(b"PAR1"), "sums.parquet cannot be read"),
        (lambda folder: (folder / "trace.json").write_text('{"version": 99}'), "of version 99"),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path: Path, spoil: Callable[[Path], Any], message: str) -> None:
    folder = saved(late_trace(), tmp_path / "trace")
    spoil(folder)
    done = CliRunner().invoke(command, ["report", str(folder)], standalone_mode=False)
    assert done.exception is not None
    assert message in str(done.exception)


@pytest.mark.parametrize(("text", "why"), [
    ("x", "Expecting value"),
    ("[1]", "it is no JSON object"),
    ('{"test": "put_latency"}', "'shape' is missing"),
])  # fmt: skip
def test_a_file_that_holds_no_records_is_named_with_its_line(tmp_path: Path, text: str, why: str) -> None:
    folder, file = saved(late_trace(), tmp_path / "trace"), tmp_path / "records.jsonl"
    file.write_text(text)
    done = CliRunner().invoke(command, ["report", str(folder), "--bench", str(file)], standalone_mode=False)
    assert f"{file}:1: not a record of `peerway bench`: {why}" in str(done.exception)


def test_a_route_table_given_as_records_is_called_that_and_the_reverse(tmp_path: Path) -> None:
    folder = saved(late_trace(), tmp_path / "trace")
    table, records = tmp_path / "routes.json", tmp_path / "records.jsonl"
    table.write_text('{\n"format": "peerway route table"\n}')
    records.write_text('{"test": "put_bw", "via": "peer/shm", "bytes": 8}\n')
    for option, file, words in (
        ("--bench", table, "is a route table; give it to --table, and to --bench records"),
        ("--table", records, "has records; give them to --bench, and to --table a route table"),
    ):
        done = CliRunner().invoke(command, ["report", str(folder), option, str(file)], standalone_mode=False)
        assert f"{file} {words}" in str(done.exception)


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
    of_all = {"shape": "contiguous", "op": "put", "bytes": 8, "p50_us": 0.3, "bandwidth_MBps": 80.0}
    records = [
        {**of_all, "test": "pingpong", "via": "openmpi"},
        {**of_all, "test": "put_bw", "via": "openmpi"},
        {**of_all, "test": "put_bw", "via": "peer/shm"},
        {**of_all, "test": "mpi_latency", "via": "tcp", "op": "send", "extra": {"mpi": "HYDRA 4.0.2"}},
        {
            **of_all,
            "test": "send_latency",
            "via": "plan/packets",
            "op": "send",
        },  # messages of plans, not of MPI
    ]
    (tmp_path / "records.jsonl").write_text("".join(json.dumps(one) + "\n" for one in records))
    found = [
        (one.path, one.op, one.stack, one.streamed, one.ns.tolist())
        for one in of_records(tmp_path / "records.jsonl")
    ]
    assert found == [
        ("openmpi", "send", "openmpi", False, [300.0]),
        ("openmpi", "send", "openmpi", True, [100.0]),
        ("peer/shm", "put", "", True, [100.0]),
        ("tcp", "send", "mpich", False, [300.0]),
    ]


def bursts_of_puts() -> Trace:
    """Ten bursts of two puts of 1,000 bytes: nine take 200 ns each, and the last 900 ns."""
    puts = [(i * 100_000, 100) for i in range(10)] + [(i * 100_000 + 100, 100) for i in range(9)]
    return trace_of(*({"rank": 0, "begin": b, "duration": d, **PUT} for b, d in [*puts, (900_100, 800)]))


def test_slow_bursts_are_a_finding_by_their_share_of_the_curve() -> None:
    curve = Curve("peer/shm", "put", np.array([8.0, 1e6]), np.array([90.0, 90.0]), streamed=True)
    analysis = analyse(bursts_of_puts(), [curve])
    (finding,) = (one for one in analysis.findings if "bursts" in one.text)
    assert finding.text == (
        "10 % of the bytes in bursts moved at less than half of the measured curve's rate: 1 of 10 bursts, "
        "which together took 720 ns longer than the curve's time."
    )
    assert finding.evidence == (
        "The worst of them has 2 messages with 1.95 KiB of rank 0, at 900 µs: 2.22 GB/s, 20 % of the curve."
    )
    (table,) = (one for one in analysis.tables if one.title == "Bursts against the measured curve")
    assert table.rows == [["0", "10", "90 %", "51.5 %", "1", "10 %", "720 ns"]]
    assert not [one for one in analyse(bursts_of_puts(), []).findings if "bursts" in one.text]


def test_distributions_of_bursts_are_on_the_page() -> None:
    analysis = analyse(bursts_of_puts(), [])
    assert [one.title.split(" (")[0] for one in analysis.distributions] == [
        "Bursts by rate", "Bursts by length", "Bursts by bytes",
    ]  # fmt: skip
    assert [(one.labels, one.counts) for one in analysis.bars] == [(["to 1 KiB"], [20])]
    text = render(bursts_of_puts(), analysis)
    (drawn,) = re.findall(r'<script type="application/json" id="plots">(.*?)</script>', text)
    plots = json.loads(drawn)
    assert [one["kind"] for one in plots] == ["scatter", "cdf", "cdf", "cdf", "bars"]
    length = plots[2]
    assert (length["values"][0], length["values"][-1]) == (200, 900)
    assert length["shares"][-1] == 100
    assert text.count('data-plot="') == len(plots)


@pytest.mark.parametrize("form", ["parquet", "csv", "jsonl"])
def test_all_bursts_are_written_for_other_tools(form: str, tmp_path: Path) -> None:
    import pyarrow.csv
    import pyarrow.parquet as pq

    folder, file = saved(bursts_of_puts(), tmp_path / "trace"), tmp_path / f"bursts.{form}"
    done = CliRunner().invoke(command, ["report", str(folder), "--bursts", str(file)])
    assert done.exit_code == 0, done.output
    if form == "jsonl":
        rows = [json.loads(line) for line in file.read_text().splitlines()]
    else:
        rows = (pq.read_table(file) if form == "parquet" else pyarrow.csv.read_csv(file)).to_pylist()
    of_one = [row for row in rows if row["gap_ns"] == 10_000]
    assert len(of_one) == 10
    assert {row["gap_ns"] for row in rows} == {1000, 3000, 10_000, 30_000, 100_000, 1_000_000}
    first = {name: value for name, value in of_one[0].items() if name not in ("of_curve", "in_flight")}
    assert first == {
        "gap_ns": 10_000, "rank": 0, "begin_ns": 0, "length_ns": 200, "messages": 2, "bytes": 2000,
        "peers": 1, "bytes_per_s": 1e10, "stall_ns": 99_800, "sizes": "1024:2",
    }  # fmt: skip
    assert of_one[-1]["stall_ns"] is None


def test_the_help_of_each_verb_says_what_it_does() -> None:
    for verb in ("record", "report", "collect"):
        done = CliRunner().invoke(command, [verb, "--help"])
        assert done.exit_code == 0
        assert re.search(r"Usage: trace " + verb, done.output)


def test_a_command_that_failed_is_the_first_finding() -> None:
    trace = late_trace()
    good, failed = (
        sentences_of(analyse(replace(trace, about={**trace.about, "status": status}), []))
        for status in (0, 134)
    )
    assert failed[0].startswith("The command ended with status 134.")
    assert failed[1:] == good
