"""Ends a measurement in the same way on Ctrl-C, SIGTERM and SIGHUP."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from peerway_common.ignored_signals import told_to_ignore

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Ended(BaseException):
    """The user or the system ended the command. `code` is the exit code for that."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.name = signal.Signals(number).name
        self.code = 128 + number


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """While the block runs, such a signal raises Ended, but only the first one, so that the clean-up is not
    interrupted. Signals that this process was told to ignore (SIGHUP by nohup) stay ignored.
    """

    def end(number: int, _: Any) -> NoReturn:
        for each in caught:
            signal.signal(each, signal.SIG_IGN)
        raise Ended(number)

    caught = [number for number in ENDING if not told_to_ignore(number)]
    before = {number: signal.signal(number, end) for number in caught}
    try:
        yield
    except Ended:
        raise  # later signals stay ignored until the process has ended
    except BaseException:
        _restore(before)
        raise
    else:
        _restore(before)


def _restore(before: dict[signal.Signals, Any]) -> None:
    for number, handler in before.items():
        signal.signal(number, handler)
