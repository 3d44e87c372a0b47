"""The halo that a benchmark is asked for: its spelling, its bytes, what is refused, and what memory holds."""

from __future__ import annotations

import numpy as np
import pytest

from peerway_measure.bench import halo, halo_data
from peerway_measure.bench.halo import Halo

HALOS = [
    halo.make([2, 1], [512, 512], 8),
    halo.make([2, 4, 1, 1], [8, 4, 16, 16], 192),
    halo.make([3], [5, 4], 12, [(2, 1), (0, 3)], [False, True], corners=True),
    halo.make([1], [4], 8, [(1, 1)]),
]


@pytest.mark.parametrize("case", HALOS, ids=lambda case: case.label)
def test_a_label_is_read_as_it_was_written(case: Halo) -> None:
    assert halo.of_label(case.label) == case
    assert "," not in case.label


def test_what_is_usual_is_not_spelled() -> None:
    assert HALOS[0].label == "halo:2x1/512x512/8"
    assert HALOS[2].label == "halo:3/5x4/12/w2:1_0:3/p0_1/corners"


def test_a_lattice_has_two_faces_in_each_dimension_that_is_distributed() -> None:
    assert HALOS[1].ranks == 8
    assert HALOS[1].bytes == 2 * (4 + 8) * 16 * 16 * 192
    assert HALOS[1].array_bytes == 10 * 6 * 16 * 16 * 192


@pytest.mark.parametrize("case", HALOS, ids=lambda case: case.label)
def test_as_many_bytes_change_as_the_halo_says(case: Halo) -> None:
    changed = []
    for rank in range(case.ranks):
        before, after = (halo_data.image(case, rank, 7, after=after) for after in (False, True))
        assert before.size == case.array_bytes
        rows = (before.reshape(-1, case.element) != after.reshape(-1, case.element)).any(axis=1)
        changed.append(int(rows.sum()) * case.element)
    assert max(changed) == case.bytes


def test_a_halo_has_the_neighbours_elements() -> None:
    case = halo.make([2], [3, 2], 8)  # ranks one above the other, periodic
    mine, theirs = (
        halo_data.image(case, rank, 1, after=True).view(np.uint64).reshape(5, 2) for rank in (0, 1)
    )
    assert np.array_equal(mine[4], theirs[1])
    assert np.array_equal(mine[0], theirs[3])
    assert not np.array_equal(mine[4], mine[1])


def test_the_poison_stays_beyond_a_border_and_in_corners() -> None:
    case = halo.make([2], [2, 2], 8, [(1, 1), (1, 1)], [False, True])
    words = halo_data.image(case, 0, 1, after=True).view(np.uint64).reshape(4, 4)
    poison = np.frombuffer(bytes([halo_data.POISON] * 8), np.uint64)[0]
    assert (words[0] == poison).all()
    assert [int(words[3, j] == poison) for j in range(4)] == [1, 0, 0, 1]
    with_corners = halo.make([2], [2, 2], 8, [(1, 1), (1, 1)], [False, True], corners=True)
    words = halo_data.image(with_corners, 0, 1, after=True).view(np.uint64).reshape(4, 4)
    assert (words[3] != poison).all()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(([2, 2], [8], 8), "2 dimensions, but the array 8 only 1", id="grid"),
        pytest.param(([2], [8], 8, [(1, 1)] * 2), "--width has 2 dimensions", id="widths"),
        pytest.param(([2], [8], 8, None, [True] * 3), "--periodic has 3 dimensions", id="periodic"),
        pytest.param(([2], [8], 8, [(9, 1)]), "width 9:1 in dimension 0 is more than the 8", id="wide"),
        pytest.param(([2] * 5, [8] * 5, 8), "at most 4 dimensions", id="grid of five"),
        pytest.param(([1], [8], 8), "nothing is exchanged", id="alone"),
    ],
)
def test_what_cannot_be_is_refused_with_the_numbers(arguments: tuple[object, ...], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        halo.make(*arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "read",
    [halo.parse_extents, halo.parse_width, halo.parse_periodic, halo.of_label],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("text", ["", "x", "2x", "-1:1", "1;0"])
def test_what_is_no_number_is_refused_by_name(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(ValueError, match=f"'{text}'"):
        read(text)
