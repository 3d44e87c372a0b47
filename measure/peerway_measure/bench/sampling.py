"""Takes the samples of one case on all ranks together: fill the buffers, warm up, take as many samples as the
time allows, check the data.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from peerway import _core
from peerway.context import Context
from peerway.errors import Error
from peerway_measure.bench.links import EXCHANGE_S, Link, Links, agree
from peerway_measure.bench.plan import Case, Plan
from peerway_measure.memories import is_gpu

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST, FEWEST_SLOW = 10, 3
SLOW_S = 20  # a case whose samples take longer gets fewer than FEWEST
MOST_LATENCIES, MOST_WINDOWS = 20000, 1000
# Iterations that estimate how many fit into the time; the second number only if the first was quick.
FIRST_LOOK, SECOND_LOOK = 2, 50


Samples = tuple["NDArray[np.float64]", float]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one run of a case: for each sample the time of the slowest pair, and whether all data was
    right.
    """

    samples_ns: NDArray[np.float64]
    cpu_percent: float
    validated: bool
    source: str = "host"
    target: str = "host"
    chosen: str = ""  # the path that the route takes for this size
    batch: int = 0  # trips in one sample of a plan; 0 without a plan
    cpu_percents: tuple[float, ...] = ()  # for each rank that took part
    target_at: int | None = None  # for memcpy: the offset in its page of the fastest target


class Probe(Protocol):
    """One case on this rank, ready to be timed."""

    source: str
    target: str
    measures: bool  # whether this rank's samples count
    takes_part: bool
    batch: int  # trips in one sample; 0: given by the window of the kind

    def prepare(self, seed: int) -> None:
        """Fill the source with random data of this rank, and the target with poison."""

    def loop(self, count: int) -> Samples:
        """Take `count` samples, on all ranks that take part at the same time."""

    def right(self, seed: int) -> bool:
        """Whether exactly the expected data arrived at this rank."""

    def chosen(self) -> str:
        """The path that was taken, if the route chose it; else ""."""

    def close(self) -> None:
        """Release what only this case needs."""


class Sampler:
    """Takes the samples of probes. Every method is collective, and every rank gets the same answer."""

    def __init__(self, context: Context, plan: Plan) -> None:
        self._context = context
        self._seed = 0
        self.budget_s = plan.budget_s

    def run(self, case: Case, probe: Probe) -> Outcome:
        """Take the samples of one case. Raises CaseFailed, the same on all ranks."""
        count = self._count(case, probe)
        self._seed += 1
        self._together(lambda: probe.prepare(self._seed))
        self._together(lambda: probe.loop(count // 10 + 1))
        result: list[Samples] = []
        self._together(lambda: result.append(probe.loop(count)))
        samples, cpu = result[0]
        slowest, percents = self._slowest(probe, samples, cpu)
        right: list[bool] = []
        self._together(lambda: right.append(probe.right(self._seed)))
        validated = self._most(0.0 if right[0] else 1.0) == 0.0
        return Outcome(
            slowest, percents[0], validated, probe.source, probe.target, probe.chosen(), probe.batch, percents
        )

    def _count(self, case: Case, probe: Probe) -> int:
        """The number of samples that fit into the time, estimated from the fastest of a few."""
        if case.samples:
            return case.samples
        look = FIRST_LOOK
        while True:
            result: list[NDArray[np.float64]] = []
            self._together(lambda: result.append(probe.loop(look)[0]))  # noqa: B023
            least = self._most(float(result[0].min()) if probe.measures else 0.0)
            if look == SECOND_LOOK or least * look > self.budget_s * 1e9 / 50:
                break
            look = SECOND_LOOK
        most = MOST_WINDOWS if case.kind.windowed else MOST_LATENCIES
        least_s = max(least, 1.0) * 1e-9
        fewest = min(FEWEST, max(FEWEST_SLOW, SLOW_S / least_s))
        return int(min(most, max(fewest, self.budget_s / least_s)))

    def _slowest(
        self, probe: Probe, samples: NDArray[np.float64], cpu: float
    ) -> tuple[NDArray[np.float64], tuple[float, ...]]:
        """For each sample the maximum over all ranks that measure; and the CPU use of all ranks that take
        part, those that measure first.
        """
        mine = samples if probe.measures else samples[:0]
        part = struct.pack("?d", probe.takes_part, cpu) + mine.tobytes()
        parts = self._context.team.all_gather(part, EXCHANGE_S)
        head = struct.calcsize("?d")
        times = [np.frombuffer(part, np.float64, offset=head) for part in parts if len(part) > head]
        uses = [(len(part) <= head, *struct.unpack_from("?d", part)) for part in parts]
        percents = [use for _, took_part, use in sorted(uses, key=lambda use: use[0]) if took_part]
        return np.max(times, axis=0), tuple(percents)

    def _most(self, value: float) -> float:
        parts = self._context.team.all_gather(struct.pack("d", value), EXCHANGE_S)
        return max(float(struct.unpack("d", part)[0]) for part in parts)

    def first_ranks(self, value: float) -> float:
        """The value of rank 0, on all ranks."""
        parts = self._context.team.all_gather(struct.pack("d", value), EXCHANGE_S)
        return float(struct.unpack("d", parts[0])[0])

    def _together(self, step: Callable[[], object]) -> None:
        """Do a step on every rank. If it fails on one, all raise CaseFailed."""
        together(self._context, step)


def together(context: Context, step: Callable[[], object]) -> None:
    """Do a step on every rank. If it fails on one, all raise CaseFailed."""
    error = ""
    try:
        step()
    except (Error, MemoryError) as failure:
        error = str(failure) or type(failure).__name__
    agree(context, error)


class LinkProbe:
    """A case between pairs of ranks, over the paths that the context uses. Collective."""

    def __init__(self, context: Context, links: Links, case: Case, timeout_s: float) -> None:
        links.reserve(case.source, case.target, case.shape.extent)
        self._context, self._links, self._case, self._timeout_s = context, links, case, timeout_s
        self._link = links.link(case.source, case.target, case.pairs)
        self._block = block_of(case)
        self._receives = receives(case, self._link)
        self.measures, self.takes_part = self._link.leads, self._link.loops is not None
        self.batch = 0
        got = case.kind.op == "get"
        self.source = self._link.got_source if got else self._link.source
        self.target = self._link.got_target if got else self._link.target

    def prepare(self, seed: int) -> None:
        """See Probe, also for the other methods."""
        if self.takes_part:
            fill(self._links, self._case, self._context.rank, seed)

    def loop(self, count: int) -> Samples:
        """Times both ranks of a pair; does nothing on other ranks."""
        if self._link.loops is None:
            return np.empty(0), 0.0
        kind, case = self._case.kind, self._case
        touch = kind.touch and not is_gpu(case.target)
        samples, cpu = getattr(self._link.loops, kind.loop)(
            self._block, count, kind.window(case.shape.bytes), touch, self._timeout_s
        )
        return samples, cpu

    def right(self, seed: int) -> bool:
        """Whether what the partner sent arrived."""
        if not self.takes_part or not self._receives:
            return True
        return holds(self._links, self._case, self._block, self._link.partner, seed)

    def chosen(self) -> str:
        """The route's choice for this size."""
        return self._links.chosen(self._case, self._link)

    def close(self) -> None:
        """Keeps the link for the next case."""


def fill(links: Links, case: Case, rank: int, seed: int) -> None:
    """Put random data of this rank into the source, and poison into the target."""
    extent = case.shape.extent
    _core.fill_random(links.memory(case.source, "source")._core, extent, _seed_of(seed, rank))
    _core.poison(links.memory(case.target, "target")._core, extent)


def holds(links: Links, case: Case, block: _core.Block, sender: int, seed: int) -> bool:
    """Whether the target holds the data of the sender's source."""
    return _core.holds(links.memory(case.target, "target")._core, block, _seed_of(seed, sender))


def _seed_of(seed: int, rank: int) -> int:
    return (seed << 20) + rank


def block_of(case: Case) -> _core.Block:
    """The case's shape in the form that the core takes, from offset 0 on."""
    shape = case.shape
    if shape.blocks == 1:
        return _core.Block((), (), shape.block_bytes)
    return _core.Block((shape.blocks,), (shape.pitch,), shape.block_bytes)


def receives(case: Case, link: Link) -> bool:
    """Whether data arrives at this rank."""
    match case.kind.loop:
        case "signal_ping_pong" | "register_again":
            return False
        case "ping_pong" | "put_both":
            return True
        case "get_window":
            return link.leads
    return not link.leads
