"""docs/apps/hpl.md has the predictions of results/simgrid, and none beats its lower bound."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from peerway_measure import records
from peerway_measure.records import Record

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "scale"))

import bounds  # noqa: E402
import linpack  # noqa: E402
from linpack import LARGEST, RPEAK, TORI, TREES, Linpack  # noqa: E402

PAGE = (ROOT / "docs" / "apps" / "hpl.md").read_text()
FOUND = records.read(ROOT / "results" / "simgrid" / "hpl.jsonl")
N = 16 * LARGEST


def record_of(case: Linpack) -> Record:
    (found,) = (record for record in FOUND if linpack.matches(record, case))
    return found


def cells(record: Record | None) -> list[str]:
    """Seconds, TFLOP/s per GPU, its share of Rpeak, and the time of its kernels."""
    if record is None:
        return ["–"] * 4
    rate = float(record.extra["tflops_gpu"])
    busy = f"{100 * float(record.extra['busy']):.0f} %"
    return [f"{record.p50_us / 1e6:.0f} s", f"{rate:.1f}", f"{100 * rate / RPEAK:.0f} %", busy]


def by_gpus() -> Iterator[str]:
    for gpus, machine in TORI.items():
        n = LARGEST * round(gpus**0.5)
        tree = record_of(Linpack(TREES[gpus], n)) if gpus in TREES else None
        line = [f"{gpus}", f"{n:,}", *cells(record_of(Linpack(machine, n))), *cells(tree)]
        yield "| " + " | ".join(line) + " |"


def by_change() -> Iterator[str]:
    torus, tree = TORI[256], TREES[256]
    for name, on_torus, on_tree in (
        ("as above", Linpack(torus, N), Linpack(tree, N)),
        ("half of N", Linpack(torus, N // 2), Linpack(tree, N // 2)),
        ("links of 200 Gbit/s", Linpack(torus, N, link_gbits=200), Linpack(tree, N, link_gbits=200)),
        ("links of 400 Gbit/s", Linpack(torus, N, link_gbits=400), Linpack(tree, N, link_gbits=400)),
        ("pivots by doubling", Linpack(torus, N, doubling=True), Linpack(tree, N, doubling=True)),
        ("kernels of a panel 4 times as long", Linpack(torus, N, slower=4), None),
        ("8 × 32 ranks, on a torus of 8 × 32", Linpack("torus:8x32", N), None),
        ("panels by `1ring`", Linpack(torus, N, broadcast="1ring"), None),
        ("panels by `2ringM`", Linpack(torus, N, broadcast="2ringM"), None),
        ("panels by `long`", Linpack(torus, N, broadcast="long"), None),
        ("panels by `tree`", Linpack(torus, N, broadcast="tree"), None),
    ):
        own = [cells(record_of(case) if case else None) for case in (on_torus, on_tree)]
        yield "| " + " | ".join([name, *own[0], *own[1]]) + " |"


def claims() -> Iterator[str]:
    """The claims of the page's text."""
    torus, tree = record_of(Linpack(TORI[256], N)), record_of(Linpack(TREES[256], N))
    yield f"{torus.extra['tflops'] / 1e3:.1f} PFLOP/s on the torus and {tree.extra['tflops'] / 1e3:.1f}"
    yield f"{torus.extra['shares']:.0f} shares on the torus, {tree.extra['shares']:.0f} on the fat tree"
    doubling = record_of(Linpack(TORI[256], N, doubling=True))
    yield f"{torus.extra['pivot_us']:.0f} µs on the torus ({doubling.extra['pivot_us']:.0f} by doubling)"
    more = record_of(Linpack(TORI[256], N, panels=512))
    yield f"with 512 panels the torus takes {100 * (more.p50_us / torus.p50_us - 1):.1f} % longer"
    fewer = record_of(Linpack(TREES[256], N, panels=64))
    yield f"with 64 the fat tree {100 * (1 - fewer.p50_us / tree.p50_us):.1f} % less"
    own = linpack.kernels()
    yield f"{own.gemm_tflops} TFLOP/s"
    yield f"{own.column_us:.1f} µs for each column of a panel and {own.element_ps:.0f} ps for each element"
    off = max(abs(own.seconds(round(run["n"])) / run["seconds"] - 1) for run in linpack.runs())
    yield f"within {100 * off:.1f} %"


LINES = [*by_gpus(), *by_change()]


@pytest.mark.parametrize("line", LINES)
def test_a_row_has_the_numbers_of_the_records(line: str) -> None:
    assert line in PAGE.splitlines()


@pytest.mark.parametrize("claim", [*claims()])
def test_what_is_said_in_words_is_in_the_records(claim: str) -> None:
    assert claim in " ".join(PAGE.split())


def test_the_records_are_those_of_the_study() -> None:
    wanted = [*linpack.cases()]
    assert len(wanted) == len(FOUND)
    assert all(linpack.matches(record, case) for record, case in zip(FOUND, wanted, strict=True))


@pytest.mark.parametrize("record", FOUND, ids=lambda r: f"{r.shape} {r.via} {r.bytes}")
def test_a_record_says_that_it_is_simulated_and_is_no_better_than_can_be(record: Record) -> None:
    assert record.validated
    assert record.test == "simulated_hpl"
    assert record.host.startswith("SimGrid")
    links = bounds.links_of_node(record.extra["machine"])
    assert record.p50_us >= bounds.hpl_us(record.extra, record.extra, links)
    assert record.extra["busy"] <= 1


def test_the_picture_is_there() -> None:
    for page in (PAGE, (ROOT / "docs" / "measure" / "scale.md").read_text()):
        assert "(../pictures/hpl-predicted.svg)" in page
    assert "simulated" in (ROOT / "docs" / "pictures" / "hpl-predicted.svg").read_text()


def test_bounds_by_hand() -> None:
    case = {"p": 1, "q": 1, "nb": 1000, "gemm_tflops": 1, "element_ps": 0, "column_us": 0, "link_gbits": 75}
    # After the first two of three panels, 2,000 and 1,000 rows and columns remain.
    assert bounds.hpl_us({"n": 3000}, case, 4) == pytest.approx(0.999 * 2 * 1000 * 5e6 / 1e6)
    assert bounds.hpl_us({"n": 3000}, case | {"column_us": 2}, 4) == pytest.approx(0.999 * (1e4 + 6000))
    alone = {"p": 2, "q": 1, "gemm_tflops": 1e9}
    assert bounds.hpl_us({"n": 3000}, case | alone, 4) == pytest.approx(0.999 * 3000 * 0.850)
