"""Exports of traces: what other tools' own readers find in them."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_trace_analysis import receive, send, trace_of
from test_trace_report import saved

from peerway.cli.trace import command
from peerway.trace.export import otf2_archive, perfetto
from peerway.trace.rings import Kind
from peerway.trace.store import Trace


def job() -> Trace:
    """Two ranks of MPI: a send, a request each way whose spans overlap, a collective, a region, a put, a
    get.
    """
    collective = {
        "kind": Kind.COLLECTIVE,
        "name": "MPI_Allreduce",
        "where": "world",
        "bytes": 8,
        "duration": 30,
    }
    world: dict[str, Any] = {"where": "world"}
    events = [
        {"rank": 0, "kind": Kind.REGION, "name": "solve", "begin": 0, "duration": 600},
        send(0, 1, 10, name="MPI_Send", **world), receive(1, 0, 5, 40, name="MPI_Recv", **world),
        {"rank": 0, "begin": 100, **collective}, {"rank": 1, "begin": 90, **collective},
    ]  # fmt: skip
    for rank in (0, 1):
        events += [
            receive(rank, 1 - rank, 200, 5, 1, kind=Kind.IRECV, name="MPI_Irecv", **world),
            send(rank, 1 - rank, 210, 5, 1, kind=Kind.ISEND, name="MPI_Isend", **world),
            {"rank": rank, "kind": Kind.WAIT, "name": "MPI_Waitall", "begin": 220, "duration": 80},
            send(rank, 1 - rank, 210, 90, 1, kind=Kind.SENT, name="send, until complete", **world),
            receive(rank, 1 - rank, 200, 100, 1, kind=Kind.RECEIVED, name="receive, until complete", **world),
        ]
    put = {"where": "peer/shm", "bytes": 64, "duration": 20}
    events += [
        {"rank": 0, "kind": Kind.PUT, "name": "put", "peer": 1, "tag": 7, "begin": 400, **put},
        {
            "rank": 1,
            "kind": Kind.SIGNAL,
            "name": "wait",
            "peer": 0,
            "tag": 7,
            "begin": 350,
            "duration": 90,
            "bytes": 1,
        },
        {"rank": 1, "kind": Kind.GET, "name": "get", "peer": 0, "begin": 500, **put},
    ]
    return trace_of(*events)


def packets(file: Path) -> list[Any]:
    from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace as PerfettoTrace

    read = PerfettoTrace()
    read.ParseFromString(file.read_bytes())
    return list(read.packet)


def slices(file: Path) -> dict[int, list[tuple[int, int, str]]]:
    """Of each track: begin, end and name of its slices. Fails where they do not nest."""
    read = packets(file)
    names = {one.iid: one.name for one in read[0].interned_data.event_names}
    found: dict[int, list[tuple[int, int, str]]] = {}
    stacks: dict[int, list[tuple[int, str]]] = {}
    for packet in sorted(read, key=lambda packet: packet.timestamp):
        event = packet.track_event
        stack = stacks.setdefault(event.track_uuid, [])
        if packet.HasField("track_event") and event.type == event.TYPE_SLICE_BEGIN:
            stack.append((packet.timestamp, names[event.name_iid]))
        elif packet.HasField("track_event") and event.type == event.TYPE_SLICE_END:
            begin, name = stack.pop()
            found.setdefault(event.track_uuid, []).append((begin, packet.timestamp, name))
    assert not any(stacks.values())
    return found


def test_perfetto_has_every_event_on_the_track_of_its_thread(tmp_path: Path) -> None:
    trace = job()
    perfetto.export(trace, tmp_path / "trace")
    read = packets(tmp_path / "trace")
    processes = {
        p.track_descriptor.process.process_name for p in read if p.track_descriptor.HasField("process")
    }
    assert processes == {"rank 0", "rank 1"}
    found = slices(tmp_path / "trace")
    assert sum(map(len, found.values())) == len(trace)
    threads = {p.track_descriptor.uuid for p in read if p.track_descriptor.HasField("thread")}
    own = [sorted(name for _, _, name in found[track]) for track in sorted(threads)]
    assert own[0] == sorted(
        ["solve", "MPI_Send", "MPI_Allreduce", "MPI_Irecv", "MPI_Isend", "MPI_Waitall", "put"]
    )
    requests = {p.track_descriptor.uuid for p in read if p.track_descriptor.name == "requests"}
    assert len(requests) == 4  # the two of each rank overlap
    assert all((begin >= 200 and end == 300) for track in requests for begin, end, _ in found[track])


def test_each_message_is_an_arrow_from_its_send_to_its_receive(tmp_path: Path) -> None:
    perfetto.export(job(), tmp_path / "trace")
    starts: Counter[int] = Counter()
    ends: Counter[int] = Counter()
    for packet in packets(tmp_path / "trace"):
        starts.update(packet.track_event.flow_ids)
        ends.update(packet.track_event.terminating_flow_ids)
    assert len(starts) == 4  # the send, a request each way, the put
    assert starts == ends
    assert set(starts.values()) == {1}


def test_bytes_in_flight_end_at_none(tmp_path: Path) -> None:
    perfetto.export(job(), tmp_path / "trace")
    counted = [p for p in packets(tmp_path / "trace") if p.track_event.type == p.track_event.TYPE_COUNTER]
    last = {p.track_event.track_uuid: p.track_event.counter_value for p in counted}
    assert set(last.values()) == {0}
    assert max(p.track_event.counter_value for p in counted) == 64


def test_times_that_rounding_put_outside_are_drawn_inside(tmp_path: Path) -> None:
    region = {"rank": 0, "kind": Kind.REGION}
    perfetto.export(
        trace_of(
            {**region, "name": "outer", "begin": 0, "duration": 10},
            {**region, "name": "inner", "begin": 5, "duration": 6},
        ),
        tmp_path / "trace",
    )
    ((_, first, _), (_, second, _)) = next(iter(slices(tmp_path / "trace").values()))
    assert first <= second == 10


def test_otf2_is_read_by_its_own_reader(tmp_path: Path) -> None:
    import otf2

    otf2_archive.export(job(), tmp_path / "archive")
    kinds: Counter[str] = Counter()
    times: dict[str, list[int]] = {}
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        assert archive.definitions.clock_properties.timer_resolution == 10**9
        assert {comm.name for comm in archive.definitions.comms} >= {"world"}
        for location, event in archive.events:
            kinds[type(event).__name__] += 1
            times.setdefault(location.name, []).append(event.time)
            if isinstance(event, otf2.events.MpiSend):
                assert (event.receiver, event.msg_length, event.communicator.name) == (1, 8, "world")
            if isinstance(event, otf2.events.MpiCollectiveEnd):
                assert event.collective_op == otf2.CollectiveOp.ALLREDUCE
            if isinstance(event, otf2.events.RmaPut):
                assert (event.remote, event.bytes, event.win.name) == (1, 64, "peer/shm")
    assert kinds["Enter"] == kinds["Leave"] == len(job()) - 4  # requests are no regions
    for name, count in (
        ("MpiSend", 1), ("MpiRecv", 1), ("MpiIsend", 2), ("MpiIsendComplete", 2), ("MpiIrecvRequest", 2),
        ("MpiIrecv", 2), ("MpiCollectiveBegin", 2), ("MpiCollectiveEnd", 2), ("RmaPut", 1), ("RmaGet", 1),
        ("RmaOpCompleteBlocking", 2),
    ):  # fmt: skip
        assert kinds[name] == count, name
    for several in times.values():
        assert np.all(np.diff(several) >= 0)


@pytest.mark.skipif(shutil.which("otf2-print") is None, reason="no otf2-print: make setup as root")
def test_otf2_print_accepts_it(tmp_path: Path) -> None:
    otf2_archive.export(job(), tmp_path / "archive")
    anchor = tmp_path / "archive" / "traces.otf2"
    done = subprocess.run(["otf2-print", str(anchor)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("MPI_IRECV ") == 2
    assert 'Communicator: "world"' in done.stdout


@pytest.mark.parametrize("form", ["perfetto", "otf2"])
def test_the_command_writes_and_does_not_overwrite(form: str, tmp_path: Path) -> None:
    folder, out = saved(job(), tmp_path / "trace"), tmp_path / "out"
    words = ["export", str(folder), "--to", form, "-o", str(out)]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert out.exists()
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert "exists; name another with -o" in str(done.exception)
