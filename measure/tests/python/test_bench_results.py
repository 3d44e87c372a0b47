"""What a benchmark stores of its run besides the records."""

from __future__ import annotations

import re

from peerway_measure.bench.results import MOST_NAMED, Results


def no_time(results: Results, size: int, times: int, via: str = "staged") -> None:
    message = {"kind": "no time", "test": "put_bw", "via": via, "bytes": size}
    results.follow([dict(message) for _ in range(times)], lambda *_: None)


def test_what_had_no_time_adds_up() -> None:
    """Several runs, memories and shapes skip cases with the same name: each of them counts."""
    results = Results()
    for way in range(MOST_NAMED + 3):
        for power in range(4):
            no_time(results, 1 << power, times=1 + (power == 0), via=f"way{way}")
    results.note_unmeasured()
    (note,) = results.notes
    found = re.fullmatch(r"no time was left for (\d+) of (\d+) measurements: (.*), and (\d+) more; .*", note)
    assert found is not None, note
    named = re.findall(r"put_bw way\d+ \((\d+) times, 4 sizes from 1 B to 8 B\)", found[3])
    assert len(named) == MOST_NAMED
    assert int(found[1]) == int(found[2]) == 5 * (MOST_NAMED + 3) == sum(map(int, named)) + int(found[4])


def test_one_that_had_no_time_is_named() -> None:
    results = Results()
    no_time(results, 64, times=1)
    no_time(results, 1 << 20, times=1)
    results.note_unmeasured("measure again")
    assert results.notes == [
        "no time was left for 2 of 2 measurements: put_bw staged (64 B and 1 MiB); measure again"
    ]


def test_nothing_is_said_where_the_time_sufficed() -> None:
    results = Results()
    results.note_unmeasured()
    assert results.notes == []
