"""How records spell the faces of a cube."""

from __future__ import annotations

import pytest

from peerway_measure.cube import CubeFace, cube_face, cube_shape, shape_class


def test_a_face_reads_back_from_its_spelling() -> None:
    assert cube_shape(64, "k") == "cube:64/k"
    assert cube_face("cube:64/k") == CubeFace(64, "k")


@pytest.mark.parametrize(
    "shape", ["contiguous", "cube:0/k", "cube:64/z", "cube:64", "cube:-1/i", "xcube:4/i"]
)
def test_other_shapes_are_no_face(shape: str) -> None:
    assert cube_face(shape) is None
    assert shape_class(shape) == shape


def test_the_class_of_a_face_has_no_size() -> None:
    assert shape_class("cube:64/k") == shape_class("cube:2/k") == "cube/k"


def test_a_face_that_no_cube_has_is_refused() -> None:
    with pytest.raises(ValueError, match="faces are i, j and k"):
        cube_shape(4, "z")
