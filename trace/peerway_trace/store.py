"""A trace on disk, and in memory: columns of events (events.parquet), sums (sums.parquet), and trace.json
with what the columns refer to and what was lost.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from peerway_common import atomic_file
from peerway_common.printable import shell_word

EVENTS, SUMS, ABOUT = "events.parquet", "sums.parquet", "trace.json"
VERSION = 1
FIRST_STREAM = 0x40000000  # thread numbers from here on are streams of GPUs
COLUMNS = {
    "begin": np.int64, "duration": np.int64, "bytes": np.int64, "thread": np.int32, "peer": np.int32,
    "tag": np.int32, "name": np.int32, "where": np.int32, "site": np.int32, "kind": np.uint8,
}  # fmt: skip
SUM_COLUMNS = {
    "thread": np.int32, "name": np.int32, "where": np.int32, "site": np.int32, "peer": np.int32,
    "size_class": np.int32, "count": np.int64, "bytes": np.int64, "ns": np.int64,
}  # fmt: skip


class BadTrace(Exception):
    """The folder has no trace, or one that cannot be read; the message says so."""


@dataclass(frozen=True)
class Thread:
    """A thread as one recorder saw it; the column `thread` is an index into the list of threads."""

    rank: int
    host: str
    pid: int
    tid: int
    source: str  # core, program, gpu, or an MPI: openmpi, mpich, mpi
    thread: str  # its name
    events: int
    overwritten: int
    cut: int
    unnamed: int
    uncounted: int
    too_deep: int


@dataclass(frozen=True)
class Open:
    """An operation that a thread had begun and never ended: where the thread was when it was killed."""

    thread: int
    name: str
    kind: int
    begin: int
    peer: int
    bytes: int


@dataclass
class Trace:
    """A whole trace. Times are nanoseconds since its beginning, on one clock."""

    about: dict[str, Any]
    names: list[str]
    threads: list[Thread]
    columns: dict[str, NDArray[Any]]
    sums: dict[str, NDArray[Any]] = field(default_factory=dict)
    open: list[Open] = field(default_factory=list)

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self.columns[column]

    def __len__(self) -> int:
        return len(self.columns["begin"])

    @property
    def rank(self) -> NDArray[Any]:
        """The rank of each event."""
        ranks: NDArray[Any] = np.array([thread.rank for thread in self.threads] or [0], np.int32)
        return np.asarray(ranks[self.columns["thread"]])

    @property
    def ranks(self) -> list[int]:
        """The ranks that recorded, without processes that have no rank."""
        return sorted({thread.rank for thread in self.threads if thread.rank >= 0})

    @property
    def length(self) -> int:
        """The time from the beginning to the end of the last event, in ns; 0 if there is none."""
        return int((self["begin"] + self["duration"]).max(initial=0))

    @property
    def dropped(self) -> int:
        """The number of events that were recorded and are not in the trace."""
        return sum(thread.overwritten + thread.cut for thread in self.threads)

    def where(self, mask: NDArray[Any]) -> Trace:
        """A trace with only these events."""
        columns = {name: column[mask] for name, column in self.columns.items()}
        return Trace(self.about, self.names, self.threads, columns, self.sums, self.open)


class Writer:
    """Writes a trace's events piece by piece, so that no more than one thread's are in memory."""

    def __init__(self, folder: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._folder = folder
        self._schema = pa.schema(
            [(name, pa.from_numpy_dtype(np.dtype(kind))) for name, kind in COLUMNS.items()]
        )
        # Times increase, so they are stored as differences; other columns have few distinct values.
        few = ["thread", "peer", "tag", "name", "where", "site", "kind", "bytes"]
        self._writer = pq.ParquetWriter(
            folder / EVENTS, self._schema, compression="zstd", use_dictionary=few,
            column_encoding={"begin": "DELTA_BINARY_PACKED", "duration": "DELTA_BINARY_PACKED"},
        )  # fmt: skip

    def add(self, columns: dict[str, NDArray[Any]]) -> None:
        """Append events of one thread."""
        import pyarrow as pa

        arrays = [pa.array(columns[name].astype(kind, copy=False)) for name, kind in COLUMNS.items()]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=self._schema), row_group_size=1 << 20)

    def end(
        self,
        about: dict[str, Any],
        names: list[str],
        threads: list[Thread],
        sums: dict[str, NDArray[Any]],
        unended: list[Open],
    ) -> None:
        """Write what is known only after everything was read."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._writer.close()
        table = pa.table({name: pa.array(sums[name].astype(kind)) for name, kind in SUM_COLUMNS.items()})
        pq.write_table(table, self._folder / SUMS, compression="zstd")
        everything = {
            "version": VERSION, **about, "names": names, "threads": [asdict(thread) for thread in threads],
            "open": [asdict(operation) for operation in unended],
        }  # fmt: skip
        atomic_file.replace(self._folder / ABOUT, json.dumps(everything, indent=1) + "\n")


def _columns(file: Path) -> dict[str, NDArray[Any]]:
    """Read one column after the other, so that a large trace is never in memory twice."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {}
    with pq.ParquetFile(file) as opened:
        for name, kind in COLUMNS.items():
            read = opened.read(columns=[name]).column(name).to_numpy()
            columns[name] = np.array(read, kind)  # a copy, which can be written to
            del read
            pa.default_memory_pool().release_unused()
    return columns


def load(folder: Path) -> Trace:
    """Read a trace. Raises BadTrace."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    missing = [name for name in (ABOUT, EVENTS, SUMS) if not (folder / name).exists()]
    if not folder.is_dir():
        raise BadTrace(f"there is no folder {folder}; `peerway trace` names the one that it has written")
    if missing:
        rings = folder / "rings"
        todo = (
            f"; `peerway trace collect {shell_word(folder)}` makes one of its rings" if rings.is_dir() else ""
        )
        raise BadTrace(f"{folder} holds no trace: there is no {missing[0]}{todo}")
    file = folder / ABOUT
    try:
        about = json.loads(file.read_text())
        version = about["version"]
        if version != VERSION:
            raise BadTrace(f"{folder} holds a trace of version {version}; this Peerway reads {VERSION}")
        names, threads, unended = (about.pop(part) for part in ("names", "threads", "open"))
        threads, unended = [Thread(**thread) for thread in threads], [Open(**entry) for entry in unended]
        file = folder / EVENTS
        columns = _columns(file)
        file = folder / SUMS
        sums = pq.read_table(file)
        summed = {name: sums.column(name).to_numpy() for name in SUM_COLUMNS}
    except KeyError as error:
        raise BadTrace(f"{file} cannot be read: {error} is missing") from error
    except (ValueError, TypeError, pa.ArrowException, OSError) as error:
        raise BadTrace(f"{file} cannot be read: {error}") from error
    return Trace(about, names, threads, columns, summed, unended)
