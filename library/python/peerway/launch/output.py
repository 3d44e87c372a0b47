"""Pass the output of the ranks to the launcher's own streams as it comes, in whole lines and tracebacks."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import selectors
import termios
import time
import tty
from typing import TYPE_CHECKING

from peerway.launch.lines import Lines
from peerway.launch.sink import Sink
from peerway.launch.tracebacks import Traceback

if TYPE_CHECKING:
    from collections.abc import Iterable

QUIET = 0.2  # after so many seconds without another byte, an incomplete line is shown
LONGEST_WAIT = 1.0  # the most seconds that a traceback waits for equal ones of other ranks
_REMEMBERED = 64  # the most tracebacks of one sink that are remembered, and not shown a second time


class Stream:
    """One stream that a rank writes to."""

    def __init__(self, source: int, rank: int, sink: Sink) -> None:
        self.source, self.rank, self.sink = source, rank, sink
        self.lines = Lines()
        self.open = True
        self.read = False  # whether the selector watches it

    def chunk(self) -> bytes:
        """Read what is available; b"" at the end."""
        try:
            return os.read(self.source, 1 << 16)
        except OSError as error:  # a terminal whose other side is closed
            if error.errno != errno.EIO:
                raise
            return b""


class Output:
    """The output of all ranks. If both streams of the launcher are the same file, so are those of each rank,
    so that what a rank writes to them stays in its order.
    """

    def __init__(self, selector: selectors.BaseSelector, prefix: bool, tracebacks: bool) -> None:
        self._selector, self._prefix, self._all = selector, prefix, tracebacks
        self._streams: list[Stream] = []
        self._shown: dict[tuple[Sink, bytes], int] = {}
        self._sinks: dict[int, Sink] = {}
        for descriptor in (1, 2):
            with contextlib.suppress(OSError):  # it may be closed
                same = descriptor == 2 and 1 in self._sinks and os.path.sameopenfile(1, 2)
                self._sinks[descriptor] = self._sinks[1] if same else Sink(descriptor, selector)
        self.interrupted = False  # the user asked for the end, so KeyboardInterrupt of ranks is not shown
        self.left_out: set[int] = set()  # the ranks whose tracebacks were not shown

    # ---- streams ----

    def connect(self, rank: int) -> dict[int, int]:
        """Make the streams of a rank; return the descriptors that it gets as 1 and 2, which must then be
        closed here.
        """
        ends: dict[Sink, int] = {}
        for sink in self._sinks.values():
            if sink not in ends:
                source, ends[sink] = _terminal(sink) if os.isatty(sink.descriptor) else os.pipe()
                stream = Stream(source, rank, sink)
                self._streams.append(stream)
                self._listen(stream, not sink.full)
        return {descriptor: ends[sink] for descriptor, sink in self._sinks.items()}

    def _listen(self, stream: Stream, wanted: bool) -> None:
        if stream.open and wanted != stream.read:
            stream.read = wanted
            if wanted:
                self._selector.register(stream.source, selectors.EVENT_READ, lambda: self._pump(stream))
            else:
                self._selector.unregister(stream.source)

    def _pump(self, stream: Stream) -> None:
        if not stream.open:
            return
        chunk = b"" if stream.sink.error else stream.chunk()
        if not chunk:
            self._listen(stream, False)
            stream.open = False
            os.close(stream.source)  # if the launcher's stream has no reader, the rank's next write must fail
        for piece in stream.lines.feed(chunk, time.monotonic()):
            self._show(stream, piece)

    def drain(self, rank: int) -> None:
        """Read the rest of the streams of a rank that has ended."""
        for stream in (source for source in self._of(rank) if source.open):
            there = select.poll()
            there.register(stream.source, select.POLLIN)
            while stream.open and there.poll(0):
                self._pump(stream)

    def _of(self, rank: int) -> list[Stream]:
        return [stream for stream in self._streams if stream.rank == rank]

    # ---- showing ----

    def _show(self, stream: Stream, piece: bytes | Traceback) -> None:
        if isinstance(piece, bytes):
            stream.sink.write(piece, stream, self._mark(stream))
            return
        text = piece.text
        same = [stream.rank] if text.endswith(b"\n") else []
        for other in self._streams:
            held = other.lines.traceback
            if same and other.sink is stream.sink and held and held.whole and held.text == text:
                other.lines.traceback = None
                same.append(other.rank)
        first = self._shown.get((stream.sink, text)) if same else None
        if first is None or first == stream.rank:  # a repetition by the same rank is shown
            stream.sink.write(text, stream, self._mark(stream))
            if same:
                self._shown[stream.sink, text] = first = stream.rank
                if len(self._shown) > _REMEMBERED:
                    del self._shown[next(iter(self._shown))]
        others = [rank for rank in same if rank != first]
        if others:
            note = f"peerway: {names(others)} wrote the same traceback as rank {first}\n"
            stream.sink.write(note.encode(), frozenset({*same, first}))

    def _mark(self, stream: Stream) -> bytes:
        return f"[{stream.rank}] ".encode() if self._prefix else b""

    def say(self, text: str) -> None:
        """Print a message of the launcher itself."""
        if 2 in self._sinks:
            self._sinks[2].write(f"peerway: {text}\n".encode(), self)

    def quote(self, rank: int, line: bytes) -> None:
        """Show again a line that a rank wrote."""
        if 2 in self._sinks:
            self._sinks[2].write(line.rstrip(b"\n") + b"\n", self, f"  [{rank}] ".encode())

    @property
    def said_last(self) -> bool:
        """Whether the launcher itself was the last to write an error."""
        return 2 in self._sinks and self._sinks[2].last_writer is self

    def stands_above(self, rank: int) -> bool:
        """Whether the rank's last output is right above the next message of the launcher, even as part of a
        traceback shared with other ranks.
        """
        last = self._sinks[2].last_writer if 2 in self._sinks else None
        return rank in last if isinstance(last, frozenset) else last in self._of(rank)

    def last_lines(self, rank: int, count: int) -> list[bytes]:
        """The last lines of a rank: of its errors, or of its output if it wrote no errors."""
        for stream in reversed(self._of(rank)):
            if lines := stream.lines.last(count):
                return lines
        return []

    # ---- time ----

    def due(self) -> float | None:
        """When `advance` must be called."""
        return min(self._due().values(), default=None)

    def _due(self) -> dict[Stream, float]:
        """When each stream shows what it holds back, so that equal tracebacks that come together are shown
        together.
        """
        held = [
            source
            for source in self._streams
            if source.lines.holds and not (self._withheld(source) and source.open)
        ]
        newest: dict[bytes, float] = {}
        for stream in held:
            text = stream.lines.like
            newest[text] = max(newest.get(text, 0.0), stream.lines.since)
        return {
            stream: min(newest[stream.lines.like], stream.lines.since + LONGEST_WAIT) + QUIET
            if stream.lines.like
            else stream.lines.since + QUIET
            for stream in held
        }

    def _withheld(self, stream: Stream) -> bool:
        traceback = stream.lines.traceback
        return self.interrupted and not self._all and traceback is not None and traceback.of_interrupt

    def advance(self, now: float) -> None:
        """Show what was held back long enough; read from the ranks again once the launcher's output takes
        more.
        """
        for stream in self._streams:
            self._listen(stream, not stream.sink.full)
        for stream, moment in self._due().items():
            if moment <= now:
                self._let_go(stream)

    def show_all_of(self, rank: int) -> None:
        """Show what is held back of a rank that has ended."""
        for stream in self._of(rank):
            self._let_go(stream)

    def _let_go(self, stream: Stream) -> None:
        if self._withheld(stream):
            stream.lines.traceback = None
            self.left_out.add(stream.rank)
        for piece in stream.lines.let_go():
            self._show(stream, piece)

    # ---- end ----

    @property
    def unfinished(self) -> bool:
        """Whether something remains to be read or written."""
        return any(stream.open for stream in self._streams) or self.pending

    @property
    def pending(self) -> bool:
        """Whether the reader of the launcher's own streams is slower than the ranks."""
        return any(sink.pending for sink in self._sinks.values())

    def finish(self) -> None:
        """Show what remains of streams that have ended."""
        for stream in self._streams:
            self._let_go(stream)

    def errors(self) -> list[str]:
        """Report what could not be written, and why. A closed reader is not an error, as for any program."""
        result = {sink: sink.error for sink in self._sinks.values() if sink.error}
        return [
            f"{'standard output' if sink.descriptor == 1 else 'standard error'} cannot be written: "
            f"{error.strerror}; what the ranks wrote to it from then on is lost"
            for sink, error in result.items()
            if not isinstance(error, BrokenPipeError)
        ]


def _terminal(sink: Sink) -> tuple[int, int]:
    """Make a pseudo-terminal of the same size: programs write line by line to a terminal, and with
    colours.
    """
    ours, theirs = os.openpty()
    tty.setraw(theirs)  # nothing is echoed, and \\n stays \\n
    with contextlib.suppress(OSError):
        size = fcntl.ioctl(sink.descriptor, termios.TIOCGWINSZ, bytes(8))
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, size)
    return ours, theirs


def names(ranks: Iterable[int]) -> str:
    """Name ranks: "rank 3", "ranks 0, 2-5"."""
    ordered = sorted(set(ranks))
    spans: list[list[int]] = []
    for rank in ordered:
        if spans and rank == spans[-1][-1] + 1:
            spans[-1] = [spans[-1][0], rank]
        else:
            spans.append([rank, rank])
    texts = [
        str(low) if low == high else f"{low}, {high}" if high == low + 1 else f"{low}-{high}"
        for low, high in spans
    ]
    return ("rank " if len(ordered) == 1 else "ranks ") + ", ".join(texts)
