"""Summing the lengths of a halo's parts over ranks: each rank talks to few others, however many there are."""

from __future__ import annotations

from math import prod

import pytest

from peerway import InvalidArgument
from peerway._arguments.extents import Part, check_same, line, steps


@pytest.mark.parametrize("count", range(1, 40))
def test_after_all_steps_each_rank_has_the_sum_of_all(count: int) -> None:
    sums = [10**index % 97 for index in range(count)]
    total = sum(sums)
    left = [steps(index, count) for index in range(count)]
    while any(left):
        # Two ranks exchange when each has reached its step with the other.
        met = [
            (one, left[one][0][0])
            for one in range(count)
            if left[one] and left[left[one][0][0]] and left[left[one][0][0]][0][0] == one
        ]
        assert met, "all wait for one another"
        before = list(sums)
        for one, other in met:
            _, effect = left[one].pop(0)
            sums[one] += before[other] if effect == "add" else 0
            sums[one] = before[other] if effect == "replace" else sums[one]
    assert sums == [total] * count


def test_partners_grow_with_the_digits_of_the_number_of_ranks() -> None:
    for index in (0, 1, 4711, 9999):
        assert len({partner for partner, _ in steps(index, 10_000)}) <= 14


@pytest.mark.parametrize("grid", [(5,), (2, 3), (3, 1, 4)])
def test_a_line_has_the_ranks_that_differ_in_one_dimension(grid: tuple[int, ...]) -> None:
    def at(rank: int) -> list[int]:
        return [rank // prod(grid[place + 1 :]) % grid[place] for place in range(len(grid))]

    for rank in range(prod(grid)):
        for place in range(len(grid)):
            others = [*at(rank)[:place], *at(rank)[place + 1 :]]
            same = [o for o in range(prod(grid)) if [*at(o)[:place], *at(o)[place + 1 :]] == others]
            assert list(line(rank, grid, place)) == same


def part(owned: tuple[int, int], **other: object) -> Part:
    shape = [count + 2 for count in owned]
    shadow = [[1, 1], [1, 1]]
    given = {
        "shape": shape, "owned": owned, "dimensions": 2, "dtype": "<f8", "distribution": [0, 1],
        "shadow": shadow,
    }  # fmt: skip
    return {**given, **other}


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (part((4, 5)), None),  # along dimension 1 each has a block of its own
        (part((3, 5)), ["3 or 4 elements along dimension 0", "rank 4 (6, 7), rank 5 (5, 7)"]),
        (part((4, 5), dtype="<f4"), ["the dtype of array 0 is <f8 on rank 4, but <f4 on rank 5"]),
        (part((4, 5), distribution=[1, 0]), ["the distribution of array 0"]),
        (part((2, 3), shadow=[[2, 2], [2, 2]]), ["the shadow of array 0 is", "[[2, 2], [2, 2]] on rank 5"]),
    ],
)
def test_two_ranks_of_a_row_are_compared(there: Part, words: list[str] | None) -> None:
    grid = (2, 3)
    told = [(rank, {"grid": [2, 3], "arrays": [one]}) for rank, one in ((4, part((4, 5))), (5, there))]
    if words is None:
        check_same(grid, *told)
        return
    with pytest.raises(InvalidArgument) as refused:
        check_same(grid, *told)
    for word in words:
        assert word in str(refused.value)
