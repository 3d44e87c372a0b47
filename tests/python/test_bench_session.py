"""The messages that the ranks of a benchmark send."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from peerway.bench import session

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


def test_a_socket_in_a_folder_with_a_long_name_can_be_bound_and_reached(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as client:
        with session.address(folder) as name:
            listener.bind(name)
        listener.listen(1)
        with session.address(folder) as name:
            client.connect(name)
        assert (folder / "socket").is_socket()
