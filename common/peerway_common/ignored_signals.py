"""Tells which signals the starter of this process wants it to ignore."""

from __future__ import annotations

import signal


def told_to_ignore(number: signal.Signals) -> bool:
    """Whether this process was started so that it ignores the signal, as nohup does with SIGHUP.

    SIGINT and SIGTERM never count. Shells without job control ignore SIGINT for every command in the
    background, which nobody intends: `kill -INT` in a script would then do nothing.
    """
    return number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) == signal.SIG_IGN
