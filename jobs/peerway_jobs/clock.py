"""Decides under which time samples are filed when a node's clock is wrong or was set. It does no I/O.

A batch carries its node's wall clock and the time since boot (CLOCK_BOOTTIME), which nobody can set. A POST
carries both as of the moment of sending. If the node's wall clock agrees with the server's, it is used
unchanged, so late and repeated batches get the same times whenever they arrive. If it does not agree, the age
of a batch of the same boot is computed from the time since boot alone.

A POST that is delayed on its way looks like a slow clock. But a delay can only add to the difference between
the server's clock and the time since boot. So the smallest difference in several POSTs is the one without
delay.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass

_COMPARED = 30  # POSTs: five minutes of a node that sends every 10 s
AGREES_MS = 2_000  # NTP keeps nodes within milliseconds; a network may delay a POST by this much
AGREES_S = AGREES_MS / 1000

_SENT = re.compile(r"wall_ms=(\d{1,15}), mono_ms=(\d{1,15}), boot=([0-9a-f-]{36})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Sent:
    """The header Peerway-Sent: the node's clocks when it sent the POST."""

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
    """Estimates when each node's POSTs would have arrived without delay.

    Only the last POSTs of a boot are compared, because clocks drift apart. The difference that an earlier run
    of the server saved counts as the first one.
    """

    def __init__(self) -> None:
        self._differences: dict[str, tuple[str, deque[int]]] = {}

    def knows(self, node: str) -> bool:
        """Whether a POST of this node has arrived before."""
        return node in self._differences

    def begin(self, node: str, boot: str, difference: int) -> None:
        """Set what an earlier run of the server saved about a node."""
        self._differences[node] = boot, deque([difference], _COMPARED)

    def undelayed_ms(self, node: str, sent: Sent, received_ms: int) -> int:
        """When a POST that arrived at `received_ms` would have arrived without delay (ms since 1970)."""
        boot, last = self._differences.get(node, ("", deque[int]()))
        agrees = abs(received_ms - sent.wall_ms) <= AGREES_MS
        if boot != sent.boot or (len(last) == 1 and agrees):  # the server's own clock may have been set
            last = deque(maxlen=_COMPARED)
            self._differences[node] = sent.boot, last
        last.append(received_ms - sent.mono_ms)
        return min(last) + sent.mono_ms

    def least(self, node: str) -> tuple[str, int]:
        """The boot and the smallest difference (ms) of a node that has sent a POST, to be saved."""
        boot, last = self._differences[node]
        return boot, min(last)


def correction_ms(wall_ms: int, mono_ms: int, boot: str, sent: Sent, received_ms: int) -> int:
    """What to add to all times of a batch (ms); 0 if the node's clock agrees with the server's.

    A batch of an earlier boot cannot be dated by the time since boot. It is shifted by the clock's present
    error, which is the best estimate.
    """
    wrong = received_ms - sent.wall_ms
    if boot != sent.boot:
        return 0 if abs(wrong) <= AGREES_MS else wrong
    # The clock may have been wrong when the batch was made and be right now, or the other way round.
    true_ms = received_ms - (sent.mono_ms - mono_ms)
    return 0 if abs(true_ms - wall_ms) <= AGREES_MS else true_ms - wall_ms
