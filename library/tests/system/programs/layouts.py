"""Layouts for the tests of transfers: random ones from a seed, and the bytes that each of them names."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

Bytes = np.ndarray[Any, np.dtype[np.uint8]]


@dataclass(frozen=True)
class Side:
    """Blocks as pw_block describes them."""

    counts: tuple[int, ...]
    strides: tuple[int, ...]
    block_bytes: int
    offset: int

    def indices(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The index of every byte in the order in which bytes are moved,
        computed independently of the library.
        """
        starts = np.array([self.offset], dtype=np.int64)
        for count, stride in zip(self.counts, self.strides, strict=True):
            starts = (starts[:, None] + np.arange(count) * stride).ravel()
        return (starts[:, None] + np.arange(self.block_bytes)).ravel()

    @property
    def end(self) -> int:
        """One past the last byte."""
        reach = sum((count - 1) * stride for count, stride in zip(self.counts, self.strides, strict=True))
        return self.offset + reach + self.block_bytes


@dataclass(frozen=True)
class Case:
    """One operation: the layouts of its source and its target."""

    label: str
    to: Side
    source: Side


def run(label: str, size: int, to: int = 0, source: int = 0) -> Case:
    """A case of one contiguous run of bytes."""
    return Case(label, Side((), (), size, to), Side((), (), size, source))


def contiguous_cases() -> list[Case]:
    """Sizes around every limit (words, pages, non-temporal lines, staging chunks), at odd addresses."""
    chunk = 256 << 10
    sizes = [0, 1, 7, 8, 127, 4095, 4096, 4097, 65537, chunk - 1, chunk, chunk + 1, 3 * chunk]
    sizes += [8 * chunk - 1, 8 * chunk, 8 * chunk + 1, 17 * chunk + 5, (1 << 20) + 3]
    cases = [run(f"{size} bytes", size) for size in sizes]
    return cases + [
        run(f"{size} bytes from {size % 61} to {size % 59}", size, size % 59, size % 61) for size in sizes
    ]


def strided_cases(seed: int, number: int, largest: int) -> list[Case]:
    """Random layouts in 1 to 4 dimensions whose spans stay below `largest`.

    Some are dense, some have gaps, some nest their dimensions in another order (a transpose), some are
    contiguous on one side.
    """
    random = np.random.default_rng(seed)
    cases: list[Case] = []
    while len(cases) < number:
        dims = int(random.integers(1, 5))
        counts = tuple(int(c) for c in random.integers(1, 8, dims))
        block = int(random.choice([1, 2, 3, 4, 8, 16, 17, 32, 100, 1000, 4096, 5000, 300_000]))
        sides = [_random_side(random, counts, block), _random_side(random, counts, block)]
        form = int(random.integers(0, 4))
        if form < 2:  # one side is contiguous
            sides[form] = Side((), (), math.prod(counts) * block, int(random.integers(0, 100)))
        if max(side.end for side in sides) <= largest:
            cases.append(Case(f"seed {seed} case {len(cases)}: {sides[0]} <- {sides[1]}", *sides))
    return cases


def _random_side(random: np.random.Generator, counts: tuple[int, ...], block: int) -> Side:
    strides = [0] * len(counts)
    inner = block
    for d in random.permutation(len(counts)) if random.random() < 0.5 else reversed(range(len(counts))):
        strides[d] = inner + (int(random.integers(0, 50)) if random.random() < 0.6 else 0)
        inner += (counts[d] - 1) * strides[d]
    return Side(counts, tuple(strides), block, int(random.integers(0, 100)))


def moved(case: Case, target: Bytes, source: Bytes) -> Bytes:
    """The expected target afterwards: its blocks are changed, and no byte beside them."""
    expected = target.copy()
    if not case.to.counts and not case.source.counts:
        expected[case.to.offset : case.to.end] = source[case.source.offset : case.source.end]
    else:
        expected[case.to.indices()] = source[case.source.indices()]
    return expected


def noise(seed: int, size: int) -> Bytes:
    """Random bytes, the same in every process."""
    return np.random.default_rng(seed).integers(0, 256, size, dtype=np.uint8)
