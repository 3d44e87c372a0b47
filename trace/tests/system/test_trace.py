"""What `peerway trace` records: every operation of ranks and every region, also of those that are killed, and
what is lost is said.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from launching import ROOT, Run, peerway, source_of
from ping_pong import PING_PONG

from peerway import _core
from peerway_measure.tune import draft
from peerway_trace import memory
from peerway_trace.curve import of_table, path_of
from peerway_trace.messages import match_signals
from peerway_trace.rings import HEADER, MAGIC, Kind
from peerway_trace.shares import shares
from peerway_trace.store import Trace, load


@pytest.fixture(scope="module")
def regions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/regions.cpp, compiled; it needs no library."""
    target = tmp_path_factory.mktemp("programs") / "regions"
    source = source_of("regions.cpp")
    flags = [
        "-std=c++20",
        "-O1",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-pthread",
        f"-I{ROOT / 'library' / 'include'}",
    ]
    subprocess.run(["c++", *flags, str(source), "-o", str(target)], check=True)
    return target


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)]
    mounted = subprocess.run(words, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def names(trace: Trace) -> Counter[str]:
    """How often each name occurs."""
    return Counter(trace.names[index] for index in trace["name"])


def test_a_trace_says_which_paths_are_complete_at_once(tmp_path: Path, run: Run) -> None:
    """Even if the ring no longer has its first events."""
    folder = tmp_path / "trace"
    script = [sys.executable, "-c", textwrap.dedent(PING_PONG), "200", "0"]
    words = [*peerway("trace", "-o", str(folder), "--events", "64", "--"), *peerway("run", "-n", "2", "--")]
    assert run([*words, *script]).returncode == 0
    trace = load(folder)
    assert trace.dropped
    at_start = trace.about["paths_complete_at_start"]
    assert "peer/shm" in at_start
    assert "staged" not in at_start


def test_the_page_begins_with_what_a_trace_says(tmp_path: Path, run: Run) -> None:
    page = (ROOT / "docs" / "trace" / "index.md").read_text()
    shown = re.search(r"```\n\$ (peerway trace .*)\n((?:.+\n)+?)```", page)
    assert shown is not None
    verb, name, rest = re.split(r" -o (\S+) -- ", shown[1])
    launch, program = rest.removeprefix("peerway ").split(" -- python ")
    folder = tmp_path / name
    words = [*peerway(*verb.split()[1:], "-o", str(folder), "--"), *peerway(*launch.split(), "--")]
    done = run([*words, sys.executable, str(ROOT / program)])
    output = [*done.stdout.splitlines(), *done.stderr.replace(str(folder), name).splitlines()]
    # A killed run of the tests leaves traces, which the next trace on this host reports.
    output = [line for line in output if "of a trace whose command was killed" not in line]
    assert sorted(output) == sorted(shown[2].splitlines())  # the ranks print theirs in either order


def test_every_operation_of_two_ranks_is_there(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(PING_PONG), "50", "3"]
    done = run(peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program)))
    assert done.returncode == 3, done.stderr  # the command's own status
    assert "2 ranks" in done.stderr
    trace = load(folder)
    assert trace.ranks == [0, 1]
    assert trace.dropped == 0
    assert trace.about["cpus"] == {trace.threads[0].host: len(os.sched_getaffinity(0))}
    assert all(0 <= waited <= 1 for waited in trace.about["cpu_waits"].values())
    assert not (folder / "rings").exists()
    puts = trace.where(trace["kind"] == Kind.PUT)
    assert list(puts["peer"][puts.rank == 0]) == [1] * 50
    assert list(puts["peer"][puts.rank == 1]) == [0] * 50
    assert set(puts["bytes"]) == {8}
    assert {trace.names[index] for index in puts["where"]} == {"peer/shm"}
    waits = trace.where(trace["kind"] == Kind.SIGNAL)
    assert list(waits["bytes"][waits.rank == 0]) == list(range(1, 51))
    assert names(trace)["ping-pong"] == 2
    assert names(trace)["flush"] == 2
    (puts_of_8,) = shares(trace)
    assert (puts_of_8.test, puts_of_8.path, puts_of_8.bytes) == ("put", "peer/shm", 8)
    assert 0 < puts_of_8.share < 1
    written = run(peerway("trace", "shares", str(folder), "--application", "ping-pong"))
    assert "ping-pong,,trace,put,peer/shm,8," in written.stdout
    assert "ended with status 3; its shares may not be those of a complete run" in written.stderr
    lines = textwrap.dedent(PING_PONG).splitlines()
    for kind, call, sites in (
        (Kind.PUT, "ctx.put(", 1), (Kind.FLUSH, "ctx.flush(", 1),
        (Kind.COLLECTIVE, "team.barrier(", 3),  # and those of the context and the keys
    ):  # fmt: skip
        (line,) = [number for number, text in enumerate(lines, 1) if call in text]
        places = {trace.names[site] for site in trace["site"][trace["kind"] == kind]}
        assert f"<module> at <string>:{line}" in places
        assert len(places) == sites


def test_only_the_ranks_that_are_named_record(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(PING_PONG), "5", "0"]
    words = peerway(
        "trace", "-o", str(folder), "--ranks", "1,7", "--", *peerway("run", "-n", "2", "--", *program)
    )
    assert run(words).returncode == 0
    assert load(folder).ranks == [1]
    done = run(peerway("trace", "--ranks", "0-3", "--", "true"))
    assert "0-3 is not a list of ranks; write them as 0,3,12" in done.stderr


@pytest.mark.parametrize("optimize", [pytest.param("-O0", marks=pytest.mark.long), "-O2"])
def test_calls_of_a_program_in_cpp_have_their_lines(optimize: str, tmp_path: Path, run: Run) -> None:
    source, program = source_of("call_sites.cpp"), tmp_path / "program"
    library = Path(_core.__file__).parent / "lib"
    flags = [
        "-std=c++20",
        "-g",
        optimize,
        "-pthread",
        f"-I{ROOT / 'library' / 'include'}",
        f"-L{library}",
        "-lpeerway",
    ]
    words = ["c++", str(source), *flags, f"-Wl,-rpath,{library}", "-o", str(program)]
    subprocess.run(words, check=True)
    folder = tmp_path / "trace"
    assert run(peerway("trace", "-o", str(folder), "--", str(program))).returncode == 0
    trace = load(folder)
    assert trace.ranks == [0]  # no launcher told it
    lines = source.read_text().splitlines()
    wanted = {
        text.split("// ")[1]: number
        for number, text in enumerate(lines, 1)
        if text.rstrip().endswith(" here")
    }
    assert len(wanted) == 8
    by_name: dict[str, set[str]] = {}
    for name, site in zip(trace["name"], trace["site"], strict=True):
        by_name.setdefault(trace.names[name], set()).add(trace.names[site])
    for call, line in wanted.items():
        function = "halo_exchange" if call.startswith("second") else "main"
        place = re.compile(rf"(\(anonymous namespace\)::)?{function}(\(.*\))? at call_sites\.cpp:{line}")
        name = call.removesuffix(" here").removeprefix("second ")
        assert any(place.fullmatch(site) for site in by_name[name]), (call, by_name[name])


REQUESTS = """
    import peerway
    with peerway.Context() as ctx:
        region = ctx.allocate("host", 1 << 22)
        keys = ctx.team.all_gather(region.key())
        remote = ctx.import_key(keys[1 - ctx.rank])
        if ctx.rank == 0:
            ctx.start_put(remote[0:1 << 22], region[0:1 << 22]).wait()
            ctx.put(remote[0:8], region[0:8])
            ctx.flush(1)
            ctx.get(region[0:16], remote[0:16])
            ctx.flush()
        ctx.team.barrier()
"""


def test_waits_for_requests_and_paths_that_go_on_are_there(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(REQUESTS)]
    words = peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program))
    done = run(words, env={**os.environ, "PEERWAY_PATHS": "staged"})
    assert done.returncode == 0, done.stderr
    trace = load(folder)
    own = trace.where(trace.rank == 0)
    chunks = own.where(own["kind"] == Kind.STAGED)
    own = own.where((own["kind"] != Kind.STAGED) & (own["kind"] != Kind.COLLECTIVE))
    assert names(own) == {"put": 2, "get": 1, "flush": 2, "wait for requests": 1}
    moved = dict.fromkeys(("fill", "drain"), 0)
    for where, size in zip(chunks["where"], chunks["bytes"], strict=True):
        moved[chunks.names[where]] += int(size)
    assert moved == {"fill": (1 << 22) + 8, "drain": 16}
    assert {own.names[index] for index in own["where"][own["kind"] == Kind.PUT]} == {"staged"}
    assert sorted(own["peer"][own["kind"] == Kind.FLUSH]) == [-1, 1]
    assert list(own["bytes"][own["kind"] == Kind.GET]) == [16]


PLAN = """
    import peerway
    with peerway.Context() as ctx:
        region = ctx.allocate("host", 4096)
        other = 1 - ctx.rank
        plan = ctx.plan().send(other, 0, region[0:1024]).receive(other, 0, region[1024:2048]).prepare()
        for _ in range(7):
            plan.start()
            plan.finish()
        ctx.team.barrier()
"""


def test_starts_and_finishes_of_plans_are_there(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(PLAN)]
    done = run(peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program)))
    assert done.returncode == 0, done.stderr
    trace = load(folder)
    trace = trace.where(trace["kind"] != Kind.COLLECTIVE)
    assert names(trace) == {"plan start": 14, "plan finish": 14, "put": 14}
    assert set(trace["bytes"][trace["kind"] == Kind.PLAN_START]) == {1024}
    places = {trace.names[index] for index in trace["where"][trace["kind"] == Kind.PUT]}
    assert len(places) == 1
    assert path_of(places.pop()) == "peer/shm"


SPLIT = """
    import peerway
    with peerway.Context() as ctx:
        region = ctx.allocate("host", 1 << 20)
        remote = ctx.import_key(ctx.team.all_gather(region.key())[1 - ctx.rank])
        if ctx.rank == 0:
            ctx.put(remote[0:1 << 20], region[0:1 << 20])
            ctx.flush()
        ctx.team.barrier()
"""


def test_a_split_names_its_paths_and_has_an_event_for_each_piece(tmp_path: Path, run: Run) -> None:
    case = ("put", "contiguous", "host->host")
    slow = [(8, 1.0, 0.01), (1 << 20, 1000.0, 0.01)]
    split = draft.split_entry(case, [("peer/shm", 192), ("staged", 64)], [(65536, 1.0, 0.01)])
    table = draft.table({case: dict.fromkeys(("peer/shm", "staged"), slow)}, [split], {}, {}, 65536)
    (tmp_path / "routes.json").write_text(_core.table_text(json.dumps(table)))
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(SPLIT)]
    words = peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program))
    done = run(words, env={**os.environ, "PEERWAY_ROUTES": str(tmp_path / "routes.json")})
    assert done.returncode == 0, done.stderr
    trace = load(folder)
    (put,) = np.flatnonzero(trace["kind"] == Kind.PUT)
    assert trace.names[trace["where"][put]] == "split, peer/shm 75 % + staged 25 %"
    (curve,) = [c for c in of_table(tmp_path / "routes.json") if " + " in c.path]
    assert path_of(trace.names[trace["where"][put]]) == curve.path
    pieces = trace.where(trace["kind"] == Kind.PIECE)
    by_path = {pieces.names[w]: int(b) for w, b in zip(pieces["where"], pieces["bytes"], strict=True)}
    assert by_path == {"peer/shm": 786_432, "staged": 262_144}
    inside = pieces["begin"] + pieces["duration"] <= trace["begin"][put] + trace["duration"][put] + 1
    assert inside.all()


def test_no_message_arrives_before_it_was_sent(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(PING_PONG), "200", "0"]
    assert (
        run(peerway("trace", "-o", str(folder), "--", *peerway("run", "-n", "2", "--", *program))).returncode
        == 0
    )
    trace = load(folder)
    ends = trace["begin"] + trace["duration"]
    for sender in (0, 1):
        put = (trace["kind"] == Kind.PUT) & (trace.rank == sender)
        wait = (trace["kind"] == Kind.SIGNAL) & (trace.rank == 1 - sender)
        assert np.all(trace["begin"][put] < ends[wait])


def test_the_regions_of_each_thread_are_there(regions: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    assert run(peerway("trace", "-o", str(folder), "--", str(regions), "threads", "1001")).returncode == 0
    trace = load(folder)
    assert len(trace.threads) == 4
    assert names(trace) == {"even": 4 * 501, "odd": 4 * 500}
    for thread in range(4):
        own = trace["thread"] == thread
        begin, end = trace["begin"][own], (trace["begin"] + trace["duration"])[own]
        assert np.all(end[:-1] <= begin[1:])


def test_recursion_deeper_than_the_list_of_open_regions_is_recorded(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "trace"
    assert run(peerway("trace", "-o", str(folder), "--", str(regions), "deep", "5000")).returncode == 0
    trace = load(folder)
    assert names(trace) == {"level": 5000}
    end = trace["begin"] + trace["duration"]
    assert np.all(np.diff(trace["begin"]) >= 0)
    assert np.all(np.diff(end) <= 1)  # each nested in the one before, up to rounding


def test_a_killed_rank_leaves_what_it_recorded_and_what_it_was_in(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "trace"
    done = run(peerway("trace", "-o", str(folder), "--", str(regions), "killed", "10001"))
    assert done.returncode == 128 + signal.SIGKILL
    trace = load(folder)
    assert names(trace) == {"even": 5001, "odd": 5000}
    assert [operation.name for operation in trace.open] == ["last"]
    assert trace.open[0].begin >= (trace["begin"] + trace["duration"]).max() - 1


def test_rings_in_memory_outlive_a_killed_rank_and_leave_nothing_there(
    regions: Path, disk: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "trace"
    options = ["--rings", str(disk), "--events", "16384"]
    done = run(peerway("trace", "-o", str(folder), *options, "--", str(regions), "killed", "10001"))
    assert done.returncode == 128 + signal.SIGKILL
    trace = load(folder)
    assert names(trace) == {"even": 5001, "odd": 5000}
    assert [operation.name for operation in trace.open] == ["last"]
    assert list(disk.iterdir()) == []
    assert not os.path.lexists(folder / "rings")


def test_rings_for_which_memory_has_no_room_are_in_the_folder_of_the_trace(
    regions: Path, disk: Path, tmp_path: Path, run: Run
) -> None:
    # Half of the 6 MiB stays free; the rest suffices for 3 rings of 0.9 MiB each.
    folder = tmp_path / "trace"
    options = ["-o", str(folder), "--rings", str(disk), "--events", "16384"]
    done = run(peerway("trace", *options, "--", str(regions), "turns", "1000"))
    assert done.returncode == 0, done.stderr
    note = re.search(r"(\d) of 4 threads of this host had no room in (\S+), part of which", done.stderr)
    assert note, done.stderr
    assert (note[1], note[2]) == ("1", str(disk))
    assert names(load(folder)) == {"even": 4 * 500, "odd": 4 * 500}
    assert list(disk.iterdir()) == []


def test_memory_that_is_too_small_is_said_and_not_used(disk: Path) -> None:
    assert memory.why_not(disk, 16384) == ""
    reason = memory.why_not(disk, 1 << 18)
    assert reason.startswith(f"{disk} has 6 MiB free, of which 3 MiB are left to the program, and a thread's")
    assert memory.why_not(disk / "none", 16384) == f"{disk / 'none'} cannot be written to"


def in_memory(folder: Path) -> list[Path]:
    """The files in memory of the trace in a folder."""
    owners = [
        owner for owner in memory.MEMORY.glob("peerway-trace-*/trace") if owner.read_text() == str(folder)
    ]
    return [owner.parent for owner in owners]


def test_a_killed_command_leaves_rings_that_are_told_and_collected(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    if memory.why_not(memory.MEMORY, 64):
        pytest.skip(memory.why_not(memory.MEMORY, 64))
    for name in ("kept", "gone"):
        killed = f"{shlex.quote(str(regions))} loop 99; kill -9 $PPID"
        done = run(peerway("trace", "-o", str(tmp_path / name), "--", "sh", "-c", killed))
        assert done.returncode != 0
        assert len(in_memory(tmp_path / name)) == 1
    shutil.rmtree(tmp_path / "gone")
    done = run(peerway("trace", "-o", str(tmp_path / "next"), "--", str(regions), "loop", "1"))
    (rings,) = in_memory(tmp_path / "kept")
    assert f"{rings} holds " in done.stderr
    assert (
        f"`peerway trace collect {shlex.quote(str(tmp_path / 'kept'))}` makes the trace and frees them"
        in done.stderr
    )
    # Files of a removed folder are deleted by the next trace on this host, which reports it.
    assert in_memory(tmp_path / "gone") == in_memory(tmp_path / "next") == []
    assert run(peerway("trace", "collect", str(tmp_path / "kept"))).returncode == 0
    assert names(load(tmp_path / "kept")) == {"even": 50, "odd": 49}
    assert not rings.exists()


def test_rings_of_a_trace_whose_folder_is_gone_are_removed_and_told(tmp_path: Path) -> None:
    folder = tmp_path / f"{memory.PREFIX}killed"
    folder.mkdir()
    (folder / memory.OWNER).write_text(str(tmp_path / "gone"))
    (note,) = memory.left_behind(tmp_path)
    assert note.startswith(f"removed {folder}, ")
    assert note.endswith(f" of a killed trace whose folder {tmp_path / 'gone'} is gone")
    assert not folder.exists()


def test_rings_in_memory_come_to_the_folder_where_no_trace_can_be_made(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "memory").mkdir()
    folder = tmp_path / "trace"
    # Without the package that writes columns, the rings stay.
    without = tmp_path / "without"
    (without / "pyarrow").mkdir(parents=True)
    (without / "pyarrow" / "__init__.py").write_text("raise ModuleNotFoundError(name='pyarrow')")
    words = peerway(
        "trace", "-o", str(folder), "--rings", str(tmp_path / "memory"), "--", str(regions), "loop", "99"
    )
    done = run(words, env={**os.environ, "PYTHONPATH": str(without)})
    assert done.returncode != 0
    assert "peerway trace collect" in done.stderr
    assert list((tmp_path / "memory").iterdir()) == []
    assert run(peerway("trace", "collect", str(folder))).returncode == 0
    assert names(load(folder)) == {"even": 50, "odd": 49}


def test_a_trace_under_way_is_not_collected(regions: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    collect = shlex.join(peerway("trace", "collect", str(folder)))
    collect += f"; test $? -eq 1 && {shlex.quote(str(regions))} loop 9"
    done = run(peerway("trace", "-o", str(folder), "--rings", str(tmp_path), "--", "sh", "-c", collect))
    assert done.returncode == 0, done.stderr
    assert "still runs, and makes the trace when its command ends" in done.stderr
    assert len(load(folder)) == 9


def test_a_child_records_on_its_own(regions: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    assert run(peerway("trace", "-o", str(folder), "--", str(regions), "fork", "10")).returncode == 0
    trace = load(folder)
    assert len({thread.pid for thread in trace.threads}) == 2
    assert names(trace) == {"around": 1, "even": 10, "odd": 10}


def test_a_thread_keeps_its_last_events_and_says_how_many_it_lost(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "trace"
    done = run(peerway("trace", "-o", str(folder), "--events", "64", "--", str(regions), "loop", "1000"))
    assert "936 events are lost" in done.stderr
    trace = load(folder)
    assert (len(trace), trace.dropped) == (64, 936)
    assert trace.sums["count"].sum() == 1000  # sums include all events


@pytest.mark.parametrize("level", ["counters", "profile"])
def test_sums_alone_where_no_events_are_wanted(level: str, regions: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    assert (
        run(
            peerway("trace", "-o", str(folder), "--level", level, "--", str(regions), "loop", "999")
        ).returncode
        == 0
    )
    trace = load(folder)
    assert len(trace) == 0
    counts = {
        trace.names[name]: count for name, count in zip(trace.sums["name"], trace.sums["count"], strict=True)
    }
    assert counts == {"even": 500, "odd": 499}


def test_a_profile_tells_sizes_apart(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(PING_PONG), "20", "0"]
    words = peerway(
        "trace", "-o", str(folder), "--level", "profile", "--", *peerway("run", "-n", "2", "--", *program)
    )
    assert run(words).returncode == 0
    trace = load(folder)
    puts = [i for i, name in enumerate(trace.sums["name"]) if trace.names[name] == "put"]
    assert [(trace.sums["size_class"][i], trace.sums["count"][i], trace.sums["bytes"][i]) for i in puts] == [
        (4, 20, 160)
    ] * 2
    assert {trace.names[trace.sums["where"][i]] for i in puts} == {"peer/shm"}


def rings_of(regions: Path, folder: Path, run: Run, *arguments: str) -> list[Path]:
    """The rings of a program, as they are when the job has just ended."""
    (folder / "rings").mkdir(parents=True)
    done = run([str(regions), *arguments], env={**os.environ, "PEERWAY_TRACE_DIR": str(folder / "rings")})
    assert done.returncode == 0, done.stderr
    return sorted((folder / "rings").glob("*.ring"))


def test_of_a_truncated_ring_the_rest_is_read(regions: Path, tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    (ring,) = rings_of(regions, folder, run, "loop", "1000")
    os.truncate(ring, ring.stat().st_size - 32 * (262144 - 300))
    done = run(peerway("trace", "collect", str(folder)))
    assert "700 events are lost" in done.stderr
    trace = load(folder)
    assert (len(trace), trace.dropped) == (300, 700)


def test_a_ring_without_a_header_is_named_and_the_others_are_read(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "trace"
    (whole,) = rings_of(regions, folder, run, "loop", "10")
    (folder / "rings" / "short.ring").write_bytes(whole.read_bytes()[:1000])
    damaged = bytearray(whole.read_bytes())
    damaged[0] = 0
    (folder / "rings" / "damaged.ring").write_bytes(damaged)
    wild = bytearray(whole.read_bytes())
    wild[32:40] = (12345).to_bytes(8, "little")  # a capacity that is not a power of two
    (folder / "rings" / "wild.ring").write_bytes(wild)
    (folder / "rings" / "older.ring").write_bytes(b"PWTRACE2" + whole.read_bytes()[8:])
    done = run(peerway("trace", "collect", str(folder)))
    assert done.returncode == 0, done.stderr
    for name in ("short.ring", "damaged.ring", "wild.ring"):
        assert f"trace: {name}" in done.stderr
    assert "older.ring is of another version of Peerway: it begins with PWTRACE2" in done.stderr
    assert len(load(folder)) == 10
    assert len(json.loads((folder / "trace.json").read_text())["lost"]) == 4


def test_a_clock_that_steps_back_is_told_and_ends_nothing(tmp_path: Path, run: Run) -> None:
    program = tmp_path / "program"
    flags = ["-std=c++20", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'library' / 'include'}"]
    source = source_of("stepping_clock.cpp")
    subprocess.run(["c++", *flags, str(source), "-o", str(program)], check=True)
    folder = tmp_path / "trace"
    done = run(peerway("trace", "-o", str(folder), "--", str(program)))
    assert done.returncode == 0, done.stderr
    assert re.search(r"its clock stepped back by (99\d|1,000),\d{3},\d{3} ticks", done.stderr), done.stderr
    trace = load(folder)
    assert names(trace) == {"region": 10}
    assert trace["duration"].min() == 0
    assert trace["duration"].max() < 1_000_000_000


def test_random_damage_ends_no_reader(regions: Path, tmp_path: Path, run: Run) -> None:
    from peerway_trace.collect import collect

    random = np.random.default_rng(1)
    (whole,) = rings_of(regions, tmp_path / "first", run, "loop", "100")
    good = whole.read_bytes()[: 1 << 20]
    for attempt in range(20):
        folder = tmp_path / f"damaged-{attempt}"
        (folder / "rings").mkdir(parents=True)
        bad = np.frombuffer(good, np.uint8).copy()
        at = np.concatenate([random.integers(0, 400, 20), random.integers(0, len(bad), 2000)])
        bad[at] = random.integers(0, 256, len(at))
        bad[:8] = np.frombuffer(MAGIC, np.uint8)
        bad[8:16] = np.frombuffer(good[8:16], np.uint8)
        (folder / "rings" / "a.ring").write_bytes(bad.tobytes())
        trace = collect(folder, {"command": []}, {})
        assert trace.about["lost"] or trace.threads


def leave(disk: Path, room: int) -> None:
    """Fill a disk except for `room` bytes."""
    status = os.statvfs(disk)
    with (disk / "ballast").open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, status.f_bavail * status.f_frsize - room)


def test_a_full_disk_ends_no_program(regions: Path, disk: Path, run: Run) -> None:
    leave(disk, 200_000)  # not even a header fits
    words = ["-o", str(disk / "trace"), "--rings", str(disk)]
    done = run(peerway("trace", *words, "--", str(regions), "threads", "1000"))
    assert "done" in done.stdout
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("No space left on device; make room there, or lower --events") == 4
    assert "nothing was recorded" in done.stderr


def test_a_disk_with_little_room_keeps_the_last_events(regions: Path, disk: Path, run: Run) -> None:
    leave(disk, 2_000_000)
    words = ["-o", str(disk / "trace"), "--rings", str(disk)]
    done = run(peerway("trace", *words, "--", str(regions), "loop", "100000"))
    assert done.returncode == 0, done.stderr
    trace = load(disk / "trace")
    assert len(trace) == 32768  # 1 MiB: the largest power of two that fits beside the header
    assert trace.dropped == 100_000 - 32768


def test_rings_outlive_a_disk_that_is_full_when_they_are_collected(
    regions: Path, disk: Path, run: Run
) -> None:
    words = peerway("trace", "-o", str(disk / "trace"), "--events", "65536", "--")
    fill = f"{regions} loop 60000; head -c 100m /dev/zero >{disk}/ballast 2>/dev/null; true"
    done = run([*words, "bash", "-c", fill])
    assert done.returncode == 1
    assert f"peerway trace collect {disk}/trace" in done.stderr
    (disk / "ballast").unlink()
    done = run(peerway("trace", "collect", str(disk / "trace")))
    assert done.returncode == 0, done.stderr
    assert len(load(disk / "trace")) == 60000


def test_without_pyarrow_the_rings_stay_and_become_a_trace_where_it_is(
    regions: Path, tmp_path: Path, run: Run
) -> None:
    absent = tmp_path / "absent"
    absent.mkdir()
    (absent / "sitecustomize.py").write_text("import sys\nsys.modules['pyarrow'] = None\n")
    folder = tmp_path / "trace"
    loop = f"echo the command starts >&2; {regions} loop 100"
    words = peerway("trace", "-o", str(folder), "--", "bash", "-c", loop)
    done = run(words, env={**os.environ, "PYTHONPATH": str(absent)})
    assert done.returncode == 1
    before, after = done.stderr.split("the command starts")
    assert f"pyarrow, which makes the trace, is not installed: the events will stay in {folder}" in before
    assert "pyarrow, which makes the trace, is not installed" in after
    assert f"peerway trace collect {folder}" in done.stderr
    folder.rename(tmp_path / "elsewhere")
    assert run(peerway("trace", "collect", str(tmp_path / "elsewhere"))).returncode == 0
    trace = load(tmp_path / "elsewhere")
    assert len(trace) == 100
    assert trace.about["command"] == ["bash", "-c", loop]


def test_a_folder_that_holds_something_is_kept(tmp_path: Path, run: Run) -> None:
    (tmp_path / "mine").write_text("dear to me")
    done = run(peerway("trace", "-o", str(tmp_path), "--", "true"))
    assert done.returncode == 1
    assert "is not empty; name another folder with -o" in done.stderr
    assert (tmp_path / "mine").read_text() == "dear to me"


def test_a_command_that_does_not_exist_is_named(tmp_path: Path, run: Run) -> None:
    done = run(peerway("trace", "-o", str(tmp_path / "trace"), "--", "no-such-program"))
    assert done.returncode == 127  # as a shell and `peerway run` do
    assert "no-such-program was not found in PATH" in done.stderr
    assert not (tmp_path / "trace").exists()


def test_a_command_that_cannot_be_run_leaves_no_rings_elsewhere(tmp_path: Path, run: Run) -> None:
    (tmp_path / "memory").mkdir()
    options = ["-o", str(tmp_path / "trace"), "--rings", str(tmp_path / "memory")]
    program = tmp_path / "program"
    program.write_bytes(b"\x7fELF")
    program.chmod(0o755)
    done = run(peerway("trace", *options, "--", str(program)))
    assert done.returncode == 1
    assert f"{program} cannot be run: Exec format error" in done.stderr
    assert not (tmp_path / "trace").exists()
    assert not list((tmp_path / "memory").iterdir())


def test_a_bad_level_is_refused_by_the_library(tmp_path: Path, run: Run) -> None:
    program = "import peerway; peerway.Context()"
    done = run([sys.executable, "-c", program], env={**os.environ, "PEERWAY_TRACE_LEVEL": "loud"})
    assert "PEERWAY_TRACE_LEVEL" in done.stderr
    assert "counters" in done.stderr


def test_what_was_not_traced_has_no_rings(regions: Path, tmp_path: Path, run: Run) -> None:
    assert run([str(regions), "loop", "10"], cwd=tmp_path).returncode == 0
    assert list(tmp_path.iterdir()) == []
    done = run(peerway("trace", "-o", str(tmp_path / "trace"), "--", "true"))
    assert "nothing was recorded" in done.stderr
    assert "0 events" not in done.stderr


def test_a_host_whose_clock_is_ahead_is_brought_to_the_time_of_the_others(tmp_path: Path, run: Run) -> None:
    folder = tmp_path / "trace"
    (folder / "rings").mkdir(parents=True)
    words = peerway("run", "-n", "2", "--", sys.executable, "-c", textwrap.dedent(PING_PONG), "300", "0")
    done = run(words, env={**os.environ, "PEERWAY_TRACE_DIR": str(folder / "rings")})
    assert done.returncode == 0, done.stderr
    for ring in (folder / "rings").glob("*.ring"):
        header = np.memmap(ring, HEADER, "r+", shape=(1,))
        if header["rank"][0] == 1:  # as if it had run on another host, whose clock is five seconds ahead
            header["host"][0] = b"other"
            header["ns"][0] += 5_000_000_000
        header.flush()
    done = run(peerway("trace", "collect", str(folder)))
    assert done.returncode == 0, done.stderr
    trace = load(folder)
    (correction,) = trace.about["corrections"]
    assert correction["host"] == "other"
    assert abs(correction["offset"] - 5e9) < 100_000
    pairs = match_signals(trace)
    assert len(pairs.first) == 600
    ends = trace["begin"] + trace["duration"]
    assert np.mean(trace["begin"][pairs.first] <= ends[pairs.second]) > 0.99
    assert ends.max() < 60_000_000_000
