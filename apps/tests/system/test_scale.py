"""apps/scale: the simulator gives the NIC's own figures, respects its lower bounds, and sees contention."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from launching import ROOT, clean_environment

from peerway_measure import records

APP = ROOT / "apps" / "scale"
sys.path.insert(0, str(APP))

import bounds  # noqa: E402
import simulator  # noqa: E402
from simulator import Case  # noqa: E402

pytestmark = pytest.mark.skipif(
    not Path("/usr/include/simgrid/s4u.hpp").exists(), reason="no SimGrid (apt-get install libsimgrid-dev)"
)
M = 1 << 20


def times(case: Case) -> list[float]:
    """Microseconds for each size; all must be valid."""
    found = simulator.simulate(case)
    assert all(record.validated for record in found), found
    return [record.p50_us for record in found]


@pytest.mark.parametrize(
    ("machine", "to", "hops"),
    [
        ("torus:16", 1, 1),
        pytest.param("torus:16", 8, 8, marks=pytest.mark.long),
        pytest.param("torus:16", 15, 1, marks=pytest.mark.long),
        ("torus:4x4x4", 42, 6),
        pytest.param("fat-tree:4x4/1x4", 3, 2, marks=pytest.mark.long),
        pytest.param("fat-tree:4x4/1x4", 4, 4, marks=pytest.mark.long),
        ("fat-tree:4x2x2/1x4x2", 15, 6),
    ],
)
def test_a_message_alone_takes_what_the_nic_says(machine: str, to: int, hops: int) -> None:
    found = simulator.simulate(Case(machine, "message", (8, M), to=to))
    for record in found:
        assert record.extra["hops"] == hops
        assert record.p50_us == pytest.approx(bounds.message_us(hops, record.bytes), rel=1e-6)


def test_other_nics() -> None:
    options = ["--machine", "torus:8", "--pattern", "message", "--to", "3", "--bytes", "1000000"]
    nic = ["--hop-ns", "100", "--message-ns", "1000", "--link-gbits", "8"]
    (found,) = simulator.run([*options, *nic])
    assert found["us"] == pytest.approx(1.0 + 2 * 0.1 + 1000)


def test_a_ring_has_the_whole_of_its_links() -> None:
    """Every rank sends 2 (N - 1) / N of the vector over one link, in as many steps as there are."""
    (us,) = times(Case("torus:4x4", "allreduce/rings", (16 * M,), "16"))
    steps = 2 * 15
    assert us == pytest.approx(steps * bounds.message_us(1, M), rel=1e-6)


@pytest.mark.parametrize(("parts", "share"), [(1, 0.45), (4, 0.95)])
def test_rings_in_both_directions_of_all_dimensions_use_all_links(parts: int, share: float) -> None:
    (us,) = times(Case("torus:4x4", "allreduce/rings", (64 * M,), parts=parts))
    best = bounds.allreduce_us("torus:4x4", 64 * M, 0)
    assert (best / us > share) == (parts == 4)
    assert best / us <= 1


@pytest.mark.parametrize(
    "machine", ["torus:16", "torus:4x4", "torus:4x2x2", "torus:2x2x2x2", "fat-tree:4x4/1x4"]
)
@pytest.mark.parametrize("pattern", ["rings", "doubling"])
@pytest.mark.parametrize("seed", [None, 5])
def test_no_allreduce_is_wrong_or_better_than_can_be(machine: str, pattern: str, seed: int | None) -> None:
    for size, us in zip(
        (8, 64 << 10, 16 * M),
        times(Case(machine, f"allreduce/{pattern}", (8, 64 << 10, 16 * M), seed=seed)),
        strict=True,
    ):
        assert us >= bounds.allreduce_us(machine, size, 0)


def test_messages_share_a_link() -> None:
    """In a dimension of two nodes both faces use the same link; the other faces have links of their own."""
    narrow, wide = (
        times(Case("torus:4x2", "halo/put", (M,)))[0],
        times(Case("torus:4x4", "halo/put", (M,)))[0],
    )
    assert wide == pytest.approx(bounds.message_us(1, M), rel=1e-6)
    assert narrow == pytest.approx(bounds.message_us(1, 2 * M), rel=1e-6)


@pytest.mark.parametrize(
    ("machine", "grid", "most", "mean"),
    [
        ("torus:4x4x2", "32", 1, 1.0),  # one ring through all nodes
        ("torus:8x8x4", "4x8x8", 1, 1.0),  # the same dimensions in another order
        ("torus:4x4", "2x2x2x2", 1, 1.0),  # two pairs within each dimension of four
        ("torus:16x4", "4x4x4", 7, (1.5 + 4 + 1) / 3),  # 4 x 4 to and fro along 16: means of 1.5 and 4
        ("torus:4x4", "4x4", 1, 1.0),
    ],
)
def test_ranks_are_laid_near_to_their_neighbours(machine: str, grid: str, most: int, mean: float) -> None:
    (found,) = simulator.simulate(Case(machine, "halo/put", (8,), grid))
    assert found.extra["most_hops"] == most
    assert found.extra["mean_hops"] == pytest.approx(mean, rel=1e-5)


@pytest.mark.parametrize("machine", ["torus:4x4x4", "fat-tree:8x8/1x2"])
def test_shuffled_ranks_are_slower(machine: str) -> None:
    near = times(Case(machine, "halo/put", (64 << 10,), "4x4x4"))[0]
    far = times(Case(machine, "halo/put", (64 << 10,), "4x4x4", seed=1))[0]
    assert far > 1.2 * near


def test_two_sided_takes_the_dimensions_one_after_another_and_fetches_what_is_large() -> None:
    small, large = times(Case("torus:4x4x4", "halo/two-sided", (1024, M)))
    assert small == pytest.approx(3 * bounds.message_us(1, 1024), rel=1e-6)
    assert large == pytest.approx(3 * (2 * bounds.message_us(1, 8) + bounds.message_us(1, M)), rel=1e-6)


def test_a_host_bounds_all_links_together() -> None:
    (us,) = times(Case("torus:4x4", "halo/put", (M,), host_gbits=75))
    assert us == pytest.approx(bounds.message_us(1, 4 * M), rel=1e-6)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--machine", "ring:8"], "'ring:8' is no machine; give torus:8x8x4 or fat-tree:16x64/1x16"),
        (["--machine", "torus:4xx4"], "is no machine"),
        (["--machine", "torus:0x4"], "is no machine"),
        (["--machine", "fat-tree:4x4/1"], "has 2 levels down and 1 up"),
        (["--machine", "torus:1"], "has 1 nodes; give 2 to 65536"),
        (["--grid", "3x5"], "--grid has 15 ranks, and torus:4x4 16 nodes"),
        (["--pattern", "alltoall"], "--pattern is 'alltoall'"),
        (["--bytes", "1k"], "--bytes is '1k'"),
        (["--to", "16"], "--to is '16'; give a node from 1 to 15"),
        (["--hop-ns", "850"], "--message-ns includes a hop"),
        (["--machine", "torus:3", "--pattern", "allreduce/doubling"], "needs a power of two of ranks"),
    ],
)
def test_what_cannot_be_is_refused(options: list[str], says: str) -> None:
    with pytest.raises(click.ClickException) as caught:
        simulator.run(options)
    assert says in caught.value.message


def test_help_names_options_that_there_are() -> None:
    program = simulator.build()
    said = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
    named = re.findall(r"^  (--[a-z-]+)", said, re.MULTILINE)
    assert "--shuffle" in named
    for option in named:
        done = subprocess.run([program, option, "?"], capture_output=True, text=True, check=False)
        assert done.returncode != 0
        assert "'?'" in done.stderr, option  # the option is known, and '?' is no value for it


def test_the_quick_study(tmp_path: Path) -> None:
    command = [sys.executable, str(APP / "scaling.py"), "--quick", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=clean_environment())
    assert done.returncode == 0, done.stderr
    found = records.read(tmp_path / "records.jsonl")
    assert {record.test for record in found} == {"simulated_message", "simulated_halo", "simulated_allreduce"}
    assert all(record.validated and record.extra["simulated"] for record in found)
    kept = records.read(ROOT / "results" / "simgrid" / "scale.jsonl")
    before = {(record.command, record.bytes): record.p50_us for record in kept}
    for record in found:
        assert record.p50_us == pytest.approx(before[record.command, record.bytes], rel=1e-5), record.command
    assert "allreduce on 16 nodes" in (tmp_path / "scale.html").read_text()
