"""The picture of points: every value is a point, and the lines behind them are at round numbers."""

from __future__ import annotations

import re

import pytest

from peerway_measure.report.points import picture


@pytest.mark.parametrize(
    ("values", "lines"),
    [
        ([76.0, 3060.0], ["0", "1000", "2000", "3000", "4000"]),
        ([2.0], ["0", "0.5", "1", "1.5", "2"]),
        ([940.0, 1010.0], ["940", "960", "980", "1000", "1020"]),
        ([], ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
    ],
)
def test_lines_are_at_round_numbers_around_all_values(values: list[float], lines: list[str]) -> None:
    drawn = picture([("a", values)], lambda value: f"{value:.4g}", "label")
    assert re.findall(r'text-anchor="end">([^<]*)<', drawn) == lines
    heights = [float(y) for y in re.findall(r"M[\d.]+ ([\d.]+)h0", drawn)]
    grid = [float(y) for y in re.findall(r'class="grid" d="M[\d.]+ ([\d.]+)H', drawn)]
    assert len(heights) == len(values)
    assert all(grid[-1] <= height <= grid[0] for height in heights)


def test_a_long_name_stays_in_its_column() -> None:
    drawn = picture([("before", [1.0]), ("size=16G block=64K threads=4", [2.0])], str, "label")
    (long,) = re.findall(r'textLength="(\d+)"[^>]*>([^<]*)<', drawn)
    assert long == ("135", "size=16G block=64K threads=4 (n=1)")
