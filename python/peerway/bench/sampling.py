"""Taking the samples of one case on all ranks together: data, warm-up, as many samples as fit, check."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from peerway import _core
from peerway.bench.links import EXCHANGE_S, CaseFailed, Link, Links, agree
from peerway.bench.plan import Case, Plan
from peerway.context import Context
from peerway.errors import Error

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST = 10
MOST_LATENCIES, MOST_WINDOWS = 20000, 1000
FIRST_LOOK, SECOND_LOOK = (
    2,
    50,
)  # iterations that estimate how many fit; the second only when the first was quick


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one run of a case gave: the slowest pair's time of each sample, and whether all data was right."""

    samples_ns: NDArray[np.float64]
    cpu_percent: float
    validated: bool
    source: str = "host"
    target: str = "host"
    chosen: str = ""  # the path that the route takes for this size


class Sampler:
    """Runs cases over one context. Every method is collective, and every rank gets the same answer."""

    def __init__(self, context: Context, links: Links, plan: Plan) -> None:
        self._context = context
        self._links = links
        self._plan = plan
        self._seed = 0

    def run(self, case: Case) -> list[Outcome]:
        """One outcome for each repeat. Raises CaseFailed, the same on all ranks."""
        self._links.reserve(case.source, case.target, case.shape.extent)
        link = self._links.link(case.source, case.target, case.pairs)
        block = block_of(case)
        try:
            count = self._count(case, link, block)
            return [self._once(case, link, block, count) for _ in range(self._plan.repeat)]
        except CaseFailed:
            self._links.drop()
            raise

    def _once(self, case: Case, link: Link, block: _core.Block, count: int) -> Outcome:
        self._seed += 1
        self._together(lambda: self._prepare(case, link))
        self._together(lambda: self._loop(case, link, block, count // 10 + 1))
        result: list[tuple[NDArray[np.float64], float]] = []
        self._together(lambda: result.append(self._loop(case, link, block, count)))
        samples, cpu = result[0]
        slowest, cpu = self._slowest(samples if link.leads else samples[:0], cpu)
        right = self._validated(case, link, block)
        source, target = (
            (link.got_source, link.got_target) if case.kind.op == "get" else (link.source, link.target)
        )
        return Outcome(slowest, cpu, right, source, target, self._links.chosen(case, link))

    def _prepare(self, case: Case, link: Link) -> None:
        if link.loops is None:
            return
        extent, rank = case.shape.extent, self._context.rank
        _core.fill_random(self._links.memory(case.source, "source")._core, extent, self._seed_of(rank))
        _core.poison(self._links.memory(case.target, "target")._core, extent)

    def _loop(
        self, case: Case, link: Link, block: _core.Block, count: int
    ) -> tuple[NDArray[np.float64], float]:
        if link.loops is None:
            return np.empty(0), 0.0
        kind = case.kind
        run = getattr(link.loops, kind.loop)
        touch = kind.touch and not case.target.startswith("cuda")
        samples, cpu = run(block, count, kind.window(case.shape.bytes), touch, self._plan.timeout_s)
        return samples, cpu

    def _count(self, case: Case, link: Link, block: _core.Block) -> int:
        """How many samples fit the time, judged by the least of a few."""
        look = FIRST_LOOK
        while True:
            result: list[NDArray[np.float64]] = []
            self._together(lambda: result.append(self._loop(case, link, block, look)[0]))  # noqa: B023
            least = self._most(float(result[0].min()) if link.leads else 0.0)
            if look == SECOND_LOOK or least * look > self._plan.budget_s * 1e9 / 50:
                break
            look = SECOND_LOOK
        most = MOST_WINDOWS if case.kind.windowed else MOST_LATENCIES
        return int(min(most, max(FEWEST, self._plan.budget_s * 1e9 / max(least, 1.0))))

    def _slowest(self, samples: NDArray[np.float64], cpu: float) -> tuple[NDArray[np.float64], float]:
        parts = self._context.team.all_gather(struct.pack("d", cpu) + samples.tobytes(), EXCHANGE_S)
        times = [np.frombuffer(part, np.float64, offset=8) for part in parts if len(part) > 8]
        first = next(part for part in parts if len(part) > 8)
        return np.max(times, axis=0), struct.unpack_from("d", first)[0]

    def _validated(self, case: Case, link: Link, block: _core.Block) -> bool:
        right = True
        if link.loops is not None and receives(case, link):
            target = self._links.memory(case.target, "target")
            right = _core.holds(target._core, block, self._seed_of(link.partner))
        return self._most(0.0 if right else 1.0) == 0.0

    def _seed_of(self, rank: int) -> int:
        return (self._seed << 20) + rank

    def _most(self, value: float) -> float:
        parts = self._context.team.all_gather(struct.pack("d", value), EXCHANGE_S)
        return max(float(struct.unpack("d", part)[0]) for part in parts)

    def _together(self, step: Callable[[], object]) -> None:
        """Does a step on every rank; a failure on one becomes CaseFailed on all."""
        error = ""
        try:
            step()
        except (Error, MemoryError) as failure:
            error = str(failure) or type(failure).__name__
        agree(self._context, error)


def block_of(case: Case) -> _core.Block:
    """The case's shape as the core takes it, from offset 0 on."""
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
