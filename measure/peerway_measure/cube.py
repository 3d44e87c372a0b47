"""Spells shapes as records do: the faces of a cube of doubles, and messages sent between computations."""

from __future__ import annotations

import re
from typing import NamedTuple


class CubeFace(NamedTuple):
    """A face of an n x n x n array of doubles [i][j][k]: the face where index `across` is fixed."""

    n: int
    across: str  # "i" is contiguous, "j" is n rows of n doubles, "k" is n * n single doubles


def cube_shape(n: int, across: str) -> str:
    """The spelling of a cube's face in a record, such as "cube:64/k"."""
    if n < 1 or across not in ("i", "j", "k"):
        raise ValueError(f"no face '{across}' of a cube with n = {n}; faces are i, j and k, n is at least 1")
    return f"cube:{n}/{across}"


def cube_face(shape: str) -> CubeFace | None:
    """The face that a shape names, or None for any other shape."""
    match = re.fullmatch(r"cube:([1-9][0-9]{0,8})/([ijk])", shape)
    return CubeFace(int(match[1]), match[2]) if match else None


def compute_shape(size: int) -> str:
    """The spelling of async_pingpong's message between computations on `size` bytes, such as
    "compute:4096".
    """
    return f"compute:{size}"


def computed_bytes(shape: str) -> int | None:
    """The number of bytes computed on, or None if the shape is of another kind."""
    match = re.fullmatch(r"compute:([1-9][0-9]{0,14})", shape)
    return int(match[1]) if match else None


def shape_class(shape: str) -> str:
    """The shape without its size, so that all sizes of one curve have the same text: "cube:64/k" ->
    "cube/k".
    """
    face = cube_face(shape)
    return f"cube/{face.across}" if face else shape
