"""Keeps batches on disk until the server has them: bounded, in order, safe against kill -9 and power loss.

    spool/stream              128 random bits that identify this spool
    spool/SEQ.frames          frames, the first of them batch SEQ; the newest file is appended to
    spool/refused/SEQ.frames  batches that the server will never accept

`append` returns after fdatasync: a batch is on disk before it is sent and before its sources are forgotten.
A file is removed when all its batches are acknowledged; if the spool is full, the oldest file is removed
first. After a crash the remaining batches are sent again; the server recognises them by their numbers.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import threading
from contextlib import suppress
from pathlib import Path

from peerway_common import atomic_file
from peerway_jobs.frames import HEAD_BYTES, MOST_BODY, MOST_FRAMES, BadFrame, frame, read_frames

FILE_BYTES = 1 << 20
_NAME = re.compile(r"(\d{20})\.frames", re.ASCII)


class Spool:
    """For one writer and one reader, in two threads."""

    def __init__(self, folder: Path, most_bytes: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._most = max(most_bytes, 2 * FILE_BYTES)
        self._lock = threading.Lock()
        self.dropped = 0
        self.stream = self._stream()
        self._counts: dict[int, int] = {}  # first batch of each file -> number of batches in it
        self._sizes: dict[int, int] = {}
        self._acknowledged = 0
        self._open_newest()

    @property
    def next_seq(self) -> int:
        """The number of the next batch."""
        newest = max(self._counts)
        return newest + self._counts[newest]

    def waiting(self) -> int:
        """The number of batches that are not acknowledged."""
        with self._lock:
            first = min(first for first in self._counts)
            return max(0, self.next_seq - max(first, self._acknowledged + 1))

    def append(self, payload: bytes) -> None:
        """Store a batch as number `next_seq`. Raises OSError if the disk has no space even for one batch."""
        data = frame(payload)
        with self._lock:
            while sum(self._sizes.values()) + len(data) > self._most and len(self._sizes) > 1:
                self._drop_oldest()
            try:
                self._put(data)
            except OSError:
                try:
                    if len(self._sizes) == 1:
                        raise
                    self._drop_oldest()
                    self._put(data)
                except OSError:
                    self._skip()
                    raise

    def unsent(self) -> tuple[int, list[bytes]]:
        """The number of the oldest unacknowledged batch, and the frames from it on that fit into a POST."""
        with self._lock:
            for first in sorted(self._counts):
                if first + self._counts[first] - 1 <= self._acknowledged:
                    continue
                skip = max(0, self._acknowledged + 1 - first)
                data = self._path(first).read_bytes()[: self._sizes[first]]
                if frames := _frames_for_post(data, skip):
                    return first + skip, frames
                # The rest of this file is damaged on disk. Skip it, so that it does not hold up the next
                # file.
                self.dropped += self._counts[first] - skip
                self._acknowledged = first + self._counts[first] - 1
            return self.next_seq, []

    def acknowledge(self, seq: int) -> None:
        """The server has stored all batches up to `seq`: remove the files that are done."""
        with self._lock:
            self._acknowledged = max(self._acknowledged, min(seq, self.next_seq - 1))
            newest = max(self._counts)
            for first in [each for each in self._counts if each != newest]:
                if first + self._counts[first] - 1 <= self._acknowledged:
                    self._remove(first)

    def refuse(self, seq: int, data: bytes) -> None:
        """Set aside a batch that the server will never accept; such batches take at most a tenth of the
        spool.
        """
        aside = self._folder / "refused"
        aside.mkdir(exist_ok=True)
        kept = sorted(aside.glob("*.frames"))
        while kept and sum(path.stat().st_size for path in kept) + len(data) > self._most // 10:
            kept.pop(0).unlink()
        (aside / f"{seq:020d}.frames").write_bytes(data)
        self.acknowledge(seq)

    def close(self) -> None:
        """Close the newest file."""
        os.close(self._file)

    # internals; the caller holds the lock, or no other thread exists yet

    def _stream(self) -> str:
        path = self._folder / "stream"
        try:
            stream = path.read_text().strip()
        except OSError:
            stream = ""
        if re.fullmatch(r"[0-9a-f]{32}", stream):
            return stream
        # Without the stream's id, old batches cannot be told from new ones: they are lost.
        for old in self._folder.glob("*.frames"):
            old.unlink()
        atomic_file.replace(path, secrets.token_hex(16) + "\n")
        self._sync_folder()
        return path.read_text().strip()

    def _open_newest(self) -> None:
        for path in sorted(self._folder.glob("*.frames")):
            name = _NAME.fullmatch(path.name)
            if name is None:
                continue
            count, size = _measure(path.read_bytes())
            self._counts[int(name[1])], self._sizes[int(name[1])] = count, size
        if not self._counts:
            self._begin(1)
            return
        newest = max(self._counts)
        self._file = os.open(self._path(newest), os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        os.ftruncate(self._file, self._sizes[newest])  # cut off half a frame that a power loss left
        # The numbers of lost batches are not used again: the server may have these batches.
        if os.fstat(self._file).st_size and not self._counts[newest]:
            self._begin(newest)

    def _begin(self, first: int) -> None:
        before = getattr(self, "_file", None)
        self._file = os.open(
            self._path(first), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600
        )
        if before is not None:
            os.close(before)
        self._counts[first] = self._sizes[first] = 0
        self._sync_folder()

    def _put(self, data: bytes) -> None:
        if self._sizes[max(self._sizes)] + len(data) > FILE_BYTES and self._counts[max(self._counts)]:
            self._begin(self.next_seq)
        self._write(data)

    def _write(self, data: bytes) -> None:
        newest = max(self._counts)
        try:
            written = os.write(self._file, data)
            if written < len(data):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(self._file)
        except OSError:
            os.ftruncate(self._file, self._sizes[newest])
            raise
        self._counts[newest] += 1
        self._sizes[newest] += len(data)

    def _skip(self) -> None:
        """Give the lost batch its number all the same, so that the server sees the gap. If not even an empty
        file can be made, the server sees only the count of dropped batches.
        """
        self.dropped += 1
        newest = max(self._counts)
        with suppress(OSError):
            self._begin(self.next_seq + 1)
            if self._counts[newest] == 0:
                self._remove(newest)

    def _drop_oldest(self) -> None:
        oldest = min(self._counts)
        lost = min(self._counts[oldest], max(0, oldest + self._counts[oldest] - 1 - self._acknowledged))
        self.dropped += lost
        self._remove(oldest)

    def _remove(self, first: int) -> None:
        self._path(first).unlink(missing_ok=True)
        del self._counts[first], self._sizes[first]

    def _path(self, first: int) -> Path:
        return self._folder / f"{first:020d}.frames"

    def _sync_folder(self) -> None:
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _measure(data: bytes) -> tuple[int, int]:
    """The number of good frames, and the offset at which they end."""
    count = size = 0
    try:
        for end, _ in read_frames(data):
            count, size = count + 1, end
    except BadFrame:
        pass
    return count, size


def _frames_for_post(data: bytes, skip: int) -> list[bytes]:
    """The frames after the first `skip` that fit into one POST; they end where the data is damaged."""
    payloads: list[bytes] = []
    total = begin = 0
    with suppress(BadFrame):
        for end, payload in read_frames(data):
            length = HEAD_BYTES + len(payload)
            if skip > 0:
                skip -= 1
            elif len(payloads) == MOST_FRAMES or total + length > MOST_BODY:
                break
            else:
                payloads.append(data[begin:end])
                total += length
            begin = end
    return payloads
