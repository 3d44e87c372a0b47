"""Which time samples are filed under when a node's clock is wrong or was set. Pure, used by the server.

A batch carries the wall clock of its node and the time since boot (CLOCK_BOOTTIME), which no one sets. A
POST says both for the moment of sending. Where the node's wall clock agrees with the server's, it is taken
as it is: late and repeated batches then get the same time whenever they arrive. Where it does not, the age
of a batch of the same boot is told by the time since boot alone.

A POST that is long on its way looks like a clock that is slow. But a delay only ever adds, and no one sets
the time since boot: the least of its differences from the server's clock in several POSTs is that without
delay.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

_COMPARED = 30  # POSTs: five minutes of a node that sends each 10 s
AGREES_MS = 2_000  # NTP keeps nodes within milliseconds; a network may delay a POST by this
AGREES_S = AGREES_MS / 1000

_SENT = re.compile(r"wall_ms=(\d{1,15}), mono_ms=(\d{1,15}), boot=([0-9a-f-]{36})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sent:
    """The header Peerway-Sent: the node's clocks when the POST left it."""

    wall_ms: int
    mono_ms: int
    boot: str

    def header(self) -> str:
        """The header's value."""
        return f"wall_ms={self.wall_ms}, mono_ms={self.mono_ms}, boot={self.boot}"

    @classmethod
    def parse(cls, text: str) -> Sent:
        """Read the header's value. Raises ValueError."""
        match = _SENT.fullmatch(text)
        if match is None:
            raise ValueError("Peerway-Sent is not wall_ms=N, mono_ms=N, boot=UUID")
        return cls(int(match[1]), int(match[2]), match[3])


class Arrivals:
    """When the POSTs of each node would have come without delay. The last ones of a boot are compared, so
    that clocks may drift apart; what an earlier run of the server knew of a node counts as the first.
    """

    def __init__(self) -> None:
        self._differences: dict[str, tuple[str, deque[int]]] = {}

    def knows(self, node: str) -> bool:
        """Whether it has come before."""
        return node in self._differences

    def begin(self, node: str, boot: str, difference: int) -> None:
        """What an earlier run of the server knew of a node."""
        self._differences[node] = boot, deque([difference], _COMPARED)

    def undelayed_ms(self, node: str, sent: Sent, received_ms: int) -> int:
        """When a POST would have come that came at `received_ms`."""
        boot, last = self._differences.get(node, ("", deque[int]()))
        agrees = abs(received_ms - sent.wall_ms) <= AGREES_MS
        if boot != sent.boot or (len(last) == 1 and agrees):  # the server's own clock may have been set
            last = deque(maxlen=_COMPARED)
            self._differences[node] = sent.boot, last
        last.append(received_ms - sent.mono_ms)
        return min(last) + sent.mono_ms

    def least(self, node: str) -> tuple[str, int]:
        """The boot and the least difference of a node that has come: what is to be kept of it."""
        boot, last = self._differences[node]
        return boot, min(last)


def correction_ms(wall_ms: int, mono_ms: int, boot: str, sent: Sent, received_ms: int) -> int:
    """What to add to all times of a batch; 0 for a node whose clock agrees with the server's.

    A batch of an earlier boot cannot be dated by the time since boot: it is shifted by as much as the clock
    is wrong now, which is the best that is known.
    """
    wrong = received_ms - sent.wall_ms
    if boot != sent.boot:
        return 0 if abs(wrong) <= AGREES_MS else wrong
    # The clock may be right now and have been wrong when the batch was made, or the other way round.
    true_ms = received_ms - (sent.mono_ms - mono_ms)
    return 0 if abs(true_ms - wall_ms) <= AGREES_MS else true_ms - wall_ms
