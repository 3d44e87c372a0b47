"""How many samples a case gets, and how long ranks wait for the one that takes them."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest

from peerway.context import Context
from peerway_measure.bench import limits, sampling, shapes
from peerway_measure.bench.links import EXCHANGE_S
from peerway_measure.bench.plan import Case, Plan


class Alone:
    """The context of one rank, which is its own team."""

    size, rank = 1, 0

    @property
    def team(self) -> Alone:
        return self

    def all_gather(self, part: bytes, _: float) -> list[bytes]:
        return [part]


class Takes:
    """A probe with samples of a given length, which moves nothing."""

    source = target = "host"
    measures = takes_part = True
    batch = 0

    def __init__(self, seconds: float) -> None:
        self._ns = seconds * 1e9

    def prepare(self, seed: int) -> None:
        pass

    def loop(self, count: int) -> sampling.Samples:
        return np.full(count, self._ns), 0.0

    def right(self, seed: int) -> bool:
        return True

    def chosen(self) -> str:
        return ""

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("seconds", "count"),
    [
        pytest.param(1e-6, 20000, id="the most"),
        pytest.param(1e-3, 200, id="as many as fit"),
        pytest.param(0.1, 10, id="at least ten"),
        pytest.param(4.0, 5, id="fewer where each takes seconds"),
        pytest.param(50.0, 3, id="never less than three"),
    ],
)
def test_samples_fit_the_time(seconds: float, count: int) -> None:
    sampler = sampling.Sampler(cast(Context, Alone()), Plan(1, [], budget_s=0.2))
    case = Case("put_latency", shapes.contiguous(8), "host", "host", ((0, 0),))
    outcome = sampler.run(case, cast(Any, Takes(seconds)))
    assert len(outcome.samples_ns) == count


def test_a_rank_waits_for_another_as_long_as_its_samples_may_take() -> None:
    """That is long on a busy machine; but the end of the other rank is noticed all the same."""
    samples = sampling.FIRST_LOOK + sampling.FEWEST // 10 + 1 + sampling.FEWEST
    assert samples * Plan(2, []).timeout_s < EXCHANGE_S


def test_memcpy_is_measured_at_the_best_place_of_its_target_and_says_where(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a target at +16 from its source, within their pages, the limit was once 20 times too low."""
    real = limits._core.copy_window
    slow = {0: 900.0, 64: 500.0, 1024: 40.0, 2048: 300.0}
    timed: list[int] = []

    def copy_window(to: Any, source: Any, block: Any, window: int, count: int) -> tuple[Any, float]:
        assert source.ctypes.data % limits.PAGE == 0
        timed.append(to.ctypes.data % limits.PAGE)
        real(to, source, block, window, 1)
        return np.full(count, slow[timed[-1]]), 100.0

    monkeypatch.setattr(limits._core, "copy_window", copy_window)
    case = Case("put_bw", shapes.contiguous(65536), "host", "host", ((0, 1),))
    outcome = limits.run_memcpy(case, 1e-6)
    assert (outcome.target_at, outcome.validated, set(outcome.samples_ns)) == (1024, True, {40.0})
    assert {*timed[:-2]} == {*limits.TARGETS} == {*slow}
