"""docs/measure/scale.md has the figures of results/simgrid, and none beats its lower bound."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from peerway_common.units import time_text
from peerway_measure import records
from peerway_measure.records import Record

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "scale"))

import bounds  # noqa: E402
from scaling import NODES, TORI, TREES, cases  # noqa: E402

PAGE = (ROOT / "docs" / "measure" / "scale.md").read_text()
FOUND = records.read(ROOT / "results" / "simgrid" / "scale.jsonl")
K, M = 1 << 10, 1 << 20
MACHINES = {
    f"{dimensions}-D torus": [f"torus:{name}" for name in names] for dimensions, names in TORI.items()
}
MACHINES |= {f"fat tree, {levels}": [f"fat-tree:{name}" for name in names] for levels, names in TREES.items()}


def time_of(shape: str, via: str, size: int, test: str = "halo") -> float | None:
    """Microseconds; None if it was not simulated."""
    key = (f"simulated_{test}", shape, via, size)
    times = [r.p50_us for r in FOUND if (r.test, r.shape, r.via, r.bytes) == key]
    assert len(times) <= 1, f"{key} is there {len(times)} times"
    return times[0] if times else None


def lattice(machine: str, at: int, via: str = "put", limit: str = "") -> float | None:
    """A halo of the 4-D lattice with faces of 64 KiB."""
    return time_of(f"{MACHINES[machine][at]}{limit} grid:{TORI[4][at]}", via, 64 * K)


def row(name: str, times: list[float | None]) -> str:
    return "| " + " | ".join([name, *("–" if us is None else time_text(us) for us in times)]) + " |"


def by_nodes() -> Iterator[str]:
    for name in MACHINES:
        yield row(name, [lattice(name, at) for at in range(len(NODES))])
    limited = [lattice("4-D torus", at, limit="/75G") for at in range(len(NODES))]
    yield row("4-D torus, 75 Gbit/s a node", limited)


def by_mapping() -> Iterator[str]:
    for name in MACHINES:
        cells = []
        for at in (2, 3):
            near, far = lattice(name, at), lattice(name, at, "put/shuffled")
            known = near is not None and far is not None
            cells += [time_text(near), time_text(far), f"{far / near:.1f}"] if known else ["–"] * 3
        if cells != ["–"] * 6:
            yield "| " + " | ".join([name, *cells]) + " |"


def by_protocol() -> Iterator[str]:
    for dimensions, names in TORI.items():
        shape = f"torus:{names[3]} grid:{names[3]}"
        times = [time_of(shape, via, size) for size in (K, 64 * K, M) for via in ("put", "two-sided")]
        yield row(f"{dimensions}-D", times)


ALLREDUCE = {
    "rings on all links, 4-D torus": ("torus:8x8x4x4 grid:8x8x4x4", "rings/all-links"),
    "rings on all links, 3-D torus": ("torus:16x8x8 grid:16x8x8", "rings/all-links"),
    "rings, 4-D torus": ("torus:8x8x4x4 grid:8x8x4x4", "rings"),
    "rings, fat tree": ("fat-tree:32x32/1x32 grid:8x8x4x4", "rings"),
    "doubling, 4-D torus": ("torus:8x8x4x4 grid:8x8x4x4", "doubling"),
    "doubling, 3-D torus": ("torus:16x8x8 grid:16x8x8", "doubling"),
    "doubling, fat tree": ("fat-tree:32x32/1x32 grid:32x32", "doubling"),
    "one ring, 4-D torus": ("torus:8x8x4x4 grid:1024", "ring"),
}


def by_algorithm() -> Iterator[str]:
    for name, (shape, via) in ALLREDUCE.items():
        yield row(name, [time_of(shape, via, size, "allreduce") for size in (8, 64 * K, M, 16 * M)])


def reductions_by_nodes() -> Iterator[str]:
    trees = TREES["2 levels"]
    own = [f"torus:{name} grid:{name}" for name in TORI[4]]
    of_tree = [f"fat-tree:{name} grid:{name.split('/')[0]}" for name in trees]
    rings = [f"fat-tree:{name} grid:{own}" for name, own in zip(trees, TORI[4], strict=True)]
    for name, shapes, via, size in (
        ("8 B, doubling, 4-D torus", own, "doubling", 8),
        ("8 B, doubling, fat tree", of_tree, "doubling", 8),
        ("16 MiB, rings on all links, 4-D torus", own, "rings/all-links", 16 * M),
        ("16 MiB, rings, fat tree", rings, "rings", 16 * M),
    ):
        yield row(name, [time_of(shape, via, size, "allreduce") for shape in shapes])


def claims() -> Iterator[str]:
    """The claims at the start of the page's text."""

    def of(*keys: str | int) -> float:
        us = time_of(*keys)  # type: ignore[arg-type]
        assert us is not None, keys
        return us

    lattices = {name: [lattice(name, at) or 0.0 for at in range(len(NODES))] for name in MACHINES}
    four, tree = lattices["4-D torus"][3], lattices["fat tree, 2 levels"][3]
    far = lattice("4-D torus", 3, "put/shuffled") or 0.0
    yield f"takes {time_text(four)} on 256 nodes and on 1,024"
    assert four == lattices["4-D torus"][2]
    yield f"{tree / four:.1f} times as long on a fat tree"
    three, two_d = lattices["3-D torus"][3], lattices["2-D torus"][3]
    yield f"{three / four:.1f} times as long on a 3-D torus and {two_d / four:.1f} times on a 2-D one"
    yield f"{far / four:.1f} times as long on 1,024 nodes of a 4-D torus"
    far_tree = lattice("fat tree, 2 levels", 3, "put/shuffled") or 0.0
    yield f"{far_tree / tree:.1f} times on a fat tree of 2 levels: {time_text(far)} and {time_text(far_tree)}"
    own = "torus:8x8x4x4 grid:8x8x4x4"
    big = of(own, "rings/all-links", 16 * M, "allreduce")
    on_tree = of("fat-tree:32x32/1x32 grid:8x8x4x4", "rings", 16 * M, "allreduce")
    yield f"16 MiB takes {time_text(big)} on a 4-D torus and {time_text(on_tree)} on a fat tree"
    small = of(own, "doubling", 8, "allreduce")
    yield f"8 B takes {time_text(small)} on 1,024 nodes"
    one = of("torus:8x8x4x4 grid:1024", "ring", 16 * M, "allreduce")
    yield f"{one / big:.1f} times as long"
    two, put = of(own, "two-sided", 64 * K), of(own, "put", 64 * K)
    yield f"{two / put:.1f} times as long as puts"


LINES = [*by_nodes(), *by_mapping(), *by_protocol(), *by_algorithm(), *reductions_by_nodes()]


@pytest.mark.parametrize("line", LINES)
def test_a_row_has_the_numbers_of_the_records(line: str) -> None:
    assert line in PAGE.splitlines()


@pytest.mark.parametrize("claim", [*claims()])
def test_what_is_said_in_words_is_in_the_records(claim: str) -> None:
    assert claim in " ".join(PAGE.split())


def test_the_page_has_no_other_rows() -> None:
    shown = [line for line in PAGE.splitlines() if line.startswith("| ") and "µs" in line]
    assert sorted(shown) == sorted(line for line in LINES if "µs" in line)


def test_the_pictures_are_there() -> None:
    for name in ("scale-halo", "scale-mapping", "scale-allreduce"):
        assert f"(../pictures/{name}.svg)" in PAGE
        assert "simulated with SimGrid" in (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()


def test_the_records_are_those_of_the_study() -> None:
    commands = [" ".join(["python apps/scale/simulator.py", *case.options]) for case in cases(NODES[-1])]
    assert list(dict.fromkeys(record.command for record in FOUND)) == commands


@pytest.mark.parametrize("record", FOUND, ids=lambda r: f"{r.shape} {r.via} {r.bytes}")
def test_a_record_says_that_it_is_simulated_and_is_no_better_than_can_be(record: Record) -> None:
    assert record.validated
    assert record.test.startswith("simulated_")
    assert record.host.startswith("SimGrid")
    assert record.device.startswith("simulated")
    kind = record.test.removeprefix("simulated_")
    limit = 75 if "/75G" in record.shape else 0
    least = bounds.least_us(
        record.extra["machine"], kind, record.extra["grid"], record.bytes, record.extra, limit
    )
    assert record.p50_us >= least * (1 - 1e-6)


@pytest.mark.parametrize(
    ("machine", "count", "diameter", "links"),
    [
        ("torus:16", 16, 8, 2),
        ("torus:4x4x2x2", 64, 6, 6),
        ("torus:8x8x4x4", 1024, 12, 8),
        ("torus:5x3", 15, 3, 4),
        ("fat-tree:32x32/1x32", 1024, 4, 1),
        ("fat-tree:16x8x8/1x16x8", 1024, 6, 1),
    ],
)
def test_what_bounds_are_made_of(machine: str, count: int, diameter: int, links: int) -> None:
    assert bounds.nodes(machine) == count
    assert bounds.diameter(machine) == diameter
    assert bounds.links_of_node(machine) == links


def test_bounds_by_hand() -> None:
    assert bounds.message_us(3, 9375) == pytest.approx(0.850 + 2 * 0.129 + 1)
    assert bounds.halo_us("torus:4x4", "4x4", 9375, 2, 0) == pytest.approx(0.850 + 2)
    assert bounds.halo_us("torus:4x4", "4x4", 9375, 1, 75) == pytest.approx(0.850 + 4)
    assert bounds.allreduce_us("torus:4x4", 4 * 9375 * 16, 0) == pytest.approx(2 * 15)
    assert bounds.allreduce_us("fat-tree:4x4/1x4", 8, 0) == pytest.approx(0.850 + 3 * 0.129)
