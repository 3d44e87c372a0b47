"""Linpack of apps/scale: the closed form where one exists, its lower bounds, and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import pytest
from launching import ROOT

APP = ROOT / "apps" / "scale"
sys.path.insert(0, str(APP))

import linpack  # noqa: E402
import simulator  # noqa: E402
from linpack import LARGEST, NB, Linpack, kernels  # noqa: E402

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/simgrid/s4u.hpp").exists(), reason="no SimGrid (apt-get install libsimgrid-dev)"
)


def seconds(case: Linpack) -> float:
    record = linpack.simulate(case)
    assert record.validated, record
    return record.p50_us / 1e6


def simulated(*options: str) -> dict[str, float]:
    """The simulator's output of hpl for these options, with round numbers for the kernels."""
    own = {"pattern": "hpl", "n": "65536", "nb": "1024", "gemm-tflops": "50", "column-us": "10"}
    given = dict(zip(options[::2], options[1::2], strict=True))
    words = [word for name, value in (own | given).items() for word in (f"--{name}", value)]
    (result,) = simulator.run(words)
    assert result["right"]
    return result  # type: ignore[return-value]


FAST = ("link-gbits", "1e8", "hop-ns", "1e-6", "message-ns", "2e-6")  # a network that takes no time


def test_the_fitted_kernels_give_the_measured_times() -> None:
    """By the closed form, at each measured N; of three numbers, two were fitted."""
    for run in linpack.runs():
        assert kernels().seconds(round(run["n"])) == pytest.approx(run["seconds"], rel=0.05)
    assert kernels().seconds(LARGEST) == pytest.approx(linpack.runs()[-1]["seconds"], rel=0.01)


@pytest.mark.parametrize("machine", ["torus:1x2", "torus:2x2", "torus:2x4"])
def test_with_a_network_that_takes_no_time_each_rank_has_its_part_of_the_kernels(machine: str) -> None:
    """The closed form of one GPU divided by the ranks, except for the first and last panels.

    The others wait for these panels. In a column of ranks each has the kernels of a panel, and solves all
    rows of U.
    """
    result = simulated("machine", machine, "panels", "64", "n", "262144", "element-ps", "200", *FAST)
    p, q = (int(extent) for extent in machine.removeprefix("torus:").split("x"))
    own = linpack.Kernels(50, 10 * p, 200 * p)
    assert result["us"] / 1e6 == pytest.approx(own.seconds(262144) / (p * q), rel=0.03)
    assert result["us"] / 1e6 > own.seconds(262144) / (p * q) * 0.999


def test_panels_alone_come_one_after_the_other() -> None:
    """Without updates: N columns of a panel, N pivots, and each panel's way to the next rank."""
    result = simulated("machine", "torus:1x2", "gemm-tflops", "1e6", "element-ps", "0", *FAST)
    assert result["us"] == pytest.approx(65536 * 10, rel=1e-3)
    result = simulated("machine", "torus:2x1", "gemm-tflops", "1e6", "element-ps", "0", *FAST[:2])
    assert result["pivot_us"] == pytest.approx(0.850, rel=1e-3)
    assert result["us"] == pytest.approx(65536 * (10 + 0.850), rel=1e-3)


def test_broadcasts_alone_take_the_bytes_of_a_panel_over_the_link() -> None:
    """Two ranks: each panel except the last goes over the link to the other rank."""
    result = simulated("machine", "torus:1x2", "gemm-tflops", "1e6", "element-ps", "0", "column-us", "0")
    n, nb = 65536, 1024
    sent = [8 * nb * (nb + n - (k + 1) * nb) / 9375 + 0.850 for k in range(n // nb)]
    assert result["us"] == pytest.approx(sum(sent), rel=1e-2)


@pytest.mark.parametrize(("machine", "grid"), [("torus:4x4", "4x4"), ("torus:8x8", "8x8")])
def test_one_message_each_stands_for_the_exchange_of_all_on_a_torus(machine: str, grid: str) -> None:
    n = LARGEST * int(grid[0])
    alike, whole = (seconds(Linpack(machine, n, panels=16, whole=how)) for how in (False, True))
    assert alike == pytest.approx(whole, rel=0.02)


def test_some_panels_stand_for_all() -> None:
    few, more, every = (seconds(Linpack("torus:4x4", 4 * LARGEST, panels=n)) for n in (128, 256, 512))
    assert few == pytest.approx(every, rel=0.01)
    assert abs(more - every) < abs(few - every)


def test_what_is_slower_makes_it_slower() -> None:
    options = ["machine", "torus:4x4", "n", str(4 * 65536)]
    base = simulated(*options)["us"]
    for name, value in (
        ("gemm-tflops", "40"),
        ("column-us", "40"),
        ("element-ps", "1000"),
        ("link-gbits", "40"),
    ):
        assert simulated(*options, name, value)["us"] > 1.01 * base, name


def test_with_many_rows_of_ranks_pivots_are_quicker_by_doubling() -> None:
    few, many = (("machine", f"torus:{rows}x2") for rows in (2, 16))
    assert simulated(*many, "pivots", "doubling")["pivot_us"] < simulated(*many)["pivot_us"]
    assert simulated(*few, "pivots", "doubling")["pivot_us"] == pytest.approx(simulated(*few)["pivot_us"])


@pytest.mark.parametrize("variant", ["1ring", "1ringM", "2ring", "2ringM", "tree", "star"])
def test_every_broadcast_brings_the_panels(variant: str) -> None:
    assert simulated("machine", "torus:2x8", "bcast", variant)["busy"] > 0


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--machine", "torus:4", "--n", "4096"], "Linpack needs a grid of P x Q"),
        (["--machine", "torus:2x2", "--n", "4097"], f"N = 4097 is no multiple of NB = {NB}"),
        (["--machine", "torus:3x2", "--n", "4096", "--pivots", "doubling"], "needs a power of two of rows"),
        (["--bcast", "4ring"], "--bcast is '4ring'; give one of 1ring, 1ringM"),
        (["--pivots", "some"], "--pivots is 'some'; give all or doubling"),
        (["--exchange", "some"], "--exchange is 'some'; give alike or whole"),
    ],
)
def test_what_cannot_be_is_refused(options: list[str], says: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        simulator.run(["--pattern", "hpl", *options])
    assert says in caught.value.message
