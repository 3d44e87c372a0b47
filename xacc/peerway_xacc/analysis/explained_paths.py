"""Says for --explain which path each communication takes, by this host's route table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from click import ClickException

from peerway_common.units import about_text, size_text
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend.clauses import Width

_BLOCKS = (16, 128, 1024, 8192)  # bytes: the classes of block sizes that route tables have


@dataclass(frozen=True)
class Transfer:
    """Messages from one rank to another: `count` messages of equal size.

    `bytes` is None if known only at run time; `block` is the bytes of a contiguous block, 0 if the message is
    contiguous. `together` is the bytes of all sends of its plan, None if known only at run time.
    """

    subject: str
    op: str  # as in `peerway explain`: put, get, or send (of a plan)
    bytes: int | None = None
    block: int = 0
    on_gpu: bool = False
    count: int = 1
    together: int | None = None

    @property
    def bytes_at_once(self) -> int | None:
        """The bytes by which its path is chosen: on a GPU those of all sends of the plan, else its own."""
        return self.together if self.on_gpu and self.op == "send" else self.bytes

    @property
    def shape(self) -> str:
        """Its class of shapes in a route table; sends of plans always count as contiguous."""
        if self.block == 0 or self.op == "send":
            return "contiguous"
        return next((f"blocks-{bound}" for bound in _BLOCKS if self.block <= bound), "blocks-large")

    def text(self) -> str:
        """Describe the message's size and shape in words."""
        size = f" of {size_text(self.bytes)}" if self.bytes is not None else ", of a size known at run time,"
        return f"{self.subject}{size}" + (f" in blocks of {size_text(self.block)}" if self.block else "")


@dataclass(frozen=True)
class Communication:
    """All messages of a directive."""

    head: str
    transfers: tuple[Transfer, ...]


class Paths:
    """The paths of communications. The route table is read once, and only if something is sent."""

    def __init__(self, wanted: list[Communication]) -> None:
        transfers = [transfer for communication in wanted for transfer in communication.transfers]
        self._decisions: dict[tuple[str, str, bool], dict[str, Any]] = {}
        self.note = ""
        if transfers:
            self._read_table(transfers)

    def text(self, communication: Communication) -> str:
        """A line of --explain."""
        parts = [f"{transfer.text()} by {self._path(transfer)}" for transfer in communication.transfers]
        return f"{communication.head}: {', '.join(parts)}"

    def _read_table(self, transfers: list[Transfer]) -> None:
        ops, shapes = ({transfer.op for transfer in transfers}, {transfer.shape for transfer in transfers})
        try:
            answers = decided(sorted(ops), sorted(shapes), any(transfer.on_gpu for transfer in transfers))
        except ClickException as failed:
            self.note = f"which paths are taken is not known here: {failed.message}"
            return
        for answer in answers:
            decision = answer["decision"]
            self._decisions[decision["op"], decision["shape"], answer["source"] != "host"] = decision
        measured = {decision["measured"] for decision in self._decisions.values() if decision["measured"]}
        costs = f"costs measured {max(measured)}" if measured else "no costs are measured"
        if any(decision["builtin"] for decision in self._decisions.values()):
            costs += ", some of them on other machines"
        if any(transfer.on_gpu for transfer in transfers) and not any(
            on_gpu for _, _, on_gpu in self._decisions
        ):
            costs += "; those on CPUs, because there is no GPU"
        self.note = f"paths are those between two ranks of this host ({costs}); see peerway explain"

    def _path(self, transfer: Transfer) -> str:
        if transfer.on_gpu and (transfer.op, transfer.shape, True) not in self._decisions and self._decisions:
            # no GPU here: the note says that these costs are the CPU's
            return self._path(replace(transfer, on_gpu=False))
        decision = self._decisions.get((transfer.op, transfer.shape, transfer.on_gpu))
        if decision is None:
            return "the path that `peerway explain` shows there"
        rows = decision["rows"]
        if transfer.bytes_at_once is not None:
            size = max(transfer.bytes_at_once, 1)
            rows = [row for row in rows if row["from"] <= size and (row["to"] is None or size < row["to"])]
        if len({row["via"] for row in rows}) <= 1:
            return str(rows[0]["via"]) if rows else "no path"
        return " or ".join(
            str(row["via"]) + (f" below {about_text(row['to'])}" if row["to"] else "") for row in rows
        )


def decided(ops: list[str], shapes: list[str], on_gpu: bool) -> list[dict[str, Any]]:
    """The routing decisions for two ranks of this host: for host memory and, with `on_gpu`, GPU memory."""
    from peerway_measure.bench import machine
    from peerway_measure.cli.explain import decisions
    from peerway_measure.cli.options import table_environment

    kinds = ["host", *(machine.gpu_kinds()[:1] if on_gpu else [])]
    answers = decisions([(kind, kind) for kind in kinds], ops, shapes, table_environment(None))
    return [dict(answer) for answer in answers]


def faces(array: DistributedArray, widths: list[Width] | None, corners: bool, on_gpu: bool) -> list[Transfer]:
    """The messages for one array that a rank with neighbours on all sides receives, counted by size."""
    assert array.variable is not None
    rank = len(array.dimensions)
    choices = [_sides(array, dimension, widths) for dimension in range(rank)]
    count: Counter[tuple[str, int | None, int]] = Counter()
    boxes = list(product(*choices))
    boxes.sort(key=lambda box: (sum(side for side, _, _ in box), [-side for side, _, _ in box]))
    for box in boxes:
        sides = sum(side for side, _, _ in box)
        if sides == 0 or (sides > 1 and not corners):
            continue
        size, block = _box([(length, held) for _, length, held in box], array.variable.element_bytes)
        count["face" if sides == 1 else "corner", size, block] += 1
    return [
        Transfer(f"{many} {kind}{'s' if many > 1 else ''}", "send", size, block, on_gpu, many)
        for (kind, size, block), many in count.items()
    ]


def of_one_plan(sends: list[Transfer]) -> list[Transfer]:
    """The sends of one plan, each with the total bytes of the plan."""
    known = [send.count * send.bytes for send in sends if send.bytes is not None]
    together = sum(known) if len(known) == len(sends) else None
    return [replace(send, together=together) for send in sends]


def _sides(
    array: DistributedArray, dimension: int, widths: list[Width] | None
) -> list[tuple[int, int | None, int | None]]:
    """The parts of a dimension of which boxes consist: own elements, and the layers below and above.

    Each part is a tuple: 1 for layers and 0 for own elements, the number of elements, and the number that the
    memory has along the dimension. Numbers are None if known only at run time.
    """
    assert array.variable is not None
    lower, upper = array.shadow_values(dimension)
    held = array.extent(dimension)
    size = array.variable.sizes[dimension]
    aligned = array.dimensions[dimension]
    if aligned is None or array.kind_of(dimension) == "*":
        return [(0, size, held)]
    own = held - lower - upper if held is not None and lower is not None and upper is not None else None
    if widths is not None:
        width = widths[dimension]
        lower = width.lower.value if width.lower else 0
        upper = width.upper.value if width.upper else 0
    layers = [(1, None if side is None or side < 0 else side, held) for side in (lower, upper) if side != 0]
    return [(0, own, held), *layers]


def _box(dims: list[tuple[int | None, int | None]], element: int) -> tuple[int | None, int]:
    """The bytes of a box, None if unknown, and of its contiguous blocks, 0 if it is one block.

    `dims` has for each dimension the elements of the box and of the memory.
    """
    size = part = element
    whole = True
    for length, held in reversed(dims):
        if length is None:
            return None, 0
        size *= length
        if whole:
            part = size
        whole = whole and length == held
    return size, 0 if part == size else part
