"""The contents of a rank's part of a distributed array before and after its halo is refreshed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from peerway_measure.bench.halo import Halo

POISON = 0xA5


def image(halo: Halo, rank: int, seed: int, *, after: bool) -> NDArray[np.uint8]:
    """The bytes of the rank's array with its halo.

    The elements follow from `seed` and their place in the whole array. The halo holds poison or, with
    `after`, the neighbours' elements as after a refresh. Poison stays beyond a border that is not periodic,
    and in corners that are not refreshed.
    """
    place = np.unravel_index(rank, halo.grid)
    shape = tuple(n + sum(width) for n, width in zip(halo.local, halo.width, strict=True))
    number = np.zeros(shape, np.int64)  # each element's number in the whole array
    inside, outside = np.ones(shape, bool), np.zeros(shape, np.int8)
    for d, local in enumerate(halo.local):
        ranks, mine = (halo.grid[d], int(place[d])) if d < len(halo.grid) else (1, 0)
        layer = np.arange(shape[d]) - halo.width[d][0]
        index = mine * local + layer
        along = [-1 if e == d else 1 for e in range(len(shape))]
        number = number * (ranks * local) + (index % (ranks * local)).reshape(along)
        outside += ((layer < 0) | (layer >= local)).reshape(along)
        if not halo.periodic[d]:
            inside &= ((index >= 0) & (index < ranks * local)).reshape(along)
    refreshed = (outside <= 1) | halo.corners if after else outside == 0
    elements = _elements(number.reshape(-1), halo.element, seed)
    elements[~(inside & refreshed).reshape(-1)] = POISON
    return elements.reshape(-1)


def _elements(number: NDArray[np.int64], size: int, seed: int) -> NDArray[np.uint8]:
    """For each element's number, `size` bytes that follow from it and `seed`."""
    words = -(-size // 8)
    place = np.arange(words, dtype=np.uint64)
    at: NDArray[np.uint64] = number.astype(np.uint64)[:, None] * np.uint64(words) + place
    at = at + np.uint64((seed * 0x9E3779B97F4A7C15) & 0xFFFFFFFFFFFFFFFF)
    # splitmix64 (Steele, Lea, Flood 2014)
    at = (at ^ (at >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    at = (at ^ (at >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    at = at ^ (at >> np.uint64(31))
    return np.ascontiguousarray(at.view(np.uint8).reshape(len(number), -1)[:, :size])
