"""Ends a program that holds a virtual cluster: the first signal ends it, and later ones do not disturb the
clean-up.

Python drops an exception that a signal handler raises during a callback, such as those around a fork. So the
handler also records the signal, and what waits calls `check_ended`.
"""

from __future__ import annotations

import signal
import time
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_received: list[int] = []


def end_at_first_signal() -> None:
    """Let the first of Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt, and ignore the rest."""
    for number in _SIGNALS:  # SIGINT is ignored in programs that a script starts with "&"
        signal.signal(number, _end)


def check_ended() -> None:
    """Raise KeyboardInterrupt if a signal came and its own KeyboardInterrupt was dropped."""
    if _received:
        raise KeyboardInterrupt


def wait_for_end() -> None:
    """Wait for the first signal, which raises KeyboardInterrupt."""
    while True:
        check_ended()
        time.sleep(1)


def hold_signals() -> None:
    """Block signals until `release_signals`, so that everything started meanwhile is known to the
    clean-up.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)


def release_signals() -> None:
    """Unblock signals; a pending one takes effect here."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def ignore_signals() -> None:
    """Ignore further signals during the clean-up."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def _end(number: int, _frame: FrameType | None) -> None:
    _received.append(number)
    ignore_signals()
    raise KeyboardInterrupt
