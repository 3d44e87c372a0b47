"""`peerway trace compare` finds a real change, and none if nothing has changed."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from test_trace_analysis import receive, send, trace_of
from test_trace_report import saved

from peerway_trace.cli import command
from peerway_trace.comparison import alone, compare, compare_messages, messages_alone
from peerway_trace.rings import Kind
from peerway_trace.store import Trace


@functools.cache
def run_of(seed: int, factor: float = 1.0, calls: int = 400) -> Trace:
    """Two ranks that send small and large messages; the large ones take `factor` times as long."""
    random = np.random.default_rng(seed)
    events = []
    for rank in (0, 1):
        for i in range(calls):
            small, large = random.lognormal(6, 0.3), random.lognormal(8, 0.3) * factor
            at = 100_000 * i
            events.append(send(rank, 1 - rank, at, int(small), name="MPI_Send", bytes=8))
            events.append(send(rank, 1 - rank, at + 50_000, int(large), name="MPI_Send", bytes=60_000))
    return trace_of(*events)


def test_the_operation_that_became_slower_is_told_and_no_other() -> None:
    several = [[run_of(seed, factor) for seed in seeds] for seeds, factor in (((1, 2), 1), ((3, 4), 1.5))]
    changes = {one.size_class: one for one in compare(*several)}
    assert changes[17].verdict == "slower"
    assert changes[17].speedup is not None
    assert 0.55 < changes[17].speedup < 0.8
    assert changes[4].verdict == "no difference"


def test_one_trace_of_a_side_gives_no_verdict() -> None:
    one, several = [run_of(1)], [run_of(2, 1.5), run_of(3, 1.5)]
    for sides in ((one, several[:1]), (one, several), (several, one)):
        changes = {change.size_class: change for change in compare(*sides)}
        assert {change.verdict for change in changes.values()} == {"unknown"}
        assert not changes[4].apart
    assert {change.size_class for change in compare(one, several[:1]) if change.apart} == {17}


def test_sides_that_were_traced_one_after_the_other_are_confounded_with_time() -> None:
    def side(factor: float, *minutes: int) -> list[Trace]:
        began = [f"2026-11-01T10:{minute:02}:00.000+00:00" for minute in minutes]
        return [
            replace(run_of(i, factor), about={"began": at}) for i, at in enumerate(began, int(factor) * 10)
        ]

    for before, after, verdict in (
        ((0, 1, 2), (3, 4, 5), "confounded with time"),
        ((3, 4, 5), (0, 1, 2), "confounded with time"),
        ((0, 1, 8), (3, 4, 5), "confounded with time"),  # only one change of sides
        ((0, 2, 4), (1, 3, 5), "slower"),
    ):
        (large,) = (one for one in compare(side(1, *before), side(2, *after)) if one.size_class == 17)
        assert (large.verdict, large.apart) == (verdict, True)


def test_two_runs_of_one_program_show_no_difference() -> None:
    apart = [one.apart for seed in range(8) for one in compare([run_of(seed)], [run_of(100 + seed)])]
    assert sum(apart) <= 2


def verdict_of_large(before: list[float], after: list[float]) -> str:
    """The verdict on runs whose large messages took these multiples of the time."""
    sides = [
        [run_of(10 * k + i, one) for i, one in enumerate(side)] for k, side in enumerate((before, after))
    ]
    return next(one.verdict for one in compare(*sides) if one.size_class == 17)


def test_what_differs_as_much_between_runs_of_one_side_is_not_told_as_a_change() -> None:
    assert verdict_of_large([1.0, 1.01], [1.3, 1.32]) == "slower"
    assert verdict_of_large([1.0, 1.4, 0.8], [1.3, 0.85, 1.2]) == "unknown"


def test_a_change_beyond_what_runs_differ_by_is_told_as_that_of_one_run() -> None:
    assert verdict_of_large([1.0, 1.02, 0.98], [2.0, 2.02, 1.98]) == "slower"
    (change,) = (
        one
        for one in compare([run_of(i) for i in range(3)], [run_of(9 + i, 2.0) for i in range(2)])
        if one.size_class == 17
    )
    assert change.calls == (800, 800)
    assert 1.8 < change.total_ns[1] / change.total_ns[0] < 2.2


def test_a_call_that_is_new_is_told() -> None:
    before = trace_of(send(0, 1, 0, name="MPI_Send"))
    after = trace_of(send(0, 1, 0, name="MPI_Send"), send(0, 1, 50, name="MPI_Ssend"))
    assert alone([before], [after]) == ([], [("MPI_Ssend", "", 4)])


def message_run(seed: int, slow: tuple[str, int, int] | None = None) -> Trace:
    """Messages by two paths between two ranks; those of one path, sender and size take twice as long."""
    random = np.random.default_rng(seed)
    events = []
    for i in range(300):
        for place, (where, rank, size) in enumerate(KINDS):
            length = int(random.lognormal(7, 0.2) * (2 if (where, rank, size) == slow else 1))
            at = 100_000 * i + 20_000 * place
            own = {"tag": place, "where": where, "name": "MPI_Send"}
            events.append(send(rank, 1 - rank, at, 20, bytes=size, **own))
            events.append(receive(1 - rank, rank, at, length, bytes=size, **own))
    return trace_of(*events)


KINDS = (("world", 0, 8), ("world", 1, 8), ("world", 0, 4096), ("rows", 0, 8))


def test_messages_of_one_path_pair_and_size_that_became_slower_are_told() -> None:
    slow = ("world", 1, 8)
    changes = compare_messages(*([message_run(i, one) for i in (1, 2, 3)] for one in (None, slow)))
    assert len(changes) == len(KINDS)
    slower = [(one.operation, one.place, one.size_class) for one in changes if one.verdict == "slower"]
    assert slower == [("world", "1 to 0", 4)]


def test_messages_to_another_rank_are_told() -> None:
    before, after = message_run(1), message_run(1)
    after.columns["bytes"][after["bytes"] == 4096] = 16384
    assert messages_alone([before], [after]) == ([("world", "0 to 1", 13)], [("world", "0 to 1", 15)])


def test_the_command_shows_what_changed(tmp_path: Path) -> None:
    before, after = saved(run_of(1), tmp_path / "before"), saved(run_of(2, 2.0), tmp_path / "after")
    done = CliRunner().invoke(command, ["compare", str(before), str(after)])
    assert done.exit_code == 0, done.output
    assert "MPI_Send" in done.output
    assert "to 64 KiB" in done.output
    assert "1 operation at a call site differs by no more than calls within a run do" in done.output
    assert "0 to 1" in done.output
    more = [str(saved(run_of(3 + i, i), tmp_path / f"more{i}")) for i in (1, 2)]
    both = ["compare", str(before), str(after), "--before", more[0], "--after", more[1]]
    done = CliRunner().invoke(command, both)
    assert done.exit_code == 0, done.output
    assert "1 operation at a call site shows no difference" in done.output
    wild = saved(run_of(4, 9.0), tmp_path / "wild")
    done = CliRunner().invoke(command, ["compare", str(before), str(after), "--before", str(wild)])
    assert "differ too much between the runs of a side for a verdict" in " ".join(done.output.split())
    done = CliRunner().invoke(
        command,
        ["compare", *[str(before)] * 2, *["--before", str(before)] * 2, *["--after", str(before)] * 2],
    )
    assert "2 operations at a call site show no difference" in done.output


def test_sides_of_unlike_ranks_are_told_and_large_changes_are_readable(tmp_path: Path) -> None:
    def many(ranks: int, length: int) -> Trace:
        return trace_of(
            *(
                send(rank, 0, 1000 * i, length + i, name="MPI_Send")
                for rank in range(ranks)
                for i in range(60)
            ),
            ranks=ranks,
        )

    sides = [saved(many(*each), tmp_path / str(each)) for each in ((2, 40_000), (3, 100))]
    done = CliRunner().invoke(command, ["compare", *map(str, sides)])
    assert "2 ranks before and 3 ranks after: calls and total times" in " ".join(done.output.split())
    assert "×3" in done.output
    assert "e+" not in done.output
    done = CliRunner().invoke(command, ["compare", str(sides[0]), str(sides[0])])
    assert "ranks before" not in done.output


def test_a_run_that_failed_and_single_runs_are_told(tmp_path: Path) -> None:
    good, failed = (
        str(saved(run_of(seed), tmp_path / f"run{seed}", status=status))
        for seed, status in ((1, 0), (2, 134))
    )
    done = CliRunner().invoke(command, ["compare", good, failed])
    assert f"{failed}: the command ended with status 134." in " ".join(done.output.split())
    assert good not in done.output
    assert "no verdict: a side has one trace" in " ".join(done.output.split())
    assert "no difference" not in done.output
    done = CliRunner().invoke(command, ["compare", good, good, "--before", good, "--after", good])
    assert "status" not in done.output
    assert "no verdict" not in done.output


@pytest.mark.parametrize(
    ("level", "why"),
    [
        ("full", "nothing was recorded"),
        ("counters", "it was recorded with --level counters, which keeps sums alone"),
    ],
)
def test_a_trace_without_events_is_refused(tmp_path: Path, level: str, why: str) -> None:
    full, empty = saved(run_of(1), tmp_path / "full"), saved(trace_of(), tmp_path / "empty", level=level)
    for sides in ([str(empty), str(full)], [str(full), str(full), "--after", str(empty)]):
        done = CliRunner().invoke(command, ["compare", *sides])
        assert done.exit_code == 2
        assert f"{empty} has no events to compare: {why}" in done.output


def test_traces_with_events_of_another_kind_alone_compare(tmp_path: Path) -> None:
    """No operation and no message on either side, so nothing differs."""
    region = trace_of({"rank": 0, "kind": Kind.REGION, "name": "phase", "begin": 0, "duration": 5})
    both = [str(saved(region, tmp_path / name)) for name in ("before", "after")]
    done = CliRunner().invoke(command, ["compare", *both])
    assert done.exit_code == 0, done.output
    assert "no operation at a call site occurs 40 times on both sides" in done.output
    assert "no group of messages occurs 40 times on both sides" in done.output
