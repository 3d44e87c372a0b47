"""The messages that the ranks of a benchmark send."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from peerway_measure.bench import session

NOTE, DONE = '{"kind": "note"}\n', '{"kind": "done"}\n'


@pytest.mark.parametrize(
    ("lines", "messages", "finished"),
    [
        pytest.param([NOTE, DONE], 1, True, id="all said"),
        pytest.param([NOTE], 1, False, id="died between two messages"),
        pytest.param([NOTE, '{"kind": "rec'], 1, False, id="died within a message"),
        pytest.param([NOTE, DONE.rstrip()], 1, False, id="died before the end of the last line"),
        pytest.param([], 0, False, id="died at once"),
    ],
)
def test_what_a_rank_said_before_it_died(lines: list[str], messages: int, finished: bool) -> None:
    ends = []

    def read() -> Iterator[session.Message]:
        ends.append((yield from session.decoded(lines)))

    assert (len(list(read())), ends) == (messages, [finished])
