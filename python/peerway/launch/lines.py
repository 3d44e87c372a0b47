"""Prefixing the lines of a stream of bytes without changing them."""

from __future__ import annotations

LONGEST = 1 << 20  # bytes of one line that are held back; a longer line is passed on in pieces


class Prefixer:
    """Turns chunks of a stream into whole lines with a prefix each, so that lines of ranks never mix."""

    def __init__(self, prefix: bytes) -> None:
        self._prefix = prefix
        self._held = bytearray()
        self._inside = False  # the beginning of the line that is held was passed on already

    def feed(self, chunk: bytes) -> bytes:
        """Take in a chunk and return what can be written now."""
        self._held += chunk
        end = self._held.rfind(b"\n") + 1
        if end == 0 and len(self._held) < LONGEST:
            return b""
        if end == 0:
            end = len(self._held)
        ready = bytes(self._held[:end])
        del self._held[:end]
        return self._mark(ready)

    def finish(self) -> bytes:
        """Return the last line, which had no end; it gets one, so that the next writer starts a line."""
        ready = bytes(self._held)
        self._held.clear()
        if not ready:
            return b"\n" if self._inside else b""
        return self._mark(ready) + b"\n"

    def _mark(self, ready: bytes) -> bytes:
        # Only \n ends a line: a progress bar's \r stays inside one.
        lines = ready.split(b"\n")
        last = lines.pop()
        marked = b"".join(
            (b"" if index == 0 and self._inside else self._prefix) + line + b"\n"
            for index, line in enumerate(lines)
        )
        if last:
            marked += (b"" if self._inside and not lines else self._prefix) + last
        self._inside = bool(last)
        return marked
