"""The critical path, and the gain from shortening a part of it: synthetic traces with known answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_trace_analysis import receive, send, started, trace_of, waiting

from peerway_trace import critical
from peerway_trace.analysis import analyse
from peerway_trace.lanes import lanes
from peerway_trace.messages import match, match_signals
from peerway_trace.rings import Kind
from peerway_trace.store import Thread, Trace

Event = dict[str, Any]


def path_of(trace: Trace) -> critical.Path:
    found = critical.find(trace, match(trace), match_signals(trace), lanes(trace))
    assert found is not None
    return found


def parts(path: critical.Path) -> dict[str, tuple[int, int | None]]:
    return {part.text: (part.on_path, part.shorter) for part in path.parts}


def region(rank: int, name: str, begin: int, duration: int) -> Event:
    return {"rank": rank, "kind": Kind.REGION, "name": name, "begin": begin, "duration": duration}


def pipeline() -> Trace:
    """Rank 0 computes 1,000 ns in solve and sends, which takes 100; rank 1 computes 800 in other meanwhile,
    receives and computes 500 in solve.
    """
    return trace_of(
        region(0, "solve", 0, 1000), send(0, 1, 1000, 100, name="MPI_Send"),
        region(1, "other", 0, 800), receive(1, 0, 800, 300, name="MPI_Recv"), region(1, "solve", 1100, 500),
        {"rank": 1, "kind": Kind.CALL, "name": "MPI_Finalize", "begin": 1600, "duration": 10},
    )  # fmt: skip


def test_the_path_goes_through_the_message_that_was_waited_for() -> None:
    path = path_of(pipeline())
    assert path.length == 1610
    assert (path.end - path.begin).sum() == 1610
    assert path.begin[-1] == 0
    found = parts(path)
    assert found["computing in solve"][0] == 1500
    assert found["MPI_Recv"][0] == 100  # from the time at which both sides were there
    assert found["MPI_Finalize"][0] == 10
    assert "computing in other" not in found
    assert list(path.rank) == [1, 1, 1, 0]


def test_shortening_a_part_is_replayed_and_not_a_share() -> None:
    found = parts(path_of(pipeline()))
    # 100 of solve's 1,000 ns in rank 0 bring the message that much earlier, because rank 1 is there at 800;
    # and 50 of the time after it.
    assert found["computing in solve"][1] == 150
    # With 1,000 and 990 ns the other rank becomes critical, so 10 % of the first saves only 10 ns.
    close = trace_of(
        region(0, "a", 0, 1000), send(0, 1, 1000, 100, name="MPI_Send"),
        region(1, "b", 0, 990), receive(1, 0, 990, 110, name="MPI_Recv"),
    )  # fmt: skip
    assert parts(path_of(close))["computing in a"] == (1000, 10)


def test_the_last_at_a_collective_is_on_the_path() -> None:
    call = {"kind": Kind.COLLECTIVE, "name": "MPI_Allreduce", "where": "world"}
    path = path_of(
        trace_of(
            region(0, "a", 0, 100), {"rank": 0, "begin": 100, "duration": 450, **call},
            region(1, "b", 0, 500), {"rank": 1, "begin": 500, "duration": 40, **call},
            region(2, "c", 0, 480), {"rank": 2, "begin": 480, "duration": 65, **call}, ranks=3,
        )
    )  # fmt: skip
    # Rank 0 leaves last, 50 ns after rank 1 arrived; with 10 % less of b, rank 2 is the last.
    assert parts(path) == {"computing in b": (500, 20), "MPI_Allreduce": (50, 5)}


def test_a_collective_that_does_not_block_is_needed_by_the_call_that_waits_for_it() -> None:
    path = path_of(
        trace_of(
            *started(0, "Iallreduce", 0, 550), region(0, "a", 5, 95), waiting(0, 100, 550),
            region(1, "b", 0, 500), *started(1, "Iallreduce", 500, 540), waiting(1, 505, 540),
        )
    )  # fmt: skip
    # Rank 0 leaves 50 ns after rank 1 had started it.
    assert parts(path) == {"computing in b": (500, 50), "MPI_Waitall": (50, 5)}


def test_a_broadcast_needs_its_root_alone() -> None:
    call = {"kind": Kind.COLLECTIVE, "name": "MPI_Bcast", "where": "world", "peer": 0}
    path = path_of(
        trace_of(
            {"rank": 0, "begin": 300, "duration": 20, **call},
            {"rank": 1, "begin": 100, "duration": 230, **call},
            {"rank": 2, "begin": 900, "duration": 5, **call}, ranks=3,
        )
    )  # fmt: skip
    assert path.length == 905
    assert set(path.rank.tolist()) == {2}  # nobody waits for the last one


def test_a_wait_for_a_signal_needs_its_notification() -> None:
    path = path_of(
        trace_of(
            region(0, "work", 0, 700),
            {"rank": 0, "kind": Kind.PUT, "name": "put", "peer": 1, "tag": 3, "begin": 700, "duration": 20},
            {"rank": 1, "kind": Kind.SIGNAL, "name": "wait", "tag": 3, "bytes": 1, "begin": 10,
             "duration": 750},
        )
    )  # fmt: skip
    assert parts(path) == {"computing in work": (700, 70), "wait": (60, 6)}


def test_a_rank_that_waits_for_its_gpu_computes_there() -> None:
    trace = trace_of(
        {"rank": 0, "kind": Kind.PUT, "name": "put", "peer": 0, "begin": 0, "duration": 100},
        {"rank": 0, "kind": Kind.PUT, "name": "put", "peer": 0, "begin": 1100, "duration": 100},
        {"rank": 0, "kind": Kind.PUT, "name": "put", "peer": 0, "begin": 1500, "duration": 100},
        {"rank": 0, "kind": Kind.KERNEL, "name": "dgemm", "thread": 1, "begin": 120, "duration": 960},
        {"rank": 0, "kind": Kind.KERNEL, "name": "pack", "thread": 1, "begin": 1250, "duration": 50},
    )
    trace.threads[1] = Thread(0, "a", 0, 0x40000000, "gpu", "cuda:0/7", 0, 0, 0, 0, 0, 0)
    found = parts(path_of(trace))
    assert found["computing on the GPU (dgemm)"] == (1000, 100)
    assert found["computing between calls"] == (300, 30)  # the GPU was idle for most of it


def test_without_a_change_the_replay_ends_when_the_job_did() -> None:
    """For random jobs, the path is as long as the trace, and no saving exceeds a tenth of its part."""
    random = np.random.default_rng(5)
    for _ in range(30):
        events, now = [], np.zeros(4, np.int64)
        for step in range(40):
            now += random.integers(1, 200, 4)
            if random.random() < 0.3:
                done = int(now.max() + random.integers(1, 50))
                call = {"kind": Kind.COLLECTIVE, "name": "MPI_Barrier", "where": "world"}
                for r, at in enumerate(now.tolist()):
                    events.append({"rank": r, "begin": at, "duration": done - at, **call})
                now[:] = done
                continue
            a, b = random.choice(4, 2, replace=False).tolist()
            arrived = int(max(now[a], now[b]) + random.integers(1, 80))
            events.append(send(a, b, int(now[a]), int(random.integers(1, 60)), tag=step, name="MPI_Send"))
            now[a] += events[-1]["duration"]
            events.append(receive(b, a, int(now[b]), arrived - int(now[b]), tag=step, name="MPI_Recv"))
            now[b] = arrived
        trace = trace_of(*events, ranks=4)
        path = path_of(trace)
        end = int((trace["begin"] + trace["duration"]).max())
        assert path.length == end
        assert (path.end - path.begin).sum() == end
        assert np.array_equal(path.begin[:-1], path.end[1:])  # one stretch after the other
        for part in path.parts:
            assert part.shorter is not None
            assert 0 <= part.shorter <= round(part.on_path * 0.1) + len(path.begin)


def test_what_to_shorten_first_is_a_finding() -> None:
    findings = [str(one) for one in analyse(pipeline(), []).findings]
    (best,) = [one for one in findings if one.startswith("To end earlier")]
    assert (
        "shorten computing in solve: with 10 % less of it the job would end 150 ns (9.32 %) earlier" in best
    )


def test_columns_that_do_not_fit_are_refused() -> None:
    from peerway import InvalidArgument
    from peerway._core import TraceReplay

    one, none = np.zeros(1, np.int64), np.zeros(0, np.int32)
    with pytest.raises(InvalidArgument, match="do not fit together"):
        TraceReplay(
            one, one, none, none, np.array([0, 1]), none, none, np.zeros(0, np.int64), none,
            np.zeros(0, np.uint8), 1,
        )  # fmt: skip
