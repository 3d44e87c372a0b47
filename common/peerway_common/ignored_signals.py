"""Which signals somebody wants ignored."""

from __future__ import annotations

import signal


def told_to_ignore(number: signal.Signals) -> bool:
    """Whether whoever started this process wants it to ignore the signal, as nohup does SIGHUP.

    SIGINT and SIGTERM are never: shells without job control ignore SIGINT for each command in the background,
    which is nobody's wish. A `kill -INT` from a script would do nothing.
    """
    return number not in (signal.SIGINT, signal.SIGTERM) and signal.getsignal(number) == signal.SIG_IGN
