"""OSU's format, as its readers parse it."""

from __future__ import annotations

import re

from synthetic_records import cube, record

from peerway_measure.bench.osu import as_osu

# How tools read OSU output: comment lines skipped, then a size and columns of numbers.
ROW = re.compile(r"^(?P<size>\d+)\s+(?P<first>\S+)(\s+(?P<second>\S+))?\s*$")


def rows(text: str) -> list[tuple[int, float, float | None]]:
    all_rows = []
    for line in text.splitlines():
        if line.startswith("#") or not line.strip():
            continue
        match = ROW.match(line)
        assert match, line
        all_rows.append(
            (int(match["size"]), float(match["first"]), float(match["second"]) if match["second"] else None)
        )
    return all_rows


def test_latency_is_two_columns() -> None:
    text = as_osu([record(bytes=16, p50_us=0.317, min_us=0.3, p99_us=1), record(bytes=8)])
    assert (
        text.splitlines()[0]
        == "# Peerway put_latency v0.1.0 (via peer/store, contiguous, host to host, 2 ranks)"
    )
    assert re.search(r"^# Size +Latency \(us\)$", text, re.M)
    assert rows(text) == [(8, 0.3, None), (16, 0.317, None)]


def test_bandwidth_and_rate_have_their_columns() -> None:
    text = as_osu([record(test="put_bw", bandwidth_MBps=12345.678)])
    assert re.search(r"^# Size +Bandwidth \(MB/s\)$", text, re.M)
    assert rows(text) == [(8, 12345.678, None)]
    text = as_osu([record(test="put_mbw_mr")])
    assert re.search(r"^# Size +MB/s +Messages/s$", text, re.M)
    assert rows(text) == [(8, 26.7, 3.3e6)]


def test_each_curve_is_a_block_and_repeats_become_their_median() -> None:
    several = [record(bandwidth_MBps=v, test="put_bw") for v in (1, 5, 2)] + [
        record(via="staged", test="put_bw")
    ]
    text = as_osu(several)
    assert text.count("# Size") == 2
    assert rows(text) == [(8, 2.0, None), (8, 26.7, None)]
    assert as_osu(cube()).count("# Size") == 3 * 4


def test_a_name_cannot_break_out_of_its_comment() -> None:
    assert rows(as_osu([record(via="x\n8 99")])) == [(8, 0.3, None)]


def test_a_get_is_a_whole_operation() -> None:
    assert "whole operation" in as_osu([record(test="get_latency")])
    assert "one way" in as_osu([record()])
