"""Shows what each kind of GPUDirect gains on each node type: a row for each test and type, a column for each
setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from peerway_common.printable import printable
from peerway_common.units import counted, size_text
from peerway_measure.compare.metric import metric_of
from peerway_measure.memories import is_gpu
from peerway_measure.records import Record

_P2P = ("staged", "peer/copy", "peer/store")
# Settings of `peerway bench --gpudirect`, of its paths between two GPUs, and of the engine gds. The first of
# each does not use GPUDirect.
SETTINGS = {
    "GPUDirect RDMA and Copy": ("gpudirect:neither", "gpudirect:gdrcopy", "gpudirect:rdma", "gpudirect:both"),
    "GPUDirect P2P": _P2P,
    "GPUDirect Storage": ("gds/bounce", "gds/compat", "gds/direct"),
}
NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Matrix:
    """A title, the columns, and the rows, each with a test, a node type, and a cell for each column."""

    name: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def matrices(records: Sequence[Record]) -> list[Matrix]:
    """A matrix for each family of settings that was measured."""
    families = []
    for name, settings in SETTINGS.items():
        rows: dict[tuple[str, ...], dict[str, list[Record]]] = {}
        for r in records:
            if r.via in settings and (settings is not _P2P or _between_gpus(r)):
                size = size_text(r.bytes) if r.bytes else ""
                between = f"{r.source} to {r.target}"
                many = counted(r.ranks, "stream" if "file" in (r.source, r.target) else "rank")
                test = " ".join(filter(None, (r.test, r.shape, size, between, many)))
                rows.setdefault((test, r.node_type), {}).setdefault(r.via, []).append(r)
        if rows:
            cells = [(*map(printable, key), *_cells(settings, vias)) for key, vias in sorted(rows.items())]
            families.append(Matrix(name, settings, cells))
    return families


def _between_gpus(record: Record) -> bool:
    ends = (record.source, record.target)
    return all(is_gpu(end) for end in ends) and ends[0] != ends[1]


def _cells(settings: Sequence[str], vias: dict[str, list[Record]]) -> list[str]:
    """The median of each setting, and the factor by which it is better than without GPUDirect."""
    metric = metric_of(next(iter(vias.values()))[0].test)
    values = {
        via: median(v)
        for via, several in vias.items()
        if (v := [x for r in several if (x := metric.of(r)) is not None])
    }
    base, cells = values.get(settings[0]), []
    for via in settings:
        value = values.get(via)
        if value is None:
            cells.append(NOT_MEASURED)
            continue
        active = _active(vias[via])
        better = value / base if base and metric.more_is_better else base / value if base and value else None
        times = f", {better:.2f} times" if better is not None and via != settings[0] else ""
        cells.append(f"{metric.text(value)}{times}{active}")
    return cells


def _active(several: Sequence[Record]) -> str:
    """What the library reported about GPUDirect Storage, if it was used; else ""."""
    states = {str(r.extra["gds_active"]) for r in several if "gds_active" in r.extra}
    words = {"True": "active", "False": "not active", "unknown": "not known whether active"}
    return f" ({', '.join(sorted(words.get(state, printable(state)) for state in states))})" if states else ""
