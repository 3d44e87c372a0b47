"""Ends a program that holds a virtual cluster: the first signal ends it, and later ones do not disturb the
clean-up.
"""

from __future__ import annotations

import signal
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def end_at_first_signal() -> None:
    """Let the first of Ctrl-C, SIGTERM and a closed terminal raise KeyboardInterrupt, and ignore the rest."""
    for number in _SIGNALS:  # SIGINT is ignored in programs that a script starts with "&"
        signal.signal(number, _end)


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


def _end(_number: int, _frame: FrameType | None) -> None:
    ignore_signals()
    raise KeyboardInterrupt
