"""docs/nic/mpi-compared.md has the figures of results/cpu-2-mpi, and they are good enough."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from peerway_measure import records

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "apps" / "mpi"))

import curves  # noqa: E402
from compare import BANDWIDTH_SIZES, FRESH_SIZES, LATENCY_SIZES  # noqa: E402
from transports import TRANSPORTS  # noqa: E402

M = 1 << 20
PAGE = (ROOT / "docs" / "nic" / "mpi-compared.md").read_text()
FOUND = records.read(ROOT / "results" / "cpu-2-mpi" / "records.jsonl")


def test_the_page_is_that_of_the_records() -> None:
    assert curves.fill(PAGE, FOUND) == PAGE
    for name in curves.PICTURES:
        assert f"(../pictures/{name}.svg)" in PAGE
        picture = (ROOT / "docs" / "pictures" / f"{name}.svg").read_text()
        assert FOUND[0].extra["ucx"] in picture


def test_every_transport_has_a_record_of_every_size() -> None:
    cases = {"mpi_latency": LATENCY_SIZES, "mpi_bw": BANDWIDTH_SIZES, "mpi_fresh_bw": FRESH_SIZES}
    wanted = {(test, size) for test, sizes in cases.items() for size in sizes}
    for transport in TRANSPORTS:
        of_transport = [record for record in FOUND if record.via == transport.name]
        assert {(record.test, record.bytes) for record in of_transport} == wanted
        assert all(record.validated for record in of_transport)
        assert {record.command for record in of_transport} == {of_transport[0].command}
        # The option was called --way when these were measured.
        assert f"apps/mpi/compare.py --way {transport.name} " in of_transport[0].command


@pytest.mark.parametrize("size", LATENCY_SIZES)
def test_messages_over_the_nic_are_no_later_than_over_tcp(size: int) -> None:
    own, tcp = (curves.value(FOUND, "mpi_latency", via, size) for via in ("nic:torus", "tcp"))
    assert own is not None
    assert tcp is not None
    assert own <= tcp


def test_the_bandwidth_over_the_nic_is_near_that_of_shared_memory() -> None:
    own, peer = (curves.value(FOUND, "mpi_bw", via, M, "bandwidth_MBps") for via in ("nic:torus", "posix"))
    assert own is not None
    assert peer is not None
    assert own >= 0.8 * peer
