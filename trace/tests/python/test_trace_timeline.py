"""The data of the page's timeline: what was recorded is what the browser unpacks, and what is left out is
said.
"""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from test_trace_analysis import receive, send, trace_of

from peerway_trace.analysis import analyse
from peerway_trace.page import render
from peerway_trace.rings import Kind
from peerway_trace.store import Trace
from peerway_trace.timeline import DEEPEST, Timeline, build


def unpacked(drawn: Timeline) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Decode the data like timeline-data.js."""
    head = json.loads(drawn.head)
    data = np.frombuffer(zlib.decompress(base64.b64decode(drawn.data)), np.uint8)
    columns, offset = {}, 0
    for name, kind, count in head["columns"]:
        size = np.dtype(kind).itemsize
        part = data[offset : offset + size * count].reshape(size, count).T
        columns[name] = np.ascontiguousarray(part).view(kind).ravel()
        offset += size * count
    assert offset == len(data)
    return head, columns


def begins(head: dict[str, Any], columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    delta = columns["begin_low"].astype(np.int64) + (columns["begin_high"].astype(np.int64) << 32)
    firsts = [first for _, _, first in head["rows"]]
    return np.concatenate([np.cumsum(part) for part in np.split(delta, firsts[1:])])


def random_trace(events: int) -> Trace:
    random = np.random.default_rng(2)
    rows = []
    for i in range(events):
        at = 10_000_000_000 + 100 * i  # times that need more than 32 bits
        rows.append(send(i % 3, (i + 1) % 3, at, int(random.integers(1, 90)), tag=i, name="MPI_Send"))
        rows.append(receive((i + 1) % 3, i % 3, at + 20, int(random.integers(1, 70)), tag=i, name="MPI_Recv"))
    return trace_of(*rows, ranks=3)


def test_every_event_is_there_and_in_one_row_none_lies_on_another() -> None:
    trace = random_trace(200)
    drawn = build(trace, None, None)
    head, columns = unpacked(drawn)
    assert (drawn.shown, drawn.events, head["whole"]) == (len(trace), len(trace), True)
    begin, duration = begins(head, columns), columns["duration_low"].astype(np.int64)
    assert sorted(zip(begin, duration, columns["peer"], strict=True)) == sorted(
        zip(trace["begin"], trace["duration"], trace["peer"], strict=True)
    )
    firsts = [first for _, _, first in head["rows"]]
    for part, length in zip(np.split(begin, firsts[1:]), np.split(duration, firsts[1:]), strict=True):
        assert np.all(part[1:] >= (part + length)[:-1])


def test_an_arrow_leads_from_each_send_to_its_receive_and_from_a_lone_put_to_its_target() -> None:
    trace = trace_of(
        send(0, 1, 0, tag=7), receive(1, 0, 5, tag=7),
        {"rank": 2, "kind": Kind.PUT, "peer": 0, "begin": 50, "duration": 9}, ranks=3,
    )  # fmt: skip
    head, columns = unpacked(build(trace, None, None))
    found = list(zip(columns["arrow_from"].tolist(), columns["arrow_to"].tolist(), strict=True))
    lanes = [lane["rank"] for lane in head["lanes"]]
    row_of = np.searchsorted([first for _, _, first in head["rows"]], np.arange(3), "right") - 1
    rank_of = [lanes[head["rows"][row][0]] for row in row_of]
    assert [(rank_of[a], rank_of[b]) for a, b in found if b >= 0] == [(0, 1)]
    assert [(rank_of[a], lanes[-2 - b]) for a, b in found if b < 0] == [(2, 0)]


def test_nested_calls_and_requests_have_rows_of_their_own() -> None:
    trace = trace_of(
        {"rank": 0, "kind": Kind.REGION, "name": "outer", "begin": 0, "duration": 100},
        {"rank": 0, "kind": Kind.REGION, "name": "inner", "begin": 10, "duration": 50},
        send(0, 1, 20, 5), send(0, 1, 70, 5),
        *(send(0, 1, 5 + i, 60, kind=Kind.SENT) for i in range(3)),
    )  # fmt: skip
    head, _ = unpacked(build(trace, None, None))
    counts = np.diff([*(first for _, _, first in head["rows"]), len(trace)])
    assert [(row[1], count) for row, count in zip(head["rows"], counts.tolist(), strict=True)] == [
        (0, 1), (1, 2), (2, 1), (DEEPEST, 1), (DEEPEST + 1, 1), (DEEPEST + 2, 1),
    ]  # fmt: skip


def test_of_more_events_than_fit_the_important_are_there_and_the_rest_is_said() -> None:
    trace = random_trace(2000)
    trace.columns["begin"] -= 10_000_000_000
    at = 120_000
    important = np.array([[at, at + 50, 1_000_000]])
    drawn = build(trace, None, important, most=800)
    head, columns = unpacked(drawn)
    assert 300 < drawn.shown <= 800
    assert not head["whole"]
    assert any(begin <= at <= end for begin, end in head["windows"])
    assert len(columns["summary"]) == head["bins"] * 3
    assert columns["summary"].max() > 100
    text = render(trace, analyse(trace, []), most=800)
    shown = build(trace, analyse(trace, []).path, analyse(trace, []).important, 800).shown
    assert f"{shown:,} of 4,000 events" in text
    assert f"The other {4000 - shown:,} are left out" in text


def test_a_moment_with_more_events_than_fit_is_cut() -> None:
    trace = random_trace(500)  # all within one of the selectable windows
    drawn = build(trace, None, None, most=100)
    assert 50 < drawn.shown <= 100


def test_names_cannot_leave_their_place_on_the_page() -> None:
    trace = trace_of(send(0, 1, 0, name="</script><script>alert(1)</script>"))
    assert "</script><script>alert" not in render(trace, analyse(trace, []))
