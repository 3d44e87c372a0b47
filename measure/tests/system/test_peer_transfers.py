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


@pytest.fixture(scope="module", params=["openmpi", "ucx"])
def peer(request: pytest.FixtureRequest) -> peers.Peer:
    made = peers.PEERS[request.param]()
    found = made.find("host")
    if isinstance(found, peers.Missing):
        pytest.skip(f"{made.name}: {found.reason}; {found.remedy}")
    return made


def test_all_that_a_peer_can_do_arrives_and_makes_records(peer: peers.Peer) -> None:
    plan = peers.Plan("host", all_cases())
    got = list(peer.run(plan, lambda *_: None))
    assert [one for one in got if isinstance(one, peers.Failed) or not one["validated"]] == []
    points = {(one["via"], one["test"], one["shape"], one["bytes"]) for one in got if isinstance(one, dict)}
    assert points == {
        (via, case.test, case.form.label, case.bytes)
        for via in peer.variants
        for case in plan.cases
        if (case.test, case.kind) in peer.ability(via, "host")
    }
    for one in got:
        assert isinstance(one, dict)
        made = record.as_record(one, plan, {"host": "here"})
        assert made.iterations == ITERATIONS
        assert made.p50_us > 0


def test_samples_are_as_many_as_fit_the_budget(peer: peers.Peer) -> None:
    case = peers.Case("put_latency", Form("contiguous", 1, 8, 8))
    plan = peers.Plan("host", (case,), variants=frozenset({peer.name}), budget_s=0.05)
    (one,) = peer.run(plan, lambda *_: None)
    assert isinstance(one, dict)
    assert 10 <= one["iterations"] <= 20000
    assert one["min_us"] <= one["p50_us"] <= one["p99_us"]


@pytest.mark.parametrize("via", ["openmpi", "ucx"])
def test_four_ranks_are_two_pairs_at_once(via: str) -> None:
    made = peers.PEERS[via]()
    if isinstance(made.find("host"), peers.Missing):
        pytest.skip(f"{via} is not installed")
    case = peers.Case("put_mbw_mr", Form("contiguous", 1, 64, 64), window=8, iterations=3)
    plan = peers.Plan("host", (case,), ranks=4, variants=frozenset({via}))
    (one,) = made.run(plan, lambda *_: None)
    assert isinstance(one, dict)
    assert (one["ranks"], one["validated"]) == (4, True)


HALOS = (
    halo.make([2, 1], [64, 32], 8),
    halo.make([1, 2], [16, 7], 8, [(0, 0), (1, 2)], [True, False]),
    halo.make([1, 2], [5, 6, 4], 12, [(2, 1), (1, 0), (3, 3)], [True, True, False], corners=True),
    halo.make([2, 1, 1, 1], [4, 2, 4, 2], 192),
    halo.make([2], [9], 3, [(2, 3)]),
    halo.make([1, 2], [2, 3, 2, 2, 1, 2, 2], 1, [(1, 1)] * 7, corners=True),
)


def exchanged(*halos: halo.Halo, ranks: int) -> list[dict[str, object]]:
    made = peers.PEERS["openmpi"]()
    if isinstance(made.find("host"), peers.Missing):
        pytest.skip("openmpi is not installed")
    cases = [
        peers.Case("halo", Form(one.label, 1, one.bytes, one.bytes), iterations=ITERATIONS) for one in halos
    ]
    got = list(made.run(peers.Plan("host", tuple(cases), ranks=ranks), lambda *_: None))
    assert [one for one in got if isinstance(one, peers.Failed)] == []
    return [one for one in got if isinstance(one, dict)]


def test_halos_arrive_by_datatypes_and_packed() -> None:
    got = exchanged(*HALOS, ranks=2)
    assert {(one["via"], one["shape"]) for one in got if one["validated"]} == {
        (via, one.label) for via in ("openmpi", "openmpi/pack") for one in HALOS
    }


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(halo.make([1], [4, 4], 8, [(1, 1), (1, 1)], corners=True), id="with oneself"),
        pytest.param(halo.make([3], [5, 3], 24, [(2, 1), (0, 0)], [False, True]), id="three in a row"),
        pytest.param(halo.make([2, 4, 1, 1], [4, 2, 4, 4], 192), id="a lattice"),
    ],
)
def test_a_halo_is_exchanged_by_as_many_ranks_as_its_grid_has(case: halo.Halo) -> None:
    got = exchanged(case, ranks=case.ranks)
    assert [(one["via"], one["ranks"], one["validated"]) for one in got] == [
        ("openmpi", case.ranks, True),
        ("openmpi/pack", case.ranks, True),
    ]


@pytest.mark.parametrize("peer", [nccl.Nccl(), nvshmem.Nvshmem()], ids=lambda peer: peer.name)
def test_gpu_programs_build_without_a_gpu(peer: nccl.Nccl | nvshmem.Nvshmem) -> None:
    root = places.cuda_root()
    found = peer.built("sm_90")
    if isinstance(found, peers.Missing) and "was not found" in found.reason:
        pytest.skip(f"{peer.name}: {found.reason}; {found.remedy}")
    assert root is not None
    assert isinstance(found, peers.Found), found
    assert os.access(found.program, os.X_OK)
