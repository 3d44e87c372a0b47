"""Views: slices of elements, and the blocks that two sides become; compared with NumPy's slicing."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from peerway import InvalidArgument, OutOfRange, _core, views
from peerway.views import Span, View, view_of

MEMORY = np.arange(4096, dtype="u1")


def over(shape: int | tuple[int, ...], dtype: str = "f8", offset: int = 0) -> View[Any]:
    return view_of(SimpleNamespace(bytes=MEMORY.size), dtype, shape, offset)  # type: ignore[type-var]


@pytest.mark.parametrize(
    "key",
    [
        np.s_[2], np.s_[-1], np.s_[1:3], np.s_[:, 2], np.s_[..., 1], np.s_[1:4:2, ..., ::3], np.s_[...],
        np.s_[3:1], np.s_[:, 5:5], np.s_[0, 0, 0], np.s_[-2:, 1:-1], np.s_[100:], np.s_[np.int64(1), :2],
    ],
)  # fmt: skip
def test_a_view_is_sliced_as_an_array_is(key: Any) -> None:
    array = MEMORY[64:].view("f8")[: 4 * 5 * 6].reshape(4, 5, 6)
    expected = array[(*key, ...) if isinstance(key, tuple) and ... not in key else key]
    found = over((4, 5, 6), offset=64)[key]
    assert found.shape == np.shape(expected)
    if expected.size:
        assert [s for s, n in zip(found.strides, found.shape, strict=True) if n > 1] == [
            s for s, n in zip(np.asarray(expected).strides, found.shape, strict=True) if n > 1
        ]
        assert found.nbytes == expected.nbytes
    if isinstance(expected, np.ndarray) and expected.size:
        assert found.offset == expected.ctypes.data - MEMORY.ctypes.data


@pytest.mark.parametrize(
    ("key", "kind", "says"),
    [
        (4, OutOfRange, "index 4 is outside axis 0, which has 4 elements"),
        (np.s_[0, -6], OutOfRange, "index -6 is outside axis 1"),
        (np.s_[0, 0, 0], OutOfRange, r"\[0, 0, 0\] has 3 indices; the view has 2 dimensions"),
        (np.s_[::-1], InvalidArgument, r"\[::-1\] runs backwards; steps must be positive"),
        (np.s_[::0], InvalidArgument, "cannot be zero"),
        ("a", InvalidArgument, r"\['a'\] is not an index of a view"),
        (1.5, InvalidArgument, "is not an index"),
        ([1, 2], InvalidArgument, "is not an index"),
        (None, InvalidArgument, "is not an index"),
    ],
)
def test_what_is_no_slice_is_refused(key: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        over((4, 5))[key]


@pytest.mark.parametrize(
    ("shape", "dtype", "says"),
    [
        (513, "f8", "needs 4104 bytes, but the region has 4096"),
        ((-1, 8), "f8", "must be 0 or more"),
        (2.5, "f8", "is not a shape"),
        (4, object, "Python objects"),
        (4, [("a", "O")], "Python objects"),
        (4, "V0", "0 bytes"),
    ],
)
def test_what_does_not_fit_is_refused(shape: Any, dtype: Any, says: str) -> None:
    with pytest.raises(InvalidArgument, match=says):
        over(shape, dtype)


def elements(view: View[Any], counts: list[int], strides: list[int], block: int) -> list[int]:
    """The address of each item that a block touches, in order."""
    places = itertools.product(*(range(count) for count in counts))
    begins = [sum(i * s for i, s in zip(place, strides, strict=True)) for place in places]
    return [view.offset + begin + at for begin in begins for at in range(0, block, view.item)]


SIDES = [
    over((6, 8, 10), "i4")[1:5, 2:8:2, 3:7],
    over((4, 3, 4), "i4"),
    over((4, 6, 10), "i4")[:, ::2, :4],
    over((12, 3, 4), "i4")[::3],
]


@pytest.mark.parametrize(("first", "other"), list(itertools.product(SIDES, SIDES)))
def test_two_sides_become_blocks_of_one_shape(
    first: View[Any], other: View[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    monkeypatch.setattr(_core, "Block", lambda *block: made.append(block))
    views.blocks_of(first, other)
    (counts, strides, size, offset), (far_counts, far_strides, far_size, far_offset) = made
    assert (counts, size, offset, far_offset) == (far_counts, far_size, first.offset, other.offset)
    pairs = set(
        zip(elements(first, counts, strides, size), elements(other, counts, far_strides, size), strict=True)
    )
    assert pairs == {
        tuple(
            side.offset + sum(i * s for i, s in zip(place, side.strides, strict=True))
            for side in (first, other)
        )
        for place in np.ndindex(first.shape)
    }
    if first is other is SIDES[1]:
        assert (counts, size) == ([], 192)


def test_columns_first_on_both_sides_are_one_range(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(_core, "Block", lambda *block: made.append(block))
    columns = View(over(8).of, "<f8", 8, (4, 6), (8, 32), 0)
    views.blocks_of(columns, columns)
    assert made[0] == ([], [], 192, 0)


def test_sides_that_differ_are_refused() -> None:
    with pytest.raises(InvalidArgument, match=r"shape \(5,\) do not fit into \(4,\)"):
        views.blocks_of(over(4), over(5))
    with pytest.raises(InvalidArgument, match="type float32 do not become float64"):
        views.blocks_of(over(4), over(4, "f4"))
    five = over((4, 4, 4, 4, 4), "u1")[:3, :3, :3, :3, ::3]
    with pytest.raises(InvalidArgument, match="5 dimensions with gaps; one put or get moves at most 4"):
        views.blocks_of(five, five)
    views.blocks_of(over(4, "V8"), over(4))  # raw elements take any type of their size


def test_blocks_and_other_plain_values_are_shown_by_what_they_hold() -> None:
    block = _core.Block((3, 2), (256, -64), 16, 128)
    assert repr(block) == "Block(counts=(3, 2), strides=(256, -64), block_bytes=16, offset=128)"
    assert repr(Span("region", block)) == f"Span(of='region', block={block!r})"  # type: ignore[type-var]
    assert repr(_core.Block((), (), 8)) == "Block(counts=(), strides=(), block_bytes=8, offset=0)"
    nic = _core.nic_spec("/lib/libnic.so?path='a'", "a test")
    assert repr(nic) == """Nic(file='/lib/libnic.so', options="path='a'")"""
    for setting in _core.settings():
        assert repr(setting).startswith(f"Setting(name={setting.name!r}, value={setting.value!r}, origin=")


class TorchType:
    """A double of a PyTorch type (PyTorch is not installed here): its name and its size."""

    def __init__(self, name: str, itemsize: int) -> None:
        self.name, self.itemsize = name, itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"


@pytest.mark.parametrize(
    ("name", "size", "kind"),
    [("float32", 4, "<f4"), ("int64", 8, "<i8"), ("bool", 1, "|b1"), ("bfloat16", 2, "bfloat16"),
     ("float8_e4m3fn", 1, "float8_e4m3fn")],
)  # fmt: skip
def test_a_type_of_pytorch_is_one_of_numpy_or_keeps_its_name(name: str, size: int, kind: str) -> None:
    view = view_of(SimpleNamespace(bytes=64), TorchType(name, size), (2, 4), 0)  # type: ignore[type-var, arg-type]
    assert (view.kind, view.item, view.strides) == (kind, size, (4 * size, size))
