"""Starts and stops the recording of a running job: by a flag in the page of each of its processes, and by a
file for processes that are yet to start. library/include/peerway/trace/recorder/settings.h reads both.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAGIC, STOPPED = b"PWGATE 1", 1


class NoJob(Exception):
    """No job records in this folder; the message says so."""


@dataclass(frozen=True)
class Window:
    """When to record: the seconds from the start of the command (infinite: not until `peerway trace start`),
    and for how long.
    """

    begin: float = 0.0
    seconds: float | None = None


def stop(rings: Path) -> int:
    """Stop recording in all processes; return how many there were. Operations under way are still
    recorded.
    """
    (rings / "stopped").touch()
    return _set(rings, stopped=True)


def start(rings: Path) -> int:
    """Let all processes record."""
    (rings / "stopped").unlink(missing_ok=True)
    return _set(rings, stopped=False)


def _set(rings: Path, *, stopped: bool) -> int:
    count = 0
    for file in rings.glob("*.process"):
        with file.open("r+b") as page, mmap.mmap(page.fileno(), 4096) as memory:
            if memory[:8] != MAGIC:
                continue
            # The low byte belongs to the command; regions count in the other bytes.
            memory[8] = STOPPED if stopped else 0
            count += 1
    return count


def processes(count: int) -> str:
    """A number of processes as the subject of a sentence, with its verb."""
    return "1 process now records" if count == 1 else f"{count:,} processes now record"


def rings_of(folder: Path) -> Path:
    """The rings of a running job. Raises NoJob."""
    rings = folder / "rings"
    if not rings.is_dir():
        raise NoJob(f"no running job records to {folder}: name the folder that `peerway trace -o` has")
    return rings


@contextlib.contextmanager
def kept(rings: Path, window: Window) -> Iterator[None]:
    """While the block runs, record only within the window."""
    over = threading.Event()

    def watch() -> None:
        if window.begin > 0 and over.wait(None if math.isinf(window.begin) else window.begin):
            return
        start(rings)
        if window.seconds is not None and not over.wait(window.seconds):
            stop(rings)

    if window == Window():
        yield
        return
    if window.begin > 0:
        stop(rings)
    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
