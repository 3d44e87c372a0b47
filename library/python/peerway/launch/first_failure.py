"""Decides which rank failed first, and which failures are only its consequences. All functions are pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# The signals with which users and schedulers end a job.
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class End:
    """How a rank ended. The ends of a job are in the order of time."""

    rank: int
    value: int  # an exit status, or the number of a signal
    by_signal: bool
    ended: bool = False  # the launcher ended it, because another rank had failed
    user_signal: int = 0  # the signal that the user had sent to all ranks before, 0 for none
    lost: frozenset[int] = frozenset()  # the ranks that its last lines give as the reason of its end

    @property
    def code(self) -> int:
        """The exit code as a shell gives it: 128 plus the signal's number if a signal ended it."""
        return 128 + self.value if self.by_signal else self.value

    @property
    def own(self) -> bool:
        """Whether the rank failed although neither the user nor the launcher had asked it to end."""
        return self.code != 0 and not self.ended and not self.as_asked

    @property
    def as_asked(self) -> bool:
        """Whether the rank ended in answer to the user's signal: by that signal, or with a status
        of its own.
        """
        return self.user_signal != 0 and (not self.by_signal or self.value == self.user_signal)


def first_failure(ends: Sequence[End]) -> End | None:
    """The first rank that failed for a reason of its own, not because another had failed; None if there is
    none.
    """
    failed = [end for end in ends if end.own]
    ranks = {end.rank for end in failed}
    causes = (end for end in failed if not end.lost & (ranks - {end.rank}))
    return next(causes, failed[0] if failed else None)


def asked_for(ends: Sequence[End]) -> int:
    """The signal by which the user ended the job; 0 if the ranks ended well, or by themselves."""
    return next((end.user_signal for end in ends if end.code != 0 and end.user_signal), 0)
