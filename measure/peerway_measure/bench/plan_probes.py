"""Probes for cases over plans: between two ranks, halos, and computations between messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from peerway import _core
from peerway_measure.bench import halo, halo_data
from peerway_measure.bench.links import EXCHANGE_S
from peerway_measure.bench.sampling import block_of, fill, holds, together
from peerway_measure.cube import computed_bytes

if TYPE_CHECKING:
    from peerway.context import Context
    from peerway_measure.bench.links import Links
    from peerway_measure.bench.plan import Case
    from peerway_measure.bench.sampling import Probe, Samples

SMALL_BYTES, SMALL_BATCH, LARGE_BATCH = 1 << 16, 200, 20  # trips of one sample on a stream
ASYNC_BATCH, ASYNC_TRIPS = 20, 10000
ALIGNMENT = 16


def plan_probe(context: Context, links: Links, case: Case, variant: str, timeout_s: float) -> Probe:
    """Make the probe that measures a case over a plan, in one of the variants of its kind. Collective. Raises
    CaseFailed.
    """
    if case.kind.loop == "halo":
        return HaloProbe(context, links, case, variant, timeout_s)
    if case.kind.loop == "async":
        return AsyncProbe(context, links, case, variant, timeout_s)
    return PairProbe(context, links, case, variant, timeout_s)


def batch_of(case: Case, start: str) -> int:
    """The number of iterations in one sample, after which the host waits."""
    if start in ("host", "kernel"):
        return 1
    return SMALL_BATCH if case.shape.bytes <= SMALL_BYTES else LARGE_BATCH


class PairProbe:
    """Plans between the two ranks of a pair. Each variant ("plan/stream") starts them differently.

    Making one is collective.
    """

    def __init__(self, context: Context, links: Links, case: Case, variant: str, timeout_s: float) -> None:
        self._context, self._links, self._case = context, links, case
        links.reserve(case.source, case.target, case.shape.extent)
        self._link = links.link(case.source, case.target, case.pairs)
        self.source, self.target = self._link.source, self._link.target
        self.measures, self.takes_part = self._link.leads, self._link.loops is not None
        self._pair = links.for_plans(case.source, case.target, case.pairs)
        self._loops: _core.PlanLoop | _core.KernelLoop | _core.AsyncPingPong | None = None
        self.batch = 0
        together(context, lambda: self._make(variant, timeout_s))

    def _make(self, variant: str, timeout_s: float) -> None:
        plans, _, start = variant.partition("/")
        start = start or "host"
        self.batch = batch_of(self._case, start)
        exchanges = self._case.kind.loop == "exchange"
        two_sided = plans in ("sendrecv", "packets")
        if two_sided:
            test = "sendrecv" if exchanges else "message"
        else:
            test = "exchange" if exchanges else "latency"
        block = block_of(self._case)
        if self._pair is None:
            if two_sided:  # a plan with sends is prepared by all ranks
                _core.look_on(
                    self._context._core, self._links.memory(self._case.source, "source")._core, test
                )
        elif start == "kernel":
            self._loops = _core.kernel_loop(self._pair, test, block, plans == "packets", timeout_s)
        else:
            self._loops = _core.plan_loop(self._pair, test, block, start, self.batch, timeout_s)

    def prepare(self, seed: int) -> None:
        """See Probe, also for the other methods."""
        if self.takes_part:
            fill(self._links, self._case, self._context.rank, seed)

    def loop(self, count: int) -> Samples:
        """Times both ranks of a pair; does nothing on other ranks."""
        return (np.empty(0), 0.0) if self._loops is None else self._loops.run(count)

    def right(self, seed: int) -> bool:
        """Whether what the partner sent arrived."""
        block = block_of(self._case)
        return not self.takes_part or holds(self._links, self._case, block, self._link.partner, seed)

    def chosen(self) -> str:
        """The method, if the plan is a send. Other plans may hold several operations, which need not share a
        path.
        """
        return self._links.chosen(self._case, self._link) if self._case.kind.by_methods else ""

    def close(self) -> None:
        """Free the plans before the memory and signals that they use are closed."""
        self._loops = None


class AsyncProbe(PairProbe):
    """async_pingpong, of which each way is a mode. The result of the computation shows how often it ran, and
    is checked too.
    """

    def _make(self, variant: str, timeout_s: float) -> None:
        self.batch = ASYNC_BATCH
        self._trips = 0
        self._computed = computed_bytes(self._case.shape.label) or 0
        self._buffer = self._context.allocate(self._case.source, self._computed)
        if self._pair is not None:
            self._loops = _core.AsyncPingPong(
                self._pair, block_of(self._case), self._buffer._core, self._computed, variant, self.batch,
                timeout_s,
            )  # fmt: skip

    def prepare(self, seed: int) -> None:
        """Also fills the buffer to compute on."""
        super().prepare(seed)
        self._start = np.random.default_rng(seed).integers(0, 1 << 32, self._computed // 4, np.uint32)
        _core.store(self._buffer._core, self._start.view(np.uint8))
        self._trips = 0

    def loop(self, count: int) -> Samples:
        """Also counts the computations."""
        self._trips += count * self.batch
        return super().loop(count)

    def right(self, seed: int) -> bool:
        """Whether the message arrived, and each iteration computed once."""
        actual = np.empty_like(self._start)
        _core.load(self._buffer._core, actual.view(np.uint8))
        computed = bool(np.array_equal(actual, self._start + np.uint32(self._trips & 0xFFFFFFFF)))
        return super().right(seed) and (computed or not self.takes_part)

    def close(self) -> None:
        """Also frees the buffer."""
        super().close()
        self._buffer.close()


class HaloProbe:
    """A halo exchange among all ranks, each of which measures. Collective."""

    def __init__(self, context: Context, links: Links, case: Case, variant: str, timeout_s: float) -> None:
        self._context, self._links = context, links
        self._halo, self._kind = halo.of_label(case.shape.label), case.source
        room = self._halo.array_bytes
        links.reserve(case.source, case.target, room)
        self._array = links.memory(case.source, "source")
        devices = context.team.all_gather(self._array.device.encode(), EXCHANGE_S)
        self.source, self.target = devices[0].decode(), devices[1 % len(devices)].decode()
        self.measures = self.takes_part = True
        start = variant.partition("/")[2] or "host"
        self.batch = batch_of(case, start)
        self._loops: _core.PlanLoop | None = None
        together(context, lambda: self._make(start, timeout_s))

    def _make(self, start: str, timeout_s: float) -> None:
        halo = self._halo
        dims = [
            (local, *width, periodic)
            for local, width, periodic in zip(halo.local, halo.width, halo.periodic, strict=True)
        ]
        self._loops = _core.halo_loop(
            self._context._core, self._array._core, halo.grid, dims, halo.element, halo.corners, start,
            self.batch, timeout_s,
        )  # fmt: skip

    def prepare(self, seed: int) -> None:
        """Fills this rank's own elements, and poisons the halo."""
        image = halo_data.image(self._halo, self._context.rank, seed, after=False)
        _core.store(self._array._core, image)

    def loop(self, count: int) -> Samples:
        """Times all ranks."""
        assert self._loops is not None
        return self._loops.run(count)

    def right(self, seed: int) -> bool:
        """Whether the halo has the neighbours' elements, and everything else is unchanged."""
        wanted = halo_data.image(self._halo, self._context.rank, seed, after=True)
        actual = np.empty_like(wanted)
        _core.load(self._array._core, actual)
        return bool(np.array_equal(actual, wanted))

    def chosen(self) -> str:
        """Empty: each neighbour may have its own path."""
        return ""

    def close(self) -> None:
        """Frees the plan."""
        self._loops = None
