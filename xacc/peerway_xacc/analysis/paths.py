"""Which path each communication takes, for --explain: what the route table gives two ranks of this host."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from click import ClickException

from peerway_common.units import about_text, size_text
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.frontend.clauses import Width

_BLOCKS = (16, 128, 1024, 8192)  # bytes: the classes of shapes that route tables know


@dataclass(frozen=True)
class Transfer:
    """A message from one rank to another: `bytes` None where only the run knows, `block` 0: it is contiguous.
    `together`: the bytes of all sends of its plan, None where only the run knows.
    """

    subject: str
    op: str  # as `peerway explain` has it: put, get, or send of a plan
    bytes: int | None = None
    block: int = 0
    on_gpu: bool = False
    count: int = 1
    together: int | None = None

    @property
    def bytes_at_once(self) -> int | None:
        """The bytes that decide its path: on a GPU those of all sends of the plan, else its own."""
        return self.together if self.on_gpu and self.op == "send" else self.bytes

    @property
    def shape(self) -> str:
        """The class of its shape in a route table; that of a plan's sends does not depend on blocks."""
        if self.block == 0 or self.op == "send":
            return "contiguous"
        return next((f"blocks-{bound}" for bound in _BLOCKS if self.block <= bound), "blocks-large")

    def text(self) -> str:
        """The size and shape of the message, in words."""
        size = f" of {size_text(self.bytes)}" if self.bytes is not None else ", of a size known at run time,"
        return f"{self.subject}{size}" + (f" in blocks of {size_text(self.block)}" if self.block else "")


@dataclass(frozen=True)
class Communication:
    """All that a directive sends."""

    head: str
    transfers: tuple[Transfer, ...]


class Paths:
    """Answers of the route table, read once, and only for messages that are sent."""

    def __init__(self, wanted: list[Communication]) -> None:
        transfers = [transfer for communication in wanted for transfer in communication.transfers]
        self._found: dict[tuple[str, str, bool], dict[str, Any]] = {}
        self.note = ""
        if transfers:
            self._ask(transfers)

    def text(self, communication: Communication) -> str:
        """A line of --explain."""
        parts = [f"{transfer.text()} by {self._path(transfer)}" for transfer in communication.transfers]
        return f"{communication.head}: {', '.join(parts)}"

    def _ask(self, transfers: list[Transfer]) -> None:
        ops, shapes = ({transfer.op for transfer in transfers}, {transfer.shape for transfer in transfers})
        try:
            decisions = decided(sorted(ops), sorted(shapes), any(transfer.on_gpu for transfer in transfers))
        except ClickException as failed:
            self.note = f"which paths are taken is not known here: {failed.message}"
            return
        for decision in decisions:
            directive = decision["decision"]
            self._found[directive["op"], directive["shape"], decision["source"] != "host"] = directive
        measured = {directive["measured"] for directive in self._found.values() if directive["measured"]}
        costs = f"costs measured {max(measured)}" if measured else "no costs are measured"
        if any(directive["builtin"] for directive in self._found.values()):
            costs += ", some of them on other machines"
        if any(transfer.on_gpu for transfer in transfers) and not any(on_gpu for _, _, on_gpu in self._found):
            costs += "; those on CPUs, because there is no GPU"
        self.note = f"paths are those between two ranks of this host ({costs}); see peerway explain"

    def _path(self, transfer: Transfer) -> str:
        if transfer.on_gpu and (transfer.op, transfer.shape, True) not in self._found and self._found:
            return self._path(replace(transfer, on_gpu=False))  # as the note says
        decision = self._found.get((transfer.op, transfer.shape, transfer.on_gpu))
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
    """The decisions of two ranks of this host, between memories of the host, and of GPUs if there are any."""
    from peerway_measure.bench import machine
    from peerway_measure.cli.explain import decisions
    from peerway_measure.cli.options import table_environment

    memories = [pair for pair in machine.memory_pairs() if pair in (("host", "host"), ("cuda", "cuda"))]
    decided_paths = decisions(memories if on_gpu else memories[:1], ops, shapes, table_environment(None))
    return [dict(decision) for decision in decided_paths]


def faces(array: DistributedArray, widths: list[Width] | None, corners: bool, on_gpu: bool) -> list[Transfer]:
    """The messages that a rank with neighbours on all sides gets of one array: equal ones together."""
    assert array.variable is not None
    rank = len(array.dimensions)
    choices = [_sides(array, dimension, widths) for dimension in range(rank)]
    count: Counter[tuple[str, int | None, int]] = Counter()
    boxes = list(product(*choices))
    boxes.sort(key=lambda chosen: (sum(side for side, _, _ in chosen), [-side for side, _, _ in chosen]))
    for chosen in boxes:
        sides = sum(side for side, _, _ in chosen)
        if sides == 0 or (sides > 1 and not corners):
            continue
        size, block = _box([(length, held) for _, length, held in chosen], array.variable.element_bytes)
        count["face" if sides == 1 else "corner", size, block] += 1
    return [
        Transfer(f"{many} {kind}{'s' if many > 1 else ''}", "send", size, block, on_gpu, many)
        for (kind, size, block), many in count.items()
    ]


def of_one_plan(sends: list[Transfer]) -> list[Transfer]:
    """The sends of one plan, each with the bytes of all."""
    known = [send.count * send.bytes for send in sends if send.bytes is not None]
    together = sum(known) if len(known) == len(sends) else None
    return [replace(send, together=together) for send in sends]


def _sides(
    array: DistributedArray, dimension: int, widths: list[Width] | None
) -> list[tuple[int, int | None, int | None]]:
    """The parts of a dimension that boxes are made of: own elements, and layers below and above. Each: 1 for
    layers, how many elements, and how many the memory holds along the dimension.
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
    """Its bytes, if they are known, and the bytes of its contiguous parts, 0 where it is one."""
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
