"""What happens when ranks die, stop, close early or run out of descriptors: every call of the others ends,
soon, with an error that says what happened, and nothing is left of the job."""

from __future__ import annotations

import re
import signal
import time

import nics
import pytest
from ranks import Ranks

LIMIT = 2.0  # seconds from a rank's death until the others know: the only time that the product promises
PATHS = ["peer/shm", "peer/shm-nt", "peer/cma", "staged", *nics.PATHS]


def lose(victim: int, path: str, work: str, size: int = 3) -> None:
    """Kill a rank in the middle of its work; all other ranks must have the error in time."""
    with Ranks("faults.py", size, victim, path, work, **nics.settings_of(path)) as ranks:
        assert ranks.read_all() == ["working"] * size
        time.sleep(0.05)  # into the middle of the work
        killed = ranks.kill(victim)
        others = [rank for rank in range(size) if rank != victim]
        for rank in others:
            loss = ranks.read(rank)
            assert loss["error"] == "PeerLost", loss
            assert loss["at"] - killed < LIMIT, loss
            assert f"rank {victim}" in loss["message"]
            assert str(ranks.processes[victim].pid) in loss["message"]
        for rank in others:
            assert ranks.read(rank) == "moved"  # between living ranks
        for rank in others:
            ranks.send_line(rank)
        ranks.end(victim)


@pytest.mark.parametrize(
    ("path", "work"),
    [
        pytest.param(path, work, marks=[] if (row + column) % 3 == 0 else [pytest.mark.long])
        for row, path in enumerate(PATHS)
        for column, work in enumerate(("put", "get", "strided", "flush"))
    ],
)
def test_a_rank_that_is_killed_ends_transfers_towards_it(path: str, work: str) -> None:
    lose(1, path, work)


@pytest.mark.parametrize(
    ("path", "work"),
    [
        pytest.param(path, work, marks=[] if row % 2 == column else [pytest.mark.long])
        for row, path in enumerate(PATHS)
        for column, work in enumerate(("wait", "served"))
    ],
)
def test_a_rank_that_is_killed_ends_waits_for_it(path: str, work: str) -> None:
    lose(1, path, work)


@pytest.mark.parametrize("work", ["barrier", "all_gather"])
@pytest.mark.parametrize("victim", [0, 2])
def test_a_rank_that_is_killed_ends_exchanges(victim: int, work: str) -> None:
    lose(victim, "route", work)


@pytest.mark.parametrize("work", ["put", "served"])
def test_rank_0_is_no_more_than_the_others(work: str) -> None:
    lose(0, "staged", work)


def test_a_flush_keeps_its_timeout_while_the_target_is_stopped() -> None:
    with Ranks("trouble.py", 2, "stopped") as ranks:
        assert ranks.read_all() == ["ready", "ready"]
        ranks.processes[1].send_signal(signal.SIGSTOP)
        ranks.send_line(0)
        kind, message = ranks.read(0)
        assert (kind, "for transfers with rank 1 to complete" in message) == ("Timeout", True)
        ranks.processes[1].send_signal(signal.SIGCONT)
        assert ranks.read(0) == ["fine", ""]  # the put
        assert ranks.read(0) == ["fine", ""]  # and the last flush
        ranks.end()


def test_a_stopped_rank_that_is_killed_ends_the_transfer_towards_it() -> None:
    with Ranks("trouble.py", 2, "stopped") as ranks:
        assert ranks.read_all() == ["ready", "ready"]
        ranks.processes[1].send_signal(signal.SIGSTOP)
        ranks.send_line(0)
        assert ranks.read(0)[0] == "Timeout"
        killed = ranks.kill(1)
        kind, message = ranks.read(0)
        assert time.monotonic() - killed < LIMIT
        assert (kind, "rank 1 was lost" in message) == ("PeerLost", True)
        assert ranks.read(0)[0] == "PeerLost"
        ranks.end(1)


def test_a_target_that_closes_its_context_ends_the_transfer() -> None:
    with Ranks("trouble.py", 2, "closes") as ranks:
        assert ranks.read(0) == "ready"
        time.sleep(0.05)
        ranks.send_line(1)
        assert ranks.read(1) == "closed"
        kind, message = ranks.read(0)
        # The region is closed in the middle of a put, or between two puts.
        assert kind in ("Closed", "StaleKey"), message
        assert "rank 1" in message
        ranks.end()


def test_no_descriptor_left_is_told_and_passes() -> None:
    with Ranks("trouble.py", 2, "no_descriptors") as ranks:
        kind, message = ranks.read(0)
        assert kind == "SystemFailure", message
        assert "Too many open files" in message
        assert ranks.read(0) == ["fine", ""]  # flush: nothing was started
        assert ranks.read(0) == ["fine", ""]  # a start does not wait for the target
        kind, message = ranks.read(0)
        assert kind == "SystemFailure", message
        assert "descriptor" in message
        assert ranks.read(0) == ["fine", ""]
        assert ranks.read(0) == ["fine", ""]
        ranks.end()


def test_a_context_that_one_rank_cannot_make_is_made_by_none() -> None:
    with Ranks("one_objects.py", 3) as ranks:
        for rank, (kind, message) in enumerate(ranks.read_all()):
            assert kind == "Unavailable"
            assert "/nowhere/none.so" in message
            assert message.startswith("peerway: rank 1 cannot make its context") == (rank != 1)
        ranks.end()


def test_a_plan_that_one_rank_cannot_prepare_ends_for_all_with_its_message() -> None:
    """The last two ranks of a chain fail in prepare; ranks further away fail there or when they use the
    plan.
    """
    with Ranks("ends_alike.py", 5) as ranks:
        answers = ranks.read_all()
        for answer in answers:
            kind, message = answer["another length"]
            assert (kind, "bytes" in message and "tag 1" in message) == ("InvalidArgument", True), message
        # Ranks without a lane may have finished when the rank with the lane finds nobody at its other end.
        kind, message = answers[-1]["nobody receives"]
        assert (kind, "rank 3" in message) == ("InvalidArgument", True), message
        for answer in answers[:2]:
            kind, message = answer["a partner is not listed"]
            assert (kind, "without rank 2" in message) == ("InvalidArgument", True), message
        ranks.end()


def test_ranks_in_different_collectives_all_fail_and_are_in_step_afterwards() -> None:
    """For each pair of collectives, after a first call that failed at all ranks."""
    with Ranks("collective_pairs.py", 3) as ranks:
        for _ in range(7 * 6):
            for rank, (first, second, ends) in enumerate(ranks.read_all()):
                assert ends.pop("afterwards") == ["fine", ""], (first, second)
                if failed := ends.pop("failed", None):
                    assert failed[0] != "fine", (first, second)
                apart = "prepare_among of a plan" in (first, second)
                # The third rank takes part in only one of the two, and may have returned.
                assert ends or (rank == 2 and apart)
                for kind, message in ends.values():
                    if rank == 2 and apart and kind == "fine":
                        continue
                    assert kind == "InvalidArgument", (first, second, kind, message)
                    assert f"rank 0 is in {first}" in message, (second, message)
                    assert f"is in {second}" in message, (first, message)
                    assert "all ranks must make the same collective calls" in message
        ranks.end()


def test_a_sender_that_leaves_ends_the_wait_for_it() -> None:
    with Ranks("trouble.py", 2, "leaves") as ranks:
        kind, message = ranks.read(1)
        assert (kind, "rank 0" in message) == ("PeerLost", True)
        ranks.end()


def test_a_context_closed_by_a_thread_ends_the_waits_of_others() -> None:
    with Ranks("trouble.py", 2, "closed_by_a_thread") as ranks:
        for ended, later in zip(ranks.read_all(), ranks.read_all(), strict=True):
            assert ended[0] == "Closed", ended
            assert later[0] == "Closed", later
        ranks.end()


def test_a_collective_that_timed_out_is_the_same_one_when_it_is_repeated() -> None:
    with Ranks("trouble.py", 2, "repeated") as ranks:
        for _ in range(3):
            assert ranks.read(0) == "late"
            ranks.send_line(1)
        kind, message = ranks.read(0)
        assert (kind, "calls all_gather of 5 bytes" in message) == ("InvalidArgument", True), message
        assert "after its barrier timed out" in message
        assert ranks.read(0) == "late"
        ranks.send_line(1)
        for kind, message in ranks.read_all():
            assert kind == "InvalidArgument"
            assert "all_gather of 3 bytes" in message
            assert "is in barrier" in message
        ranks.end()


def test_every_call_towards_a_rank_that_left_says_so() -> None:
    with Ranks("trouble.py", 2, "left_by_exception") as ranks:
        for _ in range(2):
            for call, (kind, message) in ranks.read(0).items():
                assert (call, kind) == (call, "PeerLost"), message
                assert re.search("rank 1 (has )?left the team", message), (call, message)
        ranks.end()


def test_a_forked_child_is_refused_and_its_parent_untouched() -> None:
    with Ranks("forked.py", 2) as ranks:
        for answer in ranks.read_all():
            for call, (kind, message) in answer["child"].items():
                assert (call, kind) == (call, "Unsupported"), message
                assert "a child that process" in message, (call, message)
            assert answer["ends"] == {"exits": 0, "leaves by _exit": 0, "closes": 0}
            assert answer["wrong"] == []
        ranks.end()


@pytest.mark.parametrize("pause", [0.1, 4.0])  # the bootstrap server in rank 0 stays for 2 s
def test_a_rank_that_leaves_after_rank_0_is_not_said_to_have_died(pause: float) -> None:
    with Ranks("trouble.py", 3, "leave_in_turn", pause) as ranks:
        kind, message = ranks.read(2)
        assert kind == "PeerLost"
        assert "rank 1 left the team" in message
        ranks.end()


def test_deaths_are_heard_of_after_rank_0_has_left() -> None:
    victim, others = 2, (1, 3, 4)
    with Ranks("without_rank_0.py", 5, victim) as ranks:
        for rank in (victim, *others):
            ranks.read(rank)
        ranks.kill(victim)
        for rank in others:
            _, kind, message = ranks.read(rank)
            assert (kind, f"rank {victim} " in message) == ("PeerLost", True), message
        ranks.end(victim)
