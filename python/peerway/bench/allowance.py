"""A budget of time for a whole measurement, divided over what is still to be done."""

from __future__ import annotations

import re
import time

LEAST_S = 2e-3  # of samples for one case
OVERHEAD = 2.0  # of a case beside its samples, before any was measured: connections, data, warm-up, check
_UNITS = {"s": 1, "m": 60, "h": 3600}


class Allowance:
    """How long each of the remaining cases may sample. What one leaves is for the others."""

    def __init__(self, ends: float) -> None:
        self._until = time.monotonic() + ends - time.time()
        self._asked = self._took = 0.0

    @property
    def left_s(self) -> float:
        """Seconds until the end."""
        return max(0.0, self._until - time.monotonic())

    def share(self, cases: int) -> float:
        """Seconds of samples for the next of `cases`; 0 when there is no time for it."""
        if self.left_s <= 0:
            return 0.0
        return max(LEAST_S, self.left_s / max(1, cases) / self._stretch())

    def note(self, asked: float, took: float) -> None:
        """What a case took that was given `asked` seconds of samples."""
        self._asked += asked
        self._took += took

    def _stretch(self) -> float:
        return max(1.0, self._took / self._asked) if self._asked else OVERHEAD


def parse_time(text: str) -> float:
    """Read "90", "90s", "5m", "1h30m". Raises ValueError."""
    text = text.strip().lower()
    parts = re.findall(r"(\d+(?:\.\d+)?)([smh]?)", text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"'{text}' is not a time; write 90s, 5m or 1h30m")
    found = sum(float(number) * _UNITS[unit or "s"] for number, unit in parts)
    if not 0 < found <= 7 * 24 * 3600:
        raise ValueError(f"'{text}' is not between a moment and a week")
    return found
