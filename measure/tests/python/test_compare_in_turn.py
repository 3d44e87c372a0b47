"""Noise that lasts longer than a run is no difference: sides in turn share it, and of sides in one piece each
`peerway compare` says that time may have made it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner
from numpy.typing import NDArray
from synthetic_records import record

from peerway_common.cli import command as peerway
from peerway_measure import records
from peerway_measure.compare.groups import Key, Pair
from peerway_measure.compare.order import order_of
from peerway_measure.compare.statistics import Comparison, compare_all

if TYPE_CHECKING:
    from peerway_measure.records import Record

RUNS = 10  # of a side
DESIGNS = {
    "one after the other": [0] * RUNS + [1] * RUNS,
    "in turn": [0, 1] * RUNS,
    "in turns of two": [0, 0, 1, 1] * (RUNS // 2),
}


class Sample(NamedTuple):
    """What the statistics look at in a record."""

    run: str
    time: str
    p50_us: float
    test: str = "put_latency"
    host: str = "busy"


def sticky_modes(rng: np.random.Generator, n: int) -> NDArray[Any]:
    """Two modes 20 % apart, each of which lasts five runs on average."""
    mode = (rng.random() < 0.5) ^ (np.cumsum(rng.random(n) < 0.2) % 2 == 1)
    return np.where(mode, 1.2, 1.0)


def correlated(rng: np.random.Generator, n: int) -> NDArray[Any]:
    """AR(1) of 0.7, 3 % wide."""
    values = [rng.normal()]
    for _ in range(n - 1):
        values.append(0.7 * values[-1] + np.sqrt(1 - 0.7**2) * rng.normal())
    return np.exp(0.03 * np.array(values))


def drift(rng: np.random.Generator, n: int) -> NDArray[Any]:
    """By 10 % from the first run to the last."""
    return 1 + 0.1 * np.arange(n) / n


def independent(rng: np.random.Generator, n: int) -> NDArray[Any]:
    return np.ones(n)


NOISES = (sticky_modes, correlated, drift, independent)


def compared(rng: np.random.Generator, noise: Any, design: list[int], change: float = 1.0) -> Comparison:
    """Runs a minute apart, those of the second side slower by `change`."""
    values = noise(rng, len(design)) * rng.lognormal(0, 0.01, len(design))
    sides: tuple[list[Any], list[Any]] = ([], [])
    for minute, (side, value) in enumerate(zip(design, values, strict=True)):
        when = f"2026-11-01T10:{minute:02}:00Z"
        sides[side].append(Sample(str(minute), when, value * (change if side else 1)))
    (comparison,) = compare_all([Pair(Key(("via",), ("peer",)), *sides)])
    return comparison


@pytest.mark.parametrize(
    ("design", "noise"),
    [
        pytest.param(design, noise, marks=[] if (row + column) % 2 == 0 else [pytest.mark.long])
        for row, design in enumerate(DESIGNS)
        for column, noise in enumerate(NOISES)
    ],
)
def test_noise_that_lasts_is_called_a_difference_once_in_twenty_at_most(noise: Any, design: str) -> None:
    rng = np.random.default_rng(35)
    verdicts = Counter(compared(rng, noise, DESIGNS[design]).verdict for _ in range(100))
    assert verdicts["faster"] + verdicts["slower"] <= 5
    if design != "one after the other":
        assert not verdicts["confounded with time"]
    elif noise is independent:  # without a reason, time is not named either
        assert verdicts["confounded with time"] <= 5


@pytest.mark.parametrize("noise", [correlated, drift, independent])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_change_of_ten_percent_is_found_and_named_with_time_where_that_may_be_it(
    noise: Any, design: str
) -> None:
    rng = np.random.default_rng(44)
    verdicts = Counter(compared(rng, noise, DESIGNS[design], 1.1).verdict for _ in range(50))
    assert verdicts["confounded with time" if design == "one after the other" else "slower"] >= 47


def test_correlation_within_a_side_widens_its_interval() -> None:
    rng = np.random.default_rng(7)
    design = DESIGNS["one after the other"] * 2

    def width(noise: Any) -> float:
        comparison = compared(rng, noise, sorted(design))
        assert comparison.high is not None
        assert comparison.low is not None
        return (
            np.log(comparison.high / comparison.low) / comparison.before.spread
            if comparison.before.spread
            else np.inf
        )

    assert np.median([width(correlated) for _ in range(30)]) > 1.15 * np.median(
        [width(lambda rng, n: rng.lognormal(0, 0.03, n)) for _ in range(30)]
    )


@pytest.mark.parametrize(
    ("before", "after", "turns"),
    [
        ([0, 1, 2], [3, 4, 5], ([0, 0, 0], [0, 0, 0])),
        ([3, 4, 5], [0, 1, 2], ([0, 0, 0], [0, 0, 0])),
        ([4, 0, 2], [3, 5, 1], ([2, 0, 1], [1, 2, 0])),  # in any order in the file
        ([0, 1, 4], [2, 3, 5], ([0, 0, 1], [0, 0, 1])),
        ([7, 7, 8], [7, 7, 8], ([0, 1, 2], [0, 1, 2])),  # within a second, in turn
        ([7, 7], [7, 7], None),
        ([1, np.nan], [2, 3], None),
    ],
)
def test_turns_are_told_by_the_times(
    before: list[float], after: list[float], turns: tuple[list[int], list[int]] | None
) -> None:
    order = order_of(np.array(before, float), np.array(after, float))
    assert (None if order is None else (order.before.tolist(), order.after.tolist())) == turns


def saved(folder: Path, minutes: dict[str, list[int]], slower: float) -> list[str]:
    files = []
    for name, several in minutes.items():
        side: list[Record] = [
            record(p50_us=(1 + minute / 1000) * (slower if name == "after" else 1), p99_us=9, min_us=0,
                   time=f"2026-11-01T10:{minute:02}:00Z", extra={"run": f"{name}.{minute}"})
            for minute in several
        ]  # fmt: skip
        files.append(str(folder / f"{name}.jsonl"))
        records.write(folder / f"{name}.jsonl", side)
    return files


def test_the_command_names_time_and_says_what_to_do(tmp_path: Path) -> None:
    one_after = saved(tmp_path, {"before": [0, 1, 2, 3, 4], "after": [5, 6, 7, 8, 9]}, 1.2)
    done = CliRunner().invoke(peerway, ["compare", *one_after, "--fail-on-slowdown", "5"])
    text = " ".join(done.output.split())
    assert done.exit_code == 1
    assert "-17 % (time)" in text
    assert "(time): 1 of 1 groups is confounded with time." in text
    assert "Measure both sides in turn" in text
    assert "1 of 1 groups got slower by more than 5 %, 1 of them confounded with time" in text
    in_turn = saved(tmp_path, {"before": [0, 2, 4, 6, 8, 9], "after": [1, 3, 5, 7, 10]}, 1.2)
    done = CliRunner().invoke(peerway, ["compare", *in_turn])
    assert "(time)" not in done.output
    assert "in 1 of 1 groups several runs of one side follow each other" in " ".join(done.output.split())
    done = CliRunner().invoke(peerway, ["compare", *in_turn, "--format", "json"])
    assert '"verdict": "slower"' in done.output
    assert '"in_turn": true' in done.output
