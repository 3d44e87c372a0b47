"""What a rank gives to a collective: its arrays, and how many elements each rank has. The arguments are
checked as far as this rank can check them alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from peerway import _core
from peerway._arguments.array_layout import Layout
from peerway._arguments.arrays import contiguous_layout_of
from peerway._arguments.validation import called, number
from peerway._arguments.validation import device as split_device
from peerway.errors import InvalidArgument

OPERATIONS = ("sum", "min", "max", "prod", "and", "or")
ORDERS = ("group", "any")  # by the numbers of pw_order

_KINDS = ("all_reduce", "reduce_scatter", "all_gather", "broadcast", "all_to_all", "barrier")
# By the numbers of pw_element, and NumPy's codes of these types without the order of their bytes.
_ELEMENTS = (
    "i1",
    "u1",
    "i2",
    "u2",
    "i4",
    "u4",
    "i8",
    "u8",
    "f2",
    "bfloat16",
    "f4",
    "f8",
    "float8_e4m3fn",
    "float8_e5m2",
)
_DLPACK_KINDS = {2: "cuda", 13: "cuda", 10: "hip"}  # kDLCUDA, kDLCUDAManaged and kDLROCM of dlpack.h
_OF_BITS = ("min", "max", "and", "or")  # what keeps a truth value one
_LARGEST_RANK = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Array:
    """An array of a collective, as elements in the order of its memory."""

    name: str
    layout: Layout
    device: str  # "host", "cuda" or "hip"

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.layout.shape)


@dataclass(frozen=True, slots=True)
class Request:
    """A collective before it is made. `source_offset` is in elements, from the start of `source`."""

    kind: str
    op: str = "sum"
    order: str = "group"
    root: int = 0
    count: int = 0
    counts: list[int] | None = None
    receive_counts: list[int] | None = None
    to: Array | None = None
    source: Array | None = None
    source_offset: int = 0
    barrier_device: str = "host"

    @property
    def device(self) -> str:
        """Where the plan runs, as far as it can be told without the arrays' memory."""
        return self.barrier_device if self.to is None else self.to.device

    def arrays(self) -> list[Array]:
        """The arrays that have elements, each once."""
        given = [array for array in (self.to, self.source) if array is not None and array.size > 0]
        return given[:1] if len(given) == 2 and given[0] is given[1] else given

    def numbers(self, ranks: Sequence[int] | None) -> _core.CollectiveNumbers:
        """What the library needs besides the memory. Raises InvalidArgument for types that it does not
        combine.
        """
        return _core.CollectiveNumbers(
            _KINDS.index(self.kind),
            _element(self),
            OPERATIONS.index(self.op),
            ORDERS.index(self.order),
            self.root,
            self.count,
            self.counts,
            self.receive_counts,
            ranks,
        )


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks that make a collective, in their order, and this rank."""

    ranks: list[int]
    rank: int

    @property
    def size(self) -> int:
        return len(self.ranks)

    @property
    def place(self) -> int:
        """This rank's place in the group."""
        if self.rank not in self.ranks:
            raise InvalidArgument(
                f"peerway: a collective is to be made among {self.size} ranks without rank {self.rank}, "
                "which makes it."
            )
        return self.ranks.index(self.rank)


def group_of(ranks: Sequence[int] | None, rank: int, size: int) -> Group:
    """The group for the argument `ranks`."""
    if ranks is None:
        return Group(list(range(size)), rank)
    name = "a collective: a rank of `ranks`"
    return Group([number(name, member, most=_LARGEST_RANK) for member in ranks], rank)


def all_reduce(to: object, source: object, op: str, order: str) -> Request:
    """The request of Context.all_reduce; the functions below likewise."""
    target = _writable("to", to)
    operand = target if source is None else _array("source", source)
    _check_size("all_reduce", operand, target.size, "as many as `to`")
    return Request(
        "all_reduce", _operation(op, target), _order(order), count=target.size, to=target, source=operand
    )


def reduce_scatter(
    group: Group, to: object, source: object, op: str, order: str, counts: Sequence[int] | None
) -> Request:
    target, operand = _writable("to", to), _array("source", source)
    parts = _parts("reduce_scatter", "counts", counts, group) or [target.size] * group.size
    _check_size("reduce_scatter", target, parts[group.place], "the elements of this rank's part")
    _check_size("reduce_scatter", operand, sum(parts), "the elements of all parts")
    return Request(
        "reduce_scatter", _operation(op, target), _order(order), counts=parts, to=target, source=operand
    )


def all_gather(group: Group, to: object, source: object, counts: Sequence[int] | None) -> Request:
    target = _writable("to", to)
    parts = _parts("all_gather", "counts", counts, group)
    if source is None:
        operand = target
        parts = parts or _equal_parts("all_gather", target, group)
        offset = sum(parts[: group.place])
    else:
        operand, offset = _array("source", source), 0
        parts = parts or [operand.size] * group.size
        _check_size("all_gather", operand, parts[group.place], "the elements of this rank's part")
    _check_size("all_gather", target, sum(parts), "the elements of all parts")
    return Request("all_gather", counts=parts, to=target, source=operand, source_offset=offset)


def broadcast(group: Group, array: object, root: int) -> Request:
    of_root = number("broadcast: `root`", root, most=_LARGEST_RANK)
    shared = _array("array", array) if group.rank == of_root else _writable("array", array)
    return Request("broadcast", root=of_root, count=shared.size, to=shared)


def all_to_all(
    group: Group,
    to: object,
    source: object,
    counts: Sequence[int] | None,
    receive_counts: Sequence[int] | None,
) -> Request:
    target, operand = _writable("to", to), _array("source", source)
    sent = _parts("all_to_all", "counts", counts, group) or _equal_parts("all_to_all", operand, group)
    received = _parts("all_to_all", "receive_counts", receive_counts, group) or sent
    _check_size("all_to_all", operand, sum(sent), "the elements that this rank sends")
    _check_size("all_to_all", target, sum(received), "the elements that this rank receives")
    return Request("all_to_all", counts=sent, receive_counts=received, to=target, source=operand)


def barrier(device: str) -> Request:
    split_device(device)
    return Request("barrier", barrier_device=device)


def _array(name: str, array: object) -> Array:
    return Array(name, contiguous_layout_of(array), _device_of(array))


def _device_of(array: object) -> str:
    """The kind of device of an array. An array without elements has no address that would tell it."""
    device = getattr(array, "__dlpack_device__", None)
    if device is not None:
        return _DLPACK_KINDS.get(int(device()[0]), "host")
    if getattr(array, "__cuda_array_interface__", None) is None:
        return "host"
    kinds = [name.partition(":")[0] for name, _ in _core.devices()]
    return "hip" if "hip" in kinds and "cuda" not in kinds else "cuda"


def _writable(name: str, array: object) -> Array:
    taken = _array(name, array)
    if taken.layout.read_only:
        raise InvalidArgument(
            f"peerway: {called(array)} is read-only, but `{name}` of a collective is written to; give a "
            "writable array."
        )
    return taken


def _order(order: str) -> str:
    if order not in ORDERS:
        raise InvalidArgument(f"peerway: order={order!r} of a collective; there are {', '.join(ORDERS)}.")
    return order


def _operation(op: str, target: Array) -> str:
    if op not in OPERATIONS:
        raise InvalidArgument(f"peerway: op={op!r} of a collective; there are {', '.join(OPERATIONS)}.")
    if target.layout.kind.lstrip("|") == "b1" and op not in _OF_BITS:
        raise InvalidArgument(
            f'peerway: op={op!r} of truth values; use "or", "and", or an array of integers.'
        )
    return op


def _parts(call: str, name: str, counts: Sequence[int] | None, group: Group) -> list[int] | None:
    if counts is None:
        return None
    parts = [number(f"{call}: an entry of `{name}`", count) for count in counts]
    if len(parts) != group.size:
        raise InvalidArgument(
            f"peerway: {call} with {len(parts)} `{name}`, among {group.size} ranks; give one for each rank."
        )
    return parts


def _equal_parts(call: str, array: Array, group: Group) -> list[int]:
    if array.size % group.size:
        raise InvalidArgument(
            f"peerway: {call}: `{array.name}` has {array.size} elements, which {group.size} ranks cannot "
            "share equally; give `counts`."
        )
    return [array.size // group.size] * group.size


def _check_size(call: str, array: Array, needed: int, meaning: str) -> None:
    if array.size != needed:
        raise InvalidArgument(
            f"peerway: {call}: `{array.name}` has {array.size} elements, but needs {needed}, {meaning}."
        )


def _element(request: Request) -> int:
    """The number of the elements' type. Both arrays must have the same type."""
    if request.to is None:
        return 0
    kind = request.to.layout.kind
    if request.source is not None and request.source.layout.kind != kind:
        raise InvalidArgument(
            f"peerway: {request.kind}: `to` has elements of type {kind}, and `source` of type "
            f"{request.source.layout.kind}; give arrays of one type."
        )
    code = kind.lstrip("<|=").replace("b1", "u1")
    if code in _ELEMENTS:
        return _ELEMENTS.index(code)
    raise InvalidArgument(
        f"peerway: {request.kind} of elements of type {kind}; there are integers of 8 to 64 bits, "
        "float8_e4m3fn, float8_e5m2, float16, bfloat16, float32, float64, and truth values for "
        + ", ".join(_OF_BITS)
        + "."
    )
