"""Clocks of several hosts: what is known to be wrong with them is found from the messages, and no arrow goes
back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_trace_analysis import receive, send, trace_of

from peerway_trace.clocks import correct, corrections
from peerway_trace.messages import match
from peerway_trace.store import Trace

LATENCY = 1500


def exchange(hosts: list[tuple[float, float]], pairs: list[tuple[int, int]], rounds: int = 400) -> Trace:
    """Ranks that send to one another in turn, on hosts whose clocks are ahead by (offset, drift)."""
    random = np.random.default_rng(5)
    events: list[dict[str, Any]] = []

    def at(rank: int, time: float) -> int:
        offset, drift = hosts[rank]
        return round(time + offset + drift * time)

    for i in range(rounds):
        time = 1e6 * i
        for a, b in [*pairs, *((b, a) for a, b in pairs)]:
            time += 50_000
            took = LATENCY + random.exponential(500)
            events.append(send(a, b, at(a, time), 100))
            events.append(receive(b, a, at(b, time + 10), round(took)))
    trace = trace_of(*events, ranks=len(hosts))
    trace.threads[:] = [replace(one, host=f"host{number}") for number, one in enumerate(trace.threads)]
    return trace


def backwards(trace: Trace) -> int:
    """The number of messages that end before they began."""
    pairs = match(trace)
    return int(
        np.sum(trace["begin"][pairs.second] + trace["duration"][pairs.second] < trace["begin"][pairs.first])
    )


@pytest.mark.parametrize(("offset", "drift"), [(5e9, 0.0), (-3e6, 0.0), (2e7, 2e-5), (-4e8, -1e-5)])
def test_the_difference_of_two_clocks_is_found(offset: float, drift: float) -> None:
    trace = exchange([(0, 0), (offset, drift)], [(0, 1)])
    assert backwards(trace) > 0
    (found,) = corrections(trace)
    assert found.messages == 800
    correct(trace, [found])
    assert backwards(trace) == 0
    assert found.offset == pytest.approx(offset, abs=500)
    assert found.drift == pytest.approx(drift, abs=2e-6)


def test_a_host_is_reached_through_another() -> None:
    trace = exchange([(0, 0), (7e6, 0), (-9e6, 0)], [(0, 1), (1, 2)])
    found = corrections(trace)
    assert [one.offset for one in found] == pytest.approx([7e6, -9e6], abs=1000)
    correct(trace, found)
    assert backwards(trace) == 0


def test_without_messages_both_ways_nothing_is_changed() -> None:
    trace = trace_of(send(0, 1, 0), receive(1, 0, 9000))
    trace.threads[1] = replace(trace.threads[1], host="other")
    (found,) = corrections(trace)
    assert (found.offset, found.messages) == (0.0, 0)


def test_one_host_needs_no_correction() -> None:
    assert corrections(trace_of(send(0, 1, 0), receive(1, 0, 9000))) == []
