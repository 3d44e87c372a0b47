"""Samples in a cluster of VictoriaMetrics: its addresses, and vmstorage that restart or are away.

What is written and read is in the contract of the stores, test_jobs_store.py.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from jobs_scene import filed
from test_jobs_store import batch
from victoria_cluster import Cluster

from peerway_jobs.store.prom_addresses import Addresses, addresses
from peerway_jobs.store.promql import PromStore
from peerway_jobs.store.samples import StoreFailed, Thinning
from peerway_jobs.store.write_ahead import AheadStore

INSERT, SELECT = "http://i:8480/insert/0/prometheus", "http://s:8481/select/0/prometheus"
STORAGES = ("http://b:8482", "http://a:8482/")
NOWHERE = "http://127.0.0.1:1"  # no test here reads or writes a sample


def test_the_addresses_of_a_server_and_of_a_cluster() -> None:
    assert addresses("http://v:8428/", "", ()) == Addresses(*2 * ("http://v:8428",), ("http://v:8428",))
    found = addresses(INSERT + "/", SELECT, STORAGES)
    assert found == Addresses(INSERT, SELECT, ("http://a:8482", "http://b:8482"))
    behind = "https://auth.example.org/vm/{}/7:0/prometheus"  # vmauth
    found = addresses(behind.format("insert"), "http://s/select/7/prometheus", STORAGES)
    assert found.insert == behind.format("insert")


@pytest.mark.parametrize(
    ("insert", "select", "storages", "why"),
    [
        (INSERT, "", (), "is the vminsert of a cluster: also give --samples-select"),
        (INSERT, SELECT, (), "needs both --samples-select"),
        (INSERT, "", STORAGES, "needs both --samples-select"),
        ("http://i:8480", SELECT, STORAGES, "does not end in /insert/TENANT/prometheus"),
        (INSERT + "/api/v1/write", SELECT, STORAGES, "does not end in /insert/TENANT/prometheus"),
        (INSERT, "http://s:8481/", STORAGES, "does not end in /select/TENANT/prometheus"),
        (INSERT, "http://s/select/7/prometheus", STORAGES, "written for tenant 0 and read of tenant 7"),
        (INSERT, SELECT, ("a:8482",), "is an address such as"),
        (INSERT + "?x=1", SELECT, STORAGES, "is an address such as"),
    ],
)
def test_addresses_that_would_lose_samples_are_refused(
    insert: str, select: str, storages: tuple[str, ...], why: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        PromStore(insert, select, storages)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with contextlib.ExitStack() as stack:
        yield Cluster(NOWHERE, stack)


def test_a_vmstorage_that_restarts_or_is_away_changes_the_start(cluster: Cluster) -> None:
    store = cluster.store()
    starts = {store.began()}
    for change in (["1000", "2000"], ["1000", ""], ["", "2000"]):
        cluster.starts = change
        assert store.began() not in starts
        starts.add(store.began())
    cluster.starts = ["", ""]
    with pytest.raises(StoreFailed, match="none of 2 vmstorage answers"):
        store.began()


def test_what_is_no_vmstorage_is_named(cluster: Cluster) -> None:
    store = cluster.store()
    cluster.metric = "process_cpu_seconds_total"  # a page of metrics, but not of a database
    with pytest.raises(
        StoreFailed, match=f"{min(cluster.storages)}/metrics has no process_start_time_seconds"
    ):
        store.began()


@pytest.mark.parametrize("change", ["2000", ""], ids=["restarts", "is away"])
def test_what_one_vmstorage_may_have_lost_is_written_again(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    written: list[int] = []
    series = cluster.store()
    monkeypatch.setattr(series, "put", lambda batches: written.extend(b.batch.seq for b in batches))
    monkeypatch.setattr("peerway_jobs.store.write_ahead._CHECK_S", -1.0)
    monkeypatch.setattr("peerway_jobs.store.write_ahead._SECOND_S", 0.0)
    store = AheadStore(series, tmp_path)
    store.put([filed(batch(seq), period_ms=10_000) for seq in (1, 2)])
    store.tidy(0, Thinning())
    assert written == [1, 2]
    cluster.starts[1] = change
    store.tidy(0, Thinning())
    assert written == [1, 2, 1, 2]
    cluster.starts[1] = "3000"  # it is back, and empty
    store.tidy(0, Thinning())
    store.close()
    assert written == [1, 2] * 3
    with contextlib.closing(sqlite3.connect(tmp_path / "ahead.db")) as base:
        assert base.execute("SELECT began FROM process").fetchone()[0].count("http://") == 2
