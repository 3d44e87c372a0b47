"""`peerway trace compare`: a change that was made is told, and none where there is none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from click.testing import CliRunner
from test_trace_analysis import send, trace_of
from test_trace_report import saved

from peerway.cli.trace import command
from peerway.trace.comparison import alone, compare
from peerway.trace.store import Trace


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
    changes = {one.size_class: one for one in compare(run_of(1), run_of(2, 1.5))}
    assert changes[17].verdict == "slower"
    assert changes[17].speedup is not None
    assert 0.55 < changes[17].speedup < 0.8
    assert changes[4].verdict == "no difference"


def test_two_runs_of_one_program_show_no_difference() -> None:
    verdicts = [one.verdict for seed in range(8) for one in compare(run_of(seed), run_of(100 + seed))]
    assert verdicts.count("no difference") >= len(verdicts) - 2


def test_a_call_that_is_new_is_told() -> None:
    before = trace_of(send(0, 1, 0, name="MPI_Send"))
    after = trace_of(send(0, 1, 0, name="MPI_Send"), send(0, 1, 50, name="MPI_Ssend"))
    assert alone(before, after) == ([], [("MPI_Ssend", "", 4)])


def test_the_command_shows_what_changed(tmp_path: Path) -> None:
    before, after = saved(run_of(1), tmp_path / "before"), saved(run_of(2, 2.0), tmp_path / "after")
    done = CliRunner().invoke(command, ["compare", str(before), str(after)])
    assert done.exit_code == 0, done.output
    assert "MPI_Send" in done.output
    assert "to 64 KiB" in done.output
    assert "1 operations at a place show no difference" in done.output
    done = CliRunner().invoke(command, ["compare", str(before), str(before)])
    assert "2 operations at a place show no difference" in done.output
