"""How a program that holds a virtual cluster ends: the first signal ends it, later ones do not disturb its
cleaning up.
"""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_first_signal() -> None:
    """Let the first of Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt, and ignore the rest."""
    for number in _SIGNALS:  # the first is ignored where a script began this with "&"
        signal.signal(number, _end)


def _end(_number: int, _frame: FrameType | None) -> None:
    for each in _SIGNALS:
        signal.signal(each, signal.SIG_IGN)
    raise KeyboardInterrupt
