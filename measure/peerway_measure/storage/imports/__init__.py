"""Converts results of other tools into records. The content of a file shows which tool wrote it.

Values that a tool does not report stay unknown, and rows that cannot be records are left out with the reason.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from peerway_common import atomic_file
from peerway_measure.storage.imports import elbencho, fio, gdsio, ior, mdtest
from peerway_measure.storage.imports.rows import Rows
from peerway_measure.storage.imports.source import BadResult, Source

MOST_BYTES = 64 << 20
_READERS: dict[str, Callable[[Source], Rows | None]] = {
    "IOR": ior.records_of,
    "mdtest": mdtest.records_of,
    "elbencho": elbencho.records_of,
    "fio": fio.records_of,
    "gdsio": gdsio.records_of,
}

__all__ = ["BadResult", "Rows", "read"]


def read(path: Path, node_type: str = "") -> Rows:
    """The records of one file, and the rows that were left out. Raises BadResult, or OSError."""
    try:
        text = atomic_file.read(path, MOST_BYTES).decode("utf-8", "replace")
    except ValueError as error:
        raise BadResult(str(error)) from None
    source = Source.of(path, text, node_type)
    for name, records_of in _READERS.items():
        try:
            rows = records_of(source)
        except (KeyError, TypeError, ValueError, IndexError, AttributeError, ArithmeticError) as error:
            raise BadResult(
                f"it looks like a result of {name}, but is not complete: {type(error).__name__}: {error}"
            ) from None
        if rows is None:
            continue
        if not rows.records and rows.omitted:
            reasons = "; ".join(rows.omitted[:3])
            raise BadResult(f"it is output of {name}, but no row of it can be a record: {reasons}")
        if not rows.records:
            raise BadResult(f"it is output of {name} without a result: did the run end early?")
        return rows
    raise BadResult(f"it is not a result of {', '.join(_READERS)}")
