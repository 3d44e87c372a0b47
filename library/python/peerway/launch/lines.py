"""Cut a stream, which comes in chunks of any size, into whole lines and tracebacks."""

from __future__ import annotations

from peerway.launch.tracebacks import Traceback, begins_one, may_have_one

MOST_HELD_BYTES = (
    1 << 20
)  # bytes of one line or traceback that are held back; a longer one is passed on in pieces
KEPT = 4096  # bytes of the end of a stream that are remembered

Piece = bytes | Traceback


class Lines:
    """The lines of one stream. `since` is when the last part of the text that is held back arrived."""

    def __init__(self) -> None:
        self._begun = bytearray()  # a line without its end
        self._shown = False  # the beginning of that line has been passed on
        self.traceback: Traceback | None = None
        self.since = 0.0
        self._tail = b""

    @property
    def holds(self) -> bool:
        """Whether text is held back."""
        return bool(self._begun) or self.traceback is not None

    @property
    def like(self) -> bytes:
        """A whole traceback that is held back, for comparison with others; b"" if there is none."""
        return self.traceback.text if self.traceback is not None and self.traceback.whole else b""

    def feed(self, chunk: bytes, now: float) -> list[Piece]:
        """Take a chunk; return what can be shown at once, in order. Only \\n ends a line."""
        self.since = now
        self._tail = (self._tail + chunk)[-KEPT:] if len(chunk) < KEPT else chunk[-KEPT:]
        self._begun += chunk
        end = self._begun.rfind(b"\n") + 1
        ready = bytes(self._begun[:end])
        del self._begun[:end]
        pieces: list[Piece] = []
        if self._shown and ready:  # the rest of a line: no traceback begins in it
            rest = ready.index(b"\n") + 1
            pieces.append(ready[:rest])
            ready = ready[rest:]
            self._shown = False
        if self.traceback is None and not may_have_one(ready):
            pieces.append(ready)
        else:
            self._search(ready, pieces)
        if len(self._begun) >= MOST_HELD_BYTES:
            pieces += self.let_go()
        return [piece for piece in pieces if piece]

    def _search(self, ready: bytes, pieces: list[Piece]) -> None:
        for text in ready.split(b"\n")[:-1]:
            line = text + b"\n"
            if self.traceback is not None:
                if self.traceback.bytes < MOST_HELD_BYTES and self.traceback.take(line):
                    continue
                pieces.append(self.traceback)
                self.traceback = None
            if begins_one(line):
                self.traceback = Traceback(line)
            else:
                pieces.append(line)

    def let_go(self) -> list[Piece]:
        """Return the text that is held back, because it was held long enough or nothing follows."""
        pieces: list[Piece] = [] if self.traceback is None else [self.traceback]
        self.traceback = None
        if self._begun:
            pieces.append(bytes(self._begun))
            self._begun.clear()
            self._shown = True
        return pieces

    def last(self, count: int) -> list[bytes]:
        """The last lines of the stream that are not empty."""
        lines = self._tail.split(b"\n")
        whole = lines if len(self._tail) < KEPT else lines[1:] or lines
        return [line for line in whole if line.strip()][-count:]
