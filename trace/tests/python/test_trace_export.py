"""Exports of traces: what other tools' own readers find in them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from test_trace_analysis import receive, send, started, trace_of, waiting
from test_trace_report import saved

from peerway_trace.cli import command
from peerway_trace.export import otf2_archive, perfetto
from peerway_trace.rings import Kind
from peerway_trace.store import BadTrace, Thread, Trace


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
    """Begin, end and name of the slices of each track; fails if they do not nest."""
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
    assert len(starts) == 4  # the send, a request in each direction, the put
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


def test_a_thousand_processes_and_requests_under_way_have_tracks_of_their_own(tmp_path: Path) -> None:
    """Two hosts whose processes have the same numbers; and requests that are all under way at once."""
    ranks, requests = 1200, 1500
    threads = [
        Thread(rank, "ab"[rank % 2], 100 + rank // 2, 100 + rank // 2, "openmpi", "", 0, 0, 0, 0, 0, 0)
        for rank in range(ranks)
    ]
    calls = [send(rank, 0, rank, 5, name="MPI_Send") for rank in range(ranks)]
    under_way = [
        receive(0, 1, 10_000 + i, 100_000, i, kind=Kind.RECEIVED, name="receive, until complete")
        for i in range(requests)
    ]
    trace = replace(trace_of(*calls, *under_way, ranks=ranks), threads=threads)
    perfetto.export(trace, tmp_path / "trace")
    tracks = [p.track_descriptor for p in packets(tmp_path / "trace") if p.HasField("track_descriptor")]
    assert len({track.uuid for track in tracks}) == len(tracks)
    processes = {
        track.process.pid: track.process.process_name for track in tracks if track.HasField("process")
    }
    assert sorted(processes.values()) == sorted(f"rank {rank}" for rank in range(ranks))
    assert {track.thread.tid for track in tracks if track.HasField("thread")} == set(processes)
    assert sum(track.name == "requests" for track in tracks) == requests
    assert sum(map(len, slices(tmp_path / "trace").values())) == ranks + requests


@pytest.mark.parametrize(("form", "module"), [("perfetto", perfetto), ("otf2", otf2_archive)])
def test_an_export_that_fails_leaves_nothing_that_blocks_the_next(
    form: str, module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, out = saved(job(), tmp_path / "job"), tmp_path / "out"
    words = ["export", str(folder), "--to", form, "-o", str(out)]
    monkeypatch.setattr(module, "steps", lambda *_: iter([object()]))  # an error among the events
    failed = CliRunner().invoke(command, words)
    assert isinstance(failed.exception, AttributeError)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["job"]
    monkeypatch.undo()
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert out.exists()


def test_otf2_says_when_the_trace_began_and_counts_bytes_in_flight(tmp_path: Path) -> None:
    import otf2

    trace = job()
    trace.about["began"] = "2026-01-02T03:04:05.500+00:00"
    otf2_archive.export(trace, tmp_path / "archive")
    levels: dict[str, list[float]] = {}
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        clock = archive.definitions.clock_properties
        assert (clock.timer_resolution, clock.trace_length) == (10**9, 600)
        assert clock.realtime_timestamp == 1767323045_500000000
        for location, event in archive.events:
            if isinstance(event, otf2.events.Metric):
                levels.setdefault(location.group.name, []).append(event.value)
    assert set(levels) == {"rank 0", "rank 1"}
    assert all(level[-1] == 0 for level in levels.values())
    assert max(levels["rank 0"]) == 64


def test_work_of_a_gpu_is_in_a_stream_of_its_rank(tmp_path: Path) -> None:
    import otf2

    trace = trace_of(
        {"rank": 0, "kind": Kind.CALL, "name": "launch", "begin": 0, "duration": 5},
        {"rank": 0, "kind": Kind.KERNEL, "name": "dgemm", "thread": 1, "begin": 10, "duration": 50},
        {"rank": 0, "kind": Kind.NIC, "name": "nic put", "begin": 3, "duration": 40},
    )
    trace.threads[1] = Thread(0, "a", 0, 0x40000000, "gpu", "cuda:0/7", 0, 0, 0, 0, 0, 0)
    otf2_archive.export(trace, tmp_path / "archive")
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        regions = [
            (location.type, location.name, event.region.name)
            for location, event in archive.events
            if isinstance(event, otf2.events.Enter)
        ]
    assert (otf2.LocationType.ACCELERATOR_STREAM, "cuda:0/7", "dgemm") in regions
    perfetto.export(trace, tmp_path / "trace")
    names = {name for several in slices(tmp_path / "trace").values() for _, _, name in several}
    assert names == {"launch", "dgemm", "nic put"}


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
    assert kinds["ProgramBegin"] == kinds["ProgramEnd"] == 2
    assert kinds["Enter"] == kinds["Leave"] == len(job()) - 4  # requests are not regions
    for name, count in (
        ("MpiSend", 1), ("MpiRecv", 1), ("MpiIsend", 2), ("MpiIsendComplete", 2), ("MpiIrecvRequest", 2),
        ("MpiIrecv", 2), ("MpiCollectiveBegin", 2), ("MpiCollectiveEnd", 2), ("RmaPut", 1), ("RmaGet", 1),
        ("RmaOpCompleteBlocking", 2), ("RmaWinCreate", 2), ("RmaWinDestroy", 2),
    ):  # fmt: skip
        assert kinds[name] == count, name
    for several in times.values():
        assert np.all(np.diff(several) >= 0)


def test_otf2_tells_windows_of_an_mpi_from_paths_and_has_notifications_and_synchronisations(
    tmp_path: Path,
) -> None:
    import otf2

    window = {"rank": 0, "where": "window 1", "peer": 1, "duration": 5}
    trace = trace_of(
        {**window, "kind": Kind.RMA_PUT, "name": "MPI_Put", "begin": 0, "bytes": 8},
        {**window, "kind": Kind.RMA_SYNC, "name": "MPI_Win_flush", "begin": 10},
        {**window, "kind": Kind.RMA_SYNC, "name": "MPI_Win_flush_all", "begin": 20, "peer": -1},
        {"rank": 0, "kind": Kind.NOTIFY, "name": "notify", "peer": 1, "tag": 3, "begin": 30, "duration": 5},
        {"rank": 1, "kind": Kind.GET, "name": "get", "where": "peer/shm", "peer": 0, "begin": 0, "bytes": 16},
    )
    otf2_archive.export(trace, tmp_path / "archive")
    found: dict[str, list[tuple[str, Any, int]]] = {}
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        for _, event in archive.events:
            if type(event).__name__.startswith("Rma"):
                remote = getattr(event, "remote", -1)
                told = (event.win.name, event.win.comm.group.paradigm, remote)
                found.setdefault(type(event).__name__, []).append(told)
    assert found["RmaPut"] == found["RmaSync"] == [("window 1", otf2.Paradigm.MPI, 1)]
    assert found["RmaAtomic"] == [("signals", otf2.Paradigm.SHMEM, 1)]
    assert found["RmaGet"] == [("peer/shm", otf2.Paradigm.SHMEM, 0)]
    assert found["RmaOpCompleteNonBlocking"] == [("window 1", otf2.Paradigm.MPI, -1)]
    assert len(found["RmaOpCompleteBlocking"]) == 2


def records(archive: Path, *kinds: str) -> list[tuple[str, str, int, Any]]:
    """The records of these kinds: process, record, time, and the event itself."""
    import otf2

    with otf2.reader.open(str(archive / "traces.otf2")) as opened:
        return [
            (location.group.name, type(event).__name__, event.time, event)
            for location, event in opened.events
            if type(event).__name__.startswith(kinds)
        ]


def test_otf2_says_when_communicators_and_windows_are_made_and_freed(tmp_path: Path) -> None:
    trace = trace_of(
        *(
            {"rank": rank, "kind": kind, "name": "made", "where": where, "begin": begin}
            for rank in (0, 1)
            for kind, where, begin in (
                (Kind.COMM_MADE, "world.1:0", 10), (Kind.WINDOW_MADE, "window 1", 20),
                (Kind.WINDOW_FREED, "window 1", 50), (Kind.COMM_FREED, "world.1:0", 60),
            )
        ),
        {"rank": 0, "kind": Kind.RMA_PUT, "name": "MPI_Put", "where": "window 1", "peer": 1, "begin": 30},
        {"rank": 1, "kind": Kind.PUT, "name": "put", "where": "peer/shm", "peer": 0, "begin": 40},
    )  # fmt: skip
    otf2_archive.export(trace, tmp_path / "archive")
    told = [
        (process, record, time, event.communicator.name if "Comm" in record else event.win.name)
        for process, record, time, event in records(tmp_path / "archive", "Comm", "RmaWin")
    ]
    for rank, (begin, end) in enumerate([(10, 60), (10, 60)]):
        assert sorted(one[1:] for one in told if one[0] == f"rank {rank}") == [
            ("CommCreate", 10, "world.1:0"), ("CommDestroy", 60, "world.1:0"),
            ("RmaWinCreate", begin, "peer/shm"), ("RmaWinCreate", 20, "window 1"),
            ("RmaWinDestroy", 50, "window 1"), ("RmaWinDestroy", end, "peer/shm"),
        ]  # fmt: skip


def test_otf2_completes_what_goes_on_after_its_call_where_the_program_waited_for_it(tmp_path: Path) -> None:
    put = {"rank": 0, "kind": Kind.PUT, "name": "put", "duration": 5}
    flush = {"rank": 0, "kind": Kind.FLUSH, "name": "flush", "duration": 8}
    trace = trace_of(
        {**put, "where": "staged", "peer": 1, "begin": 0}, {**put, "where": "staged", "peer": 2, "begin": 10},
        {**put, "where": "quick", "peer": 1, "begin": 20},
        {**flush, "peer": 2, "begin": 30}, {**flush, "peer": -1, "begin": 40},
        {**put, "where": "staged", "peer": 1, "begin": 50},
        {"rank": 1, "kind": Kind.GET, "name": "get", "where": "quick", "peer": 0, "begin": 0},
        {"rank": 2, "kind": Kind.GET, "name": "get", "where": "quick", "peer": 0, "begin": 0},
        ranks=3,
    )  # fmt: skip
    trace.about["paths_complete_at_start"] = ["quick"]  # as recorders describe their paths
    otf2_archive.export(trace, tmp_path / "archive")
    told = [
        (record.removeprefix("RmaOpComplete"), time)
        for process, record, time, _ in records(tmp_path / "archive", "RmaOpComplete")
        if process == "rank 0"
    ]
    # The completion of the last put is unknown, because nothing waited for it: its call's end is used
    # instead.
    assert told == [("Blocking", 25), ("NonBlocking", 38), ("NonBlocking", 48), ("Blocking", 55)]


def test_a_trace_that_does_not_say_which_paths_complete_within_the_call_is_refused(tmp_path: Path) -> None:
    trace = trace_of({"rank": 0, "kind": Kind.PUT, "name": "put", "where": "peer/shm", "peer": 1, "begin": 0})
    del trace.about["paths_complete_at_start"]
    with pytest.raises(BadTrace, match=r"an older Peerway collected this trace.* record it anew"):
        otf2_archive.export(trace, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()
    mpi = trace_of(send(0, 1, 0), receive(1, 0, 0))
    del mpi.about["paths_complete_at_start"]
    otf2_archive.export(mpi, tmp_path / "archive")  # it has no such puts


def test_otf2_has_the_collectives_of_a_team(tmp_path: Path) -> None:
    import otf2

    team = {"kind": Kind.COLLECTIVE, "where": "team", "duration": 9, "bytes": 64}
    trace = trace_of(
        *(
            {"rank": rank, "begin": begin, "name": name, **team}
            for rank in (0, 1)
            for begin, name in ((0, "all_gather"), (20, "barrier"))
        )
    )
    otf2_archive.export(trace, tmp_path / "archive")
    found = [
        (time, event.collective_op, event.communicator.name, event.communicator.group.paradigm)
        for process, _, time, event in records(tmp_path / "archive", "MpiCollectiveEnd")
        if process == "rank 0"
    ]
    assert found == [
        (9, otf2.CollectiveOp.ALLGATHER, "team", otf2.Paradigm.SHMEM),
        (29, otf2.CollectiveOp.BARRIER, "team", otf2.Paradigm.SHMEM),
    ]


def test_otf2_says_when_a_put_arrived_also_after_the_last_call_of_its_rank(tmp_path: Path) -> None:
    import otf2

    put = {"kind": Kind.PUT, "name": "put", "where": "peer/shm", "peer": 1, "tag": 7, "bytes": 64}
    trace = trace_of(
        {"rank": 0, "begin": 10, "duration": 5, **put},
        {"rank": 0, "begin": 20, "duration": 5, **put},
        *(
            {"rank": 1, "kind": Kind.SIGNAL, "name": "wait", "peer": 0, "tag": 7, "bytes": i, "begin": begin,
             "duration": 40}
            for i, begin in ((1, 0), (2, 50))
        ),
    )  # fmt: skip
    otf2_archive.export(trace, tmp_path / "archive")
    told: list[tuple[str, int]] = []
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        for location, event in archive.events:
            if location.group.name == "rank 0" and not isinstance(event, otf2.events.Metric):
                told.append((type(event).__name__, event.time))
    assert [time for name, time in told if name == "RmaOpCompleteRemote"] == [40, 90]
    assert told[0] == ("ProgramBegin", 10)
    assert told[-1] == ("ProgramEnd", 90)
    assert [time for _, time in told] == sorted(time for _, time in told)


@pytest.mark.parametrize("form", ["perfetto", "otf2"])
def test_a_full_disk_is_said_and_leaves_nothing_behind(form: str, tmp_path: Path) -> None:
    folder = saved(
        trace_of(*(send(0, 1, 10 * i, 5, name="MPI_Send", where="world") for i in range(20_000))),
        tmp_path / "trace",
    )
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("no tmpfs can be mounted here")
    try:
        words = [sys.executable, "-m", "peerway", "trace", "export", str(folder), "--to", form, "-o"]
        done = subprocess.run(
            [*words, str(disk / "out")], capture_output=True, text=True, check=False, timeout=600
        )
        assert done.returncode != 0
        assert f"cannot write {disk / 'out'}" in done.stderr
        assert "Traceback" not in done.stderr
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_otf2_has_collectives_that_do_not_block_as_requests(tmp_path: Path) -> None:
    import otf2

    trace = trace_of(
        *(event for rank in (0, 1) for event in started(rank, "Ibcast", 10 * rank, 90, peer=0, bytes=4)),
        *(waiting(rank, 50, 90) for rank in (0, 1)),
    )
    otf2_archive.export(trace, tmp_path / "archive")
    requests: dict[str, list[int]] = {}
    with otf2.reader.open(str(tmp_path / "archive" / "traces.otf2")) as archive:
        for _, event in archive.events:
            name = type(event).__name__
            assert not name.startswith("MpiCollective")
            if "NonBlockingCollective" in name:
                requests.setdefault(name, []).append(event.request_id)
            if name == "NonBlockingCollectiveComplete":
                assert (event.collective_op, event.root, event.size_sent) == (otf2.CollectiveOp.BCAST, 0, 4)
                assert event.time == 90
    assert sorted(requests["NonBlockingCollectiveRequest"]) == [1, 2]
    assert sorted(requests["NonBlockingCollectiveComplete"]) == [1, 2]


@pytest.mark.skipif(shutil.which("otf2-print") is None, reason="no otf2-print: make setup as root")
def test_otf2_print_accepts_it(tmp_path: Path) -> None:
    otf2_archive.export(job(), tmp_path / "archive")
    anchor = tmp_path / "archive" / "traces.otf2"
    done = subprocess.run(["otf2-print", str(anchor)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("MPI_IRECV ") == 2
    assert 'Communicator: "world"' in done.stdout


@pytest.mark.parametrize("form", ["perfetto", "otf2"])
def test_the_command_makes_no_folder_for_its_output(form: str, tmp_path: Path) -> None:
    folder, out = saved(job(), tmp_path / "trace"), tmp_path / "no" / "out"
    done = CliRunner().invoke(command, ["export", str(folder), "--to", form, "-o", str(out)])
    assert done.exit_code == 1
    assert f"cannot write {out}: there is no folder {out.parent}; name another file with --out" in done.output
    assert not out.parent.exists()


@pytest.mark.parametrize("form", ["perfetto", "otf2"])
def test_the_command_writes_and_does_not_overwrite(form: str, tmp_path: Path) -> None:
    folder, out = saved(job(), tmp_path / "trace"), tmp_path / "out"
    words = ["export", str(folder), "--to", form, "-o", str(out)]
    done = CliRunner().invoke(command, words)
    assert done.exit_code == 0, done.output
    assert out.exists()
    done = CliRunner().invoke(command, words, standalone_mode=False)
    assert "exists; name another with -o" in str(done.exception)


def test_otf2_says_that_a_send_was_cancelled(tmp_path: Path) -> None:
    request: dict[str, Any] = {"kind": Kind.ISEND, "name": "MPI_Isend", "where": "world"}
    cancelled: dict[str, Any] = {"kind": Kind.CANCELLED, "name": "send, until cancelled", "where": "world"}
    otf2_archive.export(
        trace_of(send(0, 1, 0, **request), send(0, 1, 0, 15, **cancelled)), tmp_path / "trace"
    )
    done = subprocess.run(
        ["otf2-print", str(tmp_path / "trace" / "traces.otf2")], capture_output=True, text=True, check=True
    )
    assert done.stdout.count("MPI_REQUEST_CANCELLED") == 1
