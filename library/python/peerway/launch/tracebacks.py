"""Python's tracebacks in the lines of a stream: where one ends, and what its last line says."""

from __future__ import annotations

import re

# Each first line of a traceback has one of these, so that other output is searched quickly.
_SIGNS = (b"Traceback (most recent call last):", b"Exception ignored ", b"Exception in thread ")
_BEGINS = re.compile(
    rb"(?:  \+ )?(?:Exception Group )?Traceback \(most recent call last\):|Exception (?:ignored |in thread )"
)
_CHAINS = (b"During handling of the above exception,", b"The above exception was the direct cause of")
# The exception of an interrupted rank, and those that its end causes in others.
_INTERRUPTS = re.compile(rb"KeyboardInterrupt\b|(?:[\w.]+\.)?(?:Interrupted|PeerLost): ")
# The texts of team/losses.cpp and team/bootstrap_server.cpp. A rank that raises leaves the team in good
# order, before others see that it failed.
_LOST = re.compile(
    rb"\brank (\d+) (?:is lost|was lost|left the team|has left the team|ended \d)"
    rb"|\brank (\d+) was interrupted in a collective\b"
)


def may_have_one(text: bytes) -> bool:
    """Tell whether a traceback may begin in these lines."""
    return any(sign in text for sign in _SIGNS)


def begins_one(line: bytes) -> bool:
    """Tell whether this line begins a traceback."""
    return _BEGINS.match(line) is not None


def lost_ranks(last_lines: list[bytes]) -> frozenset[int]:
    """The ranks that these lines, the last ones of a rank, give as the reason of its end."""
    result = _LOST.finditer(b"\n".join(last_lines[-3:]))
    return frozenset(int(match[1] or match[2]) for match in result)


class Traceback:
    """Collects the lines of a traceback as they come."""

    def __init__(self, line: bytes) -> None:
        self._lines = [line]
        self.whole = False  # the line with the exception was read; more lines of its text may follow
        self.bytes = len(line)
        self._last = line

    def take(self, line: bytes) -> bool:
        """Add a line; False if it does not belong to this traceback, which is then complete."""
        if line.startswith((*_CHAINS, *_SIGNS[1:])):
            self.whole = False
        elif line.strip() and line[:1] not in b" \t":
            if self.whole:
                return False
            if not begins_one(line):
                self.whole, self._last = True, line
        self._lines.append(line)
        self.bytes += len(line)
        return True

    @property
    def text(self) -> bytes:
        """All its lines."""
        return b"".join(self._lines)

    @property
    def of_interrupt(self) -> bool:
        """Whether it says only that the program was interrupted, or that another rank was lost."""
        return self.whole and _INTERRUPTS.match(self._last) is not None
