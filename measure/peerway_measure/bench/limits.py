"""Measures limits of the hardware in the same run: the memcpy of one core, and a bare flag between two
processes.
"""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING

import numpy as np

from peerway import _core
from peerway.context import Context
from peerway_measure.bench.kinds import FLAG, MEMCPY
from peerway_measure.bench.plan import SIGNAL_BYTES, Case, Plan
from peerway_measure.bench.sampling import FEWEST, MOST_LATENCIES, MOST_WINDOWS, Outcome, block_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

PAGE = 4096
TARGETS = (0, 64, 1024, 2048)  # offsets of the target in its page, in bytes; the source begins at 0
"""A CPU compares addresses of loads and stores by their place in a page first, so that a copy to a place just
behind its source in that respect takes much longer than one to another."""

_MEMCPY_TESTS = ("put_bw", "get_bw", "cube")
_FLAG_TESTS = ("put_latency", "signal_latency")


def limit_of(case: Case) -> str | None:
    """The limit to compare a case with, or None. Both limits are of host memory."""
    if (case.source, case.target) != ("host", "host"):
        return None
    if case.test in _MEMCPY_TESTS:
        return MEMCPY
    small = case.shape.bytes == SIGNAL_BYTES and case.shape.label == "contiguous"
    return FLAG if case.test in _FLAG_TESTS and small else None


def run_memcpy(case: Case, budget_s: float) -> Outcome:
    """The memcpy of one core between two buffers of its own, for the fastest offset of the target. Not
    collective.
    """
    extent = case.shape.extent
    rng = np.random.default_rng(case.shape.bytes)
    source = _page_aligned(extent)
    source[:] = np.frombuffer(rng.bytes(extent), np.uint8)
    block, window = block_of(case), case.kind.window(case.shape.bytes)
    budget = budget_s * 1e9
    room = _page_aligned(extent + max(TARGETS))
    places = {at: room[at : at + extent] for at in TARGETS}
    fastest = {
        at: float(_core.copy_window(target, source, block, window, 3)[0].min())
        for at, target in places.items()
    }
    at = min(fastest, key=fastest.__getitem__)
    target, least = places[at], max(1.0, fastest[at])
    room[:] = 0xA5
    count = int(min(MOST_WINDOWS if case.kind.windowed else MOST_LATENCIES, max(FEWEST, budget / least)))
    _core.copy_window(target, source, block, window, count // 10 + 1)
    samples, cpu = _core.copy_window(target, source, block, window, count)
    return Outcome(samples, cpu, _same_blocks(target, source, case), target_at=at)


def _page_aligned(size: int) -> NDArray[np.uint8]:
    room = np.empty(size + PAGE, np.uint8)
    start = -room.ctypes.data % PAGE
    return room[start : start + size]


def run_flag(context: Context, plan: Plan, budget_s: float) -> Outcome | None:
    """A counter that ranks 0 and 1 pass back and forth in a page that both map. Other ranks measure nothing.
    Collective.
    """
    page = _shared_page(context, plan)
    outcome = None
    with mmap.mmap(page, PAGE) as memory:

        def bounce(count: int) -> tuple[NDArray[np.float64], float]:
            words = np.frombuffer(memory, np.uint64)
            return _core.flag_ping_pong(words, context.rank == 0, count, plan.timeout_s)

        # Estimated from the mean, not from the fastest of a few as elsewhere: two processes that share a CPU
        # are far slower on average.
        each = float(bounce(FEWEST)[0].mean()) if context.rank < 2 else 0.0
        gathered = context.team.all_gather(struct.pack("d", each), plan.timeout_s)[0]
        fitting = budget_s * 1e9 / max(1.0, *struct.unpack("d", gathered))
        count = int(min(MOST_LATENCIES, max(FEWEST, fitting)))
        if context.rank < 2:
            bounce(count // 10)
            outcome = Outcome(*bounce(count), True)
    context.team.barrier(plan.timeout_s)
    os.close(page)
    return outcome


def _shared_page(context: Context, plan: Plan) -> int:
    """A descriptor of rank 0's page. The page has no name, so that nothing stays behind. Collective."""
    page = os.memfd_create("flag")
    os.ftruncate(page, PAGE)
    first = context.team.all_gather(f"/proc/{os.getpid()}/fd/{page}".encode(), plan.timeout_s)[0]
    if context.rank == 1:
        os.close(page)
        page = os.open(first, os.O_RDWR)
    return page


def _same_blocks(target: NDArray[np.uint8], source: NDArray[np.uint8], case: Case) -> bool:
    shape = case.shape
    if shape.blocks == 1:
        return bool(np.array_equal(target, source))
    rows = (shape.blocks, shape.block_bytes)
    actual, wanted = (
        np.lib.stride_tricks.as_strided(array, rows, (shape.pitch, 1)) for array in (target, source)
    )
    return bool(np.array_equal(actual, wanted))
