"""The real peers between real processes on host memory: all that they can do arrives as it was sent."""

from __future__ import annotations

import os
from dataclasses import dataclass

import pytest

from peerway_measure.bench import halo, peers
from peerway_measure.bench.peers import nccl, nvshmem, places, record

SIZES = (1, 8, 4096, 65537, 1 << 20)
ITERATIONS = 20


@pytest.fixture(autouse=True)
def compiled_once(own_settings: None, shared_cache: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PEERWAY_CACHE", shared_cache)


@dataclass(frozen=True)
class Form:
    label: str
    blocks: int
    block_bytes: int
    pitch: int


def face(n: int, across: str) -> Form:
    blocks, block, pitch = {"i": (1, n * n, n * n), "j": (n, n, n * n), "k": (n * n, 1, n)}[across]
    return Form(f"cube:{n}/{across}", blocks, 8 * block, 8 * pitch)


FACES = tuple(face(n, across) for n in (2, 16) for across in "ijk")


def all_cases() -> tuple[peers.Case, ...]:
    cases = [peers.Case("signal_latency", Form("contiguous", 1, 8, 8), iterations=ITERATIONS)]
    cases += [peers.Case("cube", form, iterations=ITERATIONS) for form in FACES]
    for size in SIZES:
        form = Form("contiguous", 1, size, size)
        for test in ("put_latency", "pingpong", "get_latency", "exchange", "plan_latency"):
            cases.append(peers.Case(test, form, iterations=ITERATIONS))
        for test in ("put_bw", "get_bw", "put_bibw", "put_mbw_mr"):
            cases.append(peers.Case(test, form, window=8, iterations=ITERATIONS))
    return tuple(cases)


LONG = pytest.mark.long


@pytest.fixture(scope="module", params=["openmpi", "ucx"])
def peer(request: pytest.FixtureRequest) -> peers.Peer:
    library = peers.PEERS[request.param]()
    missing = library.find("host")
    if isinstance(missing, peers.Missing):
        pytest.skip(f"{library.name}: {missing.reason}; {missing.remedy}")
    return library


def test_all_that_a_peer_can_do_arrives_and_makes_records(peer: peers.Peer) -> None:
    plan = peers.Plan("host", all_cases())
    got = list(peer.run(plan, lambda *_: None))
    assert [outcome for outcome in got if isinstance(outcome, peers.Failed) or not outcome["validated"]] == []
    points = {
        (outcome["via"], outcome["test"], outcome["shape"], outcome["bytes"])
        for outcome in got
        if isinstance(outcome, dict)
    }
    assert points == {
        (via, case.test, case.form.label, case.bytes)
        for via in peer.variants
        for case in plan.cases
        if (case.test, case.kind) in peer.ability(via, "host")
    }
    for outcome in got:
        assert isinstance(outcome, dict)
        converted = record.as_record(outcome, plan, {"host": "here"})
        assert converted.iterations == ITERATIONS
        assert converted.p50_us > 0


def test_samples_are_as_many_as_fit_the_budget(peer: peers.Peer) -> None:
    case = peers.Case("put_latency", Form("contiguous", 1, 8, 8))
    plan = peers.Plan("host", (case,), variants=frozenset({peer.name}), budget_s=0.05)
    (outcome,) = peer.run(plan, lambda *_: None)
    assert isinstance(outcome, dict)
    assert 10 <= outcome["iterations"] <= 20000
    assert outcome["min_us"] <= outcome["p50_us"] <= outcome["p99_us"]


@pytest.mark.parametrize("via", ["openmpi", pytest.param("ucx", marks=LONG)])
def test_four_ranks_are_two_pairs_at_once(via: str) -> None:
    library = peers.PEERS[via]()
    if isinstance(library.find("host"), peers.Missing):
        pytest.skip(f"{via} is not installed")
    case = peers.Case("put_mbw_mr", Form("contiguous", 1, 64, 64), window=8, iterations=3)
    plan = peers.Plan("host", (case,), ranks=4, variants=frozenset({via}))
    (outcome,) = library.run(plan, lambda *_: None)
    assert isinstance(outcome, dict)
    assert (outcome["ranks"], outcome["validated"]) == (4, True)


HALOS = (
    halo.make([2, 1], [64, 32], 8),
    halo.make([1, 2], [16, 7], 8, [(0, 0), (1, 2)], [True, False]),
    halo.make([1, 2], [5, 6, 4], 12, [(2, 1), (1, 0), (3, 3)], [True, True, False], corners=True),
    halo.make([2, 1, 1, 1], [4, 2, 4, 2], 192),
    halo.make([2], [9], 3, [(2, 3)]),
    halo.make([1, 2], [2, 3, 2, 2, 1, 2, 2], 1, [(1, 1)] * 7, corners=True),
)


def exchanged(*halos: halo.Halo, ranks: int) -> list[dict[str, object]]:
    library = peers.PEERS["openmpi"]()
    if isinstance(library.find("host"), peers.Missing):
        pytest.skip("openmpi is not installed")
    cases = [
        peers.Case("halo", Form(each.label, 1, each.bytes, each.bytes), iterations=ITERATIONS)
        for each in halos
    ]
    got = list(library.run(peers.Plan("host", tuple(cases), ranks=ranks), lambda *_: None))
    assert [each for each in got if isinstance(each, peers.Failed)] == []
    return [each for each in got if isinstance(each, dict)]


def test_halos_arrive_by_datatypes_and_packed() -> None:
    got = exchanged(*HALOS, ranks=2)
    assert {(each["via"], each["shape"]) for each in got if each["validated"]} == {
        (via, each.label) for via in ("openmpi", "openmpi/pack") for each in HALOS
    }


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(
            halo.make([1], [4, 4], 8, [(1, 1), (1, 1)], corners=True), id="with oneself", marks=LONG
        ),
        pytest.param(
            halo.make([3], [5, 3], 24, [(2, 1), (0, 0)], [False, True]), id="three in a row", marks=LONG
        ),
        pytest.param(halo.make([2, 4, 1, 1], [4, 2, 4, 4], 192), id="a lattice"),
    ],
)
def test_a_halo_is_exchanged_by_as_many_ranks_as_its_grid_has(case: halo.Halo) -> None:
    got = exchanged(case, ranks=case.ranks)
    assert [(outcome["via"], outcome["ranks"], outcome["validated"]) for outcome in got] == [
        ("openmpi", case.ranks, True),
        ("openmpi/pack", case.ranks, True),
    ]


@pytest.mark.parametrize("peer", [nccl.Nccl(), nvshmem.Nvshmem()], ids=lambda peer: peer.name)
def test_gpu_programs_build_without_a_gpu(peer: nccl.Nccl | nvshmem.Nvshmem) -> None:
    root = places.cuda_root()
    built = peer.built("sm_90")
    if isinstance(built, peers.Missing) and "was not found" in built.reason:
        pytest.skip(f"{peer.name}: {built.reason}; {built.remedy}")
    assert root is not None
    assert isinstance(built, peers.Found), built
    assert os.access(built.program, os.X_OK)
