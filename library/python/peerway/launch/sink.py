"""One of the launcher's own streams, to which the output of all ranks goes without mixing lines."""

from __future__ import annotations

import os
import select
import selectors
import stat

_PIECE = select.PIPE_BUF  # how much a pipe takes without blocking, if it takes anything
_FULL = 1 << 16  # while more bytes wait to be written, nothing is read from the ranks


class Sink:
    """A file, pipe or terminal. Writing never blocks the launcher, which must pass signals on."""

    def __init__(self, descriptor: int, selector: selectors.BaseSelector) -> None:
        self.descriptor = descriptor
        self.last_writer: object = None
        self.error: OSError | None = None  # why nothing more can be written
        self._selector = selector
        self._held = bytearray()
        self._inside: object = None  # the writer of a line that is not complete yet
        self._waiting = False
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLOUT)
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        self._piece = _FULL if regular else _PIECE

    @property
    def full(self) -> bool:
        """Whether its reader is slower than the ranks."""
        return len(self._held) >= _FULL

    @property
    def pending(self) -> bool:
        """Whether text waits to be written."""
        return bool(self._held)

    def write(self, text: bytes, writer: object, prefix: bytes = b"") -> None:
        """Write text, each line with the prefix. If somebody else has begun a line, that line is ended
        first.
        """
        if not text:
            return
        if self._inside is not None and self._inside is not writer:
            self._held += b"\n"
            self._inside = None
        ended = text.endswith(b"\n")
        if prefix:
            body = (text[:-1] if ended else text).replace(b"\n", b"\n" + prefix)
            text = (b"" if self._inside is writer else prefix) + body + (b"\n" if ended else b"")
        self._inside = None if ended else writer
        self.last_writer = writer
        self._held += text
        self.pump()

    def pump(self) -> None:
        """Write as much as the stream takes now."""
        while self._held and self.error is None and self._poll.poll(0):
            try:
                del self._held[: os.write(self.descriptor, self._held[: self._piece])]
            except BlockingIOError:
                break
            except OSError as error:
                self.error = error
        if self.error is not None:
            self._held.clear()
        if bool(self._held) != self._waiting:
            self._waiting = not self._waiting
            if self._waiting:
                self._selector.register(self.descriptor, selectors.EVENT_WRITE, self.pump)
            else:
                self._selector.unregister(self.descriptor)
