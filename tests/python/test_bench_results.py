"""What a benchmark keeps of its run beside the records."""

from __future__ import annotations

import re

from peerway.bench.results import MOST_NAMED, Results


def no_time(results: Results, size: int, times: int) -> None:
    message = {"kind": "no time", "test": "put_bw", "via": "staged", "bytes": size}
    results.follow([dict(message) for _ in range(times)], lambda *_: None)


def test_what_had_no_time_adds_up() -> None:
    """Several runs, memories and shapes leave cases of the same name: each of them is counted."""
    results = Results()
    for power in range(MOST_NAMED + 3):
        no_time(results, 1 << power, times=2)
    results.note_unmeasured()
    (note,) = results.notes
    found = re.fullmatch(r"no time was left for (\d+) measurements: (.*), and (\d+) more", note)
    assert found is not None, note
    named = re.findall(r"put_bw staged of \d+ B \((\d+) times\)", found[2])
    assert int(found[1]) == 2 * (MOST_NAMED + 3) == sum(map(int, named)) + int(found[3])


def test_one_that_had_no_time_is_named() -> None:
    results = Results()
    no_time(results, 64, times=1)
    results.note_unmeasured()
    assert results.notes == ["no time was left for 1 measurement: put_bw staged of 64 B"]


def test_nothing_is_said_where_the_time_sufficed() -> None:
    results = Results()
    results.note_unmeasured()
    assert results.notes == []
