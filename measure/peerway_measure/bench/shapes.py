"""Sizes and shapes as the command line spells them, and the bytes that they stand for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from peerway_measure.bench.halo import Halo
from peerway_measure.cube import compute_shape, cube_face, cube_shape

DOUBLE = 8
ASYNC_BYTES = 128  # the size of a message between two computations
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


@dataclass(frozen=True, slots=True)
class Shape:
    """`blocks` blocks of `block_bytes` each, `pitch` bytes apart; contiguous if there is one block."""

    label: str
    blocks: int
    block_bytes: int
    pitch: int

    @property
    def bytes(self) -> int:
        """The bytes that move."""
        return self.blocks * self.block_bytes

    @property
    def extent(self) -> int:
        """The bytes from the first one touched to the last, inclusive."""
        return (self.blocks - 1) * self.pitch + self.block_bytes


def contiguous(size: int) -> Shape:
    """One run of bytes."""
    return Shape("contiguous", 1, size, size)


def face(n: int, across: str) -> Shape:
    """A face of an n x n x n array of doubles, where the index `across` (i, j or k) is fixed."""
    label = cube_shape(n, across)
    row, plane = n * DOUBLE, n * n * DOUBLE
    if across == "i" or n == 1:
        return Shape(label, 1, plane, plane)
    if across == "j":
        return Shape(label, n, row, plane)
    return Shape(label, n * n, DOUBLE, row)


def strided(blocks: int, block_bytes: int, pitch: int) -> Shape:
    """Any other regular blocks."""
    return Shape(f"blocks:{blocks}x{block_bytes}/{pitch}", blocks, block_bytes, pitch)


def of_halo(halo: Halo) -> Shape:
    """The data that the rank with the most neighbours receives."""
    return Shape(halo.label, 1, halo.bytes, halo.bytes)


def around_computing(size: int) -> Shape:
    """The message of async_pingpong, between computations on `size` bytes."""
    return Shape(compute_shape(size), 1, ASYNC_BYTES, ASYNC_BYTES)


def parse_size(text: str) -> int:
    """Read "8", "64K", "1MiB": bytes, with the units of 1024. Raises ValueError."""
    match = re.fullmatch(r"([1-9][0-9]{0,14})([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not match:
        raise ValueError(f"'{text}' is not a size; write bytes such as 8, 64K, 1M or 2T")
    return int(match[1]) * _UNITS[match[2].upper()]


def parse_sizes(text: str, factor: int = 2) -> list[int]:
    """Read "8:64M" (each size is `factor` times the previous one), a list "8,4K,1M", or a mixture."""
    sizes: set[int] = set()
    for part in text.split(","):
        first, colon, last = part.partition(":")
        low = parse_size(first)
        high = parse_size(last) if colon else low
        if high < low:
            raise ValueError(f"'{part}' is an empty range of sizes: {last} is less than {first}")
        while low <= high:
            sizes.add(low)
            low *= factor
    return sorted(sizes)


def parse_shapes(text: str) -> list[str]:
    """Read "contiguous,cube:64,cube:128/k": labels, a whole cube as its three faces. Raises ValueError."""
    labels: list[str] = []
    for part in (part.strip() for part in text.split(",")):
        if part == "contiguous" or cube_face(part):
            labels.append(part)
        elif cube_face(f"{part}/i"):
            labels += [f"{part}/{across}" for across in "ijk"]
        else:
            raise ValueError(
                f"unknown shape '{part}'; there are contiguous, cube:N (all three faces) and cube:N/i, /j, /k"
            )
    return list(dict.fromkeys(labels))


def of_label(label: str) -> Shape:
    """The shape of a cube label."""
    cube = cube_face(label)
    if cube is None:
        raise ValueError(f"'{label}' is not a face of a cube")
    return face(cube.n, cube.across)
