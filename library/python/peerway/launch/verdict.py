"""Which rank's failure was the first, and which others are only its consequence. Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)  # what users and schedulers end a job with


@dataclass(frozen=True)
class End:
    """How a rank ended. Those of a job are in the order of time."""

    rank: int
    value: int  # an exit status, or the number of a signal
    by_signal: bool
    ended: bool = False  # the launcher ended it, because of another
    user_signal: int = 0  # the signal that the user had sent to all ranks before, by which they end
    lost: frozenset[int] = frozenset()  # the ranks whose end its last lines give as the reason

    @property
    def code(self) -> int:
        """As a shell gives it: 128 and the signal's number for a death by signal."""
        return 128 + self.value if self.by_signal else self.value

    @property
    def own(self) -> bool:
        """Whether it failed, and neither the user nor the launcher had asked it to end."""
        return self.code != 0 and not self.ended and not self.as_asked

    @property
    def as_asked(self) -> bool:
        """Whether this is how a rank ends that was asked to: by that signal, or with a status of its own."""
        return self.user_signal != 0 and (not self.by_signal or self.value == self.user_signal)


def first_failure(ends: Sequence[End]) -> End | None:
    """Find the first rank that failed, and not because another had; None when none did."""
    failed = [end for end in ends if end.own]
    ranks = {end.rank for end in failed}
    causes = (end for end in failed if not end.lost & (ranks - {end.rank}))
    return next(causes, failed[0] if failed else None)


def asked_for(ends: Sequence[End]) -> int:
    """Give the signal that the user ended the job with; 0 when the ranks ended well, or by themselves."""
    return next((end.user_signal for end in ends if end.code != 0 and end.user_signal), 0)
