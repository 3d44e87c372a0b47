"""A file with results of another tool, and the records made from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from peerway import _core
from peerway_measure.records import Record
from peerway_measure.storage.imports.rows import above_zero, line_of, read_json

UNKNOWN = "unknown"
MIB = 1 << 20


class BadResult(ValueError):
    """No record can be made from the file; the message says why."""


@dataclass(frozen=True)
class Source:
    """The text of a file, and its JSON if it is JSON. If the result has no time, that of the file is used."""

    text: str
    data: Any
    time: str
    node_type: str

    @classmethod
    def of(cls, path: Path, text: str, node_type: str) -> Source:
        """The source of a file: its text, and the time of its last change."""
        changed = datetime.fromtimestamp(path.stat().st_mtime, UTC)
        return cls(text, read_json(text), _spelled(changed), node_type)

    def line(self, row: object) -> Callable[[], int]:
        """The line of an object of the JSON. It is searched only on request."""
        return lambda: line_of(self.text, self.data, row)

    def record(
        self,
        tool: str,
        test: str,
        op: str,
        shape: str,
        *,
        size: int,
        streams: int,
        seconds: float,
        messages: int = 1,
        source: str = "",
        host: str = "",
        time: float = 0,
        p99_s: float | None = None,
        min_s: float | None = None,
        iterations: int = 1,
        extra: Mapping[str, Any] | None = None,
    ) -> Record:
        """One result: `streams` streams moved `size` bytes each, or did `messages` operations each, in
        `seconds`. Raises BadRow, and RecordError.
        """
        each_us = above_zero(seconds, "its time") * 1e6 / messages
        rate = streams * 1e6 / each_us
        memory = source or "host"
        ends = ("file", memory) if op in ("read", "stat") else (memory, "file")
        kept = (
            {"imported": True} | ({"node_type": self.node_type} if self.node_type else {}) | dict(extra or {})
        )
        if op == "read":
            kept |= {"state": UNKNOWN, "state_proved": False, "state_proof": f"{tool} does not say"}
        return Record(
            test=test,
            via=tool,
            op=op,
            shape=shape,
            bytes=size,
            ranks=streams,
            source=ends[0],
            target=ends[1],
            iterations=iterations,
            p50_us=each_us,
            p99_us=max(each_us, (p99_s or 0) * 1e6 / messages),
            min_us=min(each_us, min_s * 1e6 / messages) if min_s is not None else each_us,
            mean_us=each_us,
            bandwidth_MBps=size * rate / 1e6,
            messages_per_s=rate,
            validated=False,
            cpu_percent=None,
            host=host or UNKNOWN,
            device="",
            driver="",
            version=_core.version(),
            time=_spelled(datetime.fromtimestamp(time, UTC)) if time else self.time,
            extra=kept,
        )


def moved(op: str) -> str:
    """The name of a test that moves whole files. For a read the state of the caches is unknown."""
    return "file_write_bw" if op == "write" else f"file_read_{UNKNOWN}_bw"


def _spelled(when: datetime) -> str:
    return when.strftime("%Y-%m-%dT%H:%M:%SZ")
