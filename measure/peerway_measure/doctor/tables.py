"""Tables of the page: GPUs, the peer matrix, and the distance from NICs and drives to GPUs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.box import SIMPLE_HEAD
from rich.console import Group as Stack
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from . import text
from .finding import Group
from .topology import DESCRIPTIONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .facts import Facts, Gpu, GpuPair

LEAST_WIDTH = 60  # columns that the table of GPUs needs

STYLES = {"switch": "green", "root": "yellow", "node": "yellow", "across": "red", "unknown": "magenta"}


def of_group(facts: Facts, group: Group, width: int) -> list[RenderableType]:
    """The tables below a group's findings, for a terminal of `width` columns."""
    if not facts.gpus:
        return []
    if group is Group.GPUS:
        return [gpus(facts, width)]
    if group is Group.BETWEEN and len(facts.gpus) > 1:
        return [peers(facts, width)]
    if group is Group.NETWORK:
        rows = [(n.name, n.gpu_distance) for n in facts.network.nics if n.rdma]
        return [distances(facts, "NIC", rows, width)] if rows else []
    if group is Group.STORAGE and facts.storage.drives:
        return [distances(facts, "drive", [(d.name, d.gpu_distance) for d in facts.storage.drives], width)]
    return []


def gpus(facts: Facts, width: int) -> RenderableType:
    """The table of GPUs, or a list if the table does not fit."""
    if width < LEAST_WIDTH:
        return Stack(*(Text(_gpu_text(gpu)) for gpu in facts.gpus))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
    table.add_column("GPU", justify="right")
    table.add_column("name", overflow="fold")
    table.add_column("PCI", no_wrap=True)
    for title in ("NUMA", "memory", "BAR1"):
        table.add_column(title, justify="right", no_wrap=True)
    wide = width >= 110
    if wide:
        table.add_column("UUID", no_wrap=True)
    for g in facts.gpus:
        node = "?" if g.numa_node is None else str(g.numa_node)
        cells = [str(g.index), g.name, g.bus_id, node, text.size(g.memory), text.size(g.bar1)]
        table.add_row(*cells, *([g.uuid] if wide else []))
    return table


def _gpu_text(gpu: Gpu) -> str:
    node = "?" if gpu.numa_node is None else gpu.numa_node
    size = f"{text.size(gpu.memory)}, BAR1 {text.size(gpu.bar1)}"
    return f"GPU {gpu.index}: {gpu.name}, PCI {gpu.bus_id}, NUMA {node}, {size}"


def peers(facts: Facts, width: int) -> RenderableType:
    """The peer matrix: the GPU of a row accesses that of a column. A cell shows the link: NVLinks, or the
    nearest PCIe component that joins the two.
    """
    known = {(p.first, p.second): p for p in facts.pairs}

    def cell(row: Gpu, column: Gpu) -> Text:
        if row.index == column.index:
            return Text("·", style="dim")
        return _peer(known.get((row.index, column.index)))

    matrix = [(f"GPU{g.index}", [cell(g, column) for column in facts.gpus]) for g in facts.gpus]
    used = {c.plain.removeprefix("no ") for _, cells in matrix for c in cells}
    notes = ["NVn: n NVLinks"] if any(c.startswith("NV") for c in used) else []
    notes += [f"{name}: {DESCRIPTIONS[name]}" for name in DESCRIPTIONS if name in used and name != "unknown"]
    if any(c.plain.startswith("no") for _, cells in matrix for c in cells):
        notes.append("no: peer access refused")
    if "?" in used:
        notes.append("?: unknown")
    return _matrix("", facts.gpus, matrix, "; ".join(notes), width)


def _peer(pair: GpuPair | None) -> Text:
    if pair is None:
        return Text("?", style=STYLES["unknown"])
    link = f"NV{pair.nvlinks}" if pair.nvlinks else "?" if pair.distance == "unknown" else pair.distance
    if pair.access is False:
        return Text(f"no {link}", style="red")
    return Text(link, style="green" if pair.nvlinks else STYLES[pair.distance])


def distances(
    facts: Facts, title: str, rows: Sequence[tuple[str, dict[str, str]]], width: int
) -> RenderableType:
    """Make the table of distances from devices to GPUs."""

    def cell(far: dict[str, str], gpu: Gpu) -> Text:
        kind = far.get(str(gpu.index), "unknown")
        return Text("?" if kind == "unknown" else kind, style=STYLES.get(kind, ""))

    matrix = [(name, [cell(far, gpu) for gpu in facts.gpus]) for name, far in rows]
    used = {c.plain for _, cells in matrix for c in cells}
    notes = "; ".join(f"{name}: {DESCRIPTIONS[name]}" for name in DESCRIPTIONS if name in used)
    return _matrix(title, facts.gpus, matrix, notes, width)


def _matrix(
    corner: str, columns: Sequence[Gpu], rows: Sequence[tuple[str, list[Text]]], notes: str, width: int
) -> RenderableType:
    """One table, or several below each other if its columns do not fit."""
    first = max(len(corner), *(len(name) for name, _ in rows))
    each = max(5, *(len(c.plain) for _, cells in rows for c in cells)) + 3
    fit = max(1, (width - 2 - first) // each)
    parts: list[RenderableType] = []
    for start in range(0, len(columns), fit):
        table = Table(box=SIMPLE_HEAD, padding=(0, 1), pad_edge=False, show_edge=False)
        table.add_column(corner, no_wrap=True)
        for gpu in columns[start : start + fit]:
            table.add_column(f"GPU{gpu.index}", no_wrap=True, width=each - 3)
        for name, cells in rows:
            table.add_row(name, *cells[start : start + fit])
        parts.append(table)
    return Stack(*parts, Text(notes, style="dim"))
