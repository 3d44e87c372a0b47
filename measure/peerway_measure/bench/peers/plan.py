"""The request to a peer and its results as plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

Result = dict[str, Any]
"""A measured point, as the programs print it: via, test, shape, bytes, ranks, iterations, window, batch
(trips behind a sample), p50_us, p99_us, min_us, mean_us, bandwidth_MBps, messages_per_s, validated,
cpu_percent, library, device. Times are of one message, one way."""


class Form(Protocol):
    """`blocks` blocks of `block_bytes` each, `pitch` bytes apart. `label` is its spelling in records."""

    @property
    def label(self) -> str: ...
    @property
    def blocks(self) -> int: ...
    @property
    def block_bytes(self) -> int: ...
    @property
    def pitch(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Case:
    """One test of one shape. `window` is the number of messages in flight, `iterations` the number of samples
    (0: as many as fit the budget).
    """

    test: str
    form: Form
    window: int = 1
    iterations: int = 0

    @property
    def bytes(self) -> int:
        """The bytes of one message."""
        return self.form.blocks * self.form.block_bytes

    @property
    def extent(self) -> int:
        """The bytes from the first that is touched to the last, inclusive."""
        return (self.form.blocks - 1) * self.form.pitch + self.form.block_bytes

    @property
    def kind(self) -> str:
        """ "contiguous", "block" or "halo"."""
        if self.test == "halo":
            return "halo"
        return "contiguous" if self.form.blocks == 1 or self.form.pitch == self.form.block_bytes else "block"

    def argument(self, via: str) -> str:
        """The spelling of the case on the command line of the programs."""
        form = self.form
        numbers = (form.blocks, form.block_bytes, form.pitch, self.window, self.iterations)
        return ",".join((via, self.test, form.label, *map(str, numbers)))


@dataclass(frozen=True, slots=True)
class Plan:
    """Cases on one device ("host" or "cuda").

    `variants` restricts a peer to some of its own; None stands for all. `budget_s` is the time for the
    samples of one case, and `timeout_s` is how long a program may be silent before it is ended. `ranks`
    applies to put_mbw_mr and halo; every other test is between two ranks. `gpus` has the ordinal for each
    rank; if it is empty, they are 0, 1, ... `done` are pairs of variant and case that need not be measured.
    If `ends` is given (seconds since 1970), the cases divide the time until then, and `budget_s` does not
    apply.
    """

    device: str
    cases: tuple[Case, ...]
    ranks: int = 2
    variants: frozenset[str] | None = None
    budget_s: float = 0.1
    timeout_s: float = 60.0
    gpus: tuple[int, ...] = field(default=())
    done: frozenset[tuple[str, Case]] = frozenset()
    ends: float = 0

    def ordinals(self, ranks: int) -> list[int]:
        """The GPU of each of the first `ranks` ranks."""
        return list(self.gpus[:ranks]) if self.gpus else list(range(ranks))


@dataclass(frozen=True, slots=True)
class Failed:
    """A case that gave no result over `via`, and the reason."""

    via: str
    case: Case
    reason: str


@dataclass(frozen=True, slots=True)
class NoTime:
    """A case that was not measured over `via`, because the time was over."""

    via: str
    case: Case
