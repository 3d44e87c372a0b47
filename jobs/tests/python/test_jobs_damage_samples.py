"""Whatever the files of samples hold, it breaks no page, verdict, seal or thinning: what cannot be read is
left out and named, and all else counts as before.
"""

from __future__ import annotations

import json
import math
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
import zstandard
from jobs_scene import START, Job, filed
from jobs_server import NOW, Server, node_batch, scene, serving
from test_jobs_api import bearer

from peerway_jobs.batch import Batch, encode
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.checks import all_checks
from peerway_jobs.store.chunk import MAGIC, BadChunk, Points, packed, unpacked_all
from peerway_jobs.store.chunks import ChunkStore
from peerway_jobs.store.promql import PromStore
from peerway_jobs.store.sample_damage import BATCHES, CHUNKS, damaged_samples
from peerway_jobs.store.sample_files import day_of
from peerway_jobs.store.samples import DAY_MS, Filed, Samples, StoreFailed, Thinning
from peerway_jobs.store.schema import opened
from peerway_jobs.store.write_ahead import AheadStore

VALUES = ["x", b"\xff", -(1 << 63), 1 << 62, -1e300, math.inf, "9" * 400]
NODE = "n104-0"
DAY = day_of(START * 1000)
MONTH = f"month-{DAY[4:11]}"
LATER_MS = int(NOW * 1000) + 40 * DAY_MS


def block(head: object, columns: bytes = b"") -> bytes:
    """A chunk with this head."""
    text = head if isinstance(head, bytes) else json.dumps(head).encode()
    return MAGIC + zstandard.ZstdCompressor().compress(struct.pack("<I", len(text)) + text + columns)


def bodies(good: bytes) -> list[Any]:
    """What is no chunk, or no chunk any more."""
    ten = Points(np.arange(10, dtype=np.int64) * 10_000 + START * 1000, np.ones(10), 10_000)
    unordered = packed({"m": Points(ten.times[::-1].copy(), ten.values, 10_000)})
    beyond = packed({"m": Points(ten.times + (1 << 62), ten.values, 10_000)})
    heads: list[object] = [
        b"\xff", [], 7, {}, {"clocks": 1, "metrics": []}, {"clocks": [-1], "metrics": []},
        {"clocks": [1 << 60], "metrics": []}, {"clocks": [0], "metrics": [["m", 1, 10]]},
        {"clocks": [0], "metrics": [["m", -1, 10]]}, {"clocks": [0], "metrics": [[{}, 0, 10]]},
        {"clocks": [0], "metrics": [["m", 0, "x"]]}, {"clocks": [0], "metrics": [["m", 0]]},
        {"clocks": [3], "metrics": [["m", 0, 10]]}, {"clocks": ["3"], "metrics": 5},
    ]  # fmt: skip
    huge = zstandard.FRAME_HEADER + b"\xe0" + struct.pack("<Q", 1 << 60)  # claims so many bytes
    flipped = bytearray(good)
    flipped[len(good) // 2] ^= 1
    return [
        *VALUES, b"", MAGIC, good[:-1], good[:20], bytes(flipped), b"PWC2" + good[4:], MAGIC + huge,
        unordered, beyond, MAGIC + b"\0" * 99, *(block(head) for head in heads),
        block({"clocks": [1], "metrics": []}),
    ]  # fmt: skip


def test_a_damaged_chunk_is_told_and_the_others_are_read() -> None:
    times = np.arange(10, dtype=np.int64) * 10_000
    good = packed({"m": Points(times, np.arange(10.0), 10_000)})
    for bad in bodies(good):
        first, wrong, last = unpacked_all([good, bad, good])
        assert isinstance(wrong, BadChunk), bad
        for each in (first, last):
            assert not isinstance(each, BadChunk)
            assert each["m"].values.tolist() == list(range(10))
    # Lengths that are wrong by as much in both directions must not mix the columns of two chunks.
    head = {"clocks": [1], "metrics": [["m", 0, 10]]}
    two = [block(head, bytes(8) + bytes(8 + more)) for more in (-8, 8)]
    assert all(isinstance(each, BadChunk) for each in unpacked_all(two))


class Damaged:
    """A server whose files of samples have damaged rows beside good ones, and damaged files."""

    def __init__(self, server: Server) -> None:
        self.server, self.monitor = server, server.monitor
        head = bearer(server.token("admin", "jobs:read", "cluster:read", "admin"))
        self.client = httpx.Client(base_url=server.url, headers=head, timeout=300)
        self.folder = server.monitor.folder / "samples"
        self.before = self.graphs(), self.verdict()
        self.rows = {"chunks": 0, "batches": 0}
        with closing(opened(self.folder / f"{DAY}.db")) as base:
            query = "SELECT * FROM chunks WHERE node = ? AND kind = ?"
            for kind in ("step", "core"):
                self.add(base, "chunks", dict(base.execute(query, (NODE, kind)).fetchone()), CHUNKS)
        with closing(opened(self.folder / "incoming.db")) as base:
            payload = encode(unsealed())
            good = {"node": NODE, "stream": "ab" * 16, "seq": 1, "stretch": START // 1800, "shift": 0,
                    "period": 10_000, "payload": payload}  # fmt: skip
            self.add(base, "batches", good, BATCHES)
        for name in (MONTH, "day-2026-13-01", "day-nonsense", "notes"):
            (self.folder / f"{name}.db").write_bytes(b"no database at all\n" * 999)

    def add(self, base: sqlite3.Connection, table: str, good: dict[str, Any], kinds: Any) -> None:
        for column in kinds:
            for value in bodies(good["body"]) if column == "body" else VALUES:
                self.rows[table] += 1
                row = {**good, column: value}
                if table == "batches" and column not in ("node", "stream", "seq"):
                    row["seq"] = 100 + self.rows[table]
                base.execute(
                    f"INSERT OR IGNORE INTO {table} VALUES ({', '.join('?' * len(row))})", [*row.values()]
                )
            if column in ("node", "kind", "device", "stream"):  # text that is no UTF-8
                places = ["CAST(? AS TEXT)" if name == column else "?" for name in good]
                row = {**good, column: b"\xff"}
                base.execute(f"INSERT OR IGNORE INTO {table} VALUES ({', '.join(places)})", [*row.values()])

    def graphs(self) -> dict[str, Any]:
        answer = self.client.get("/api/v1/jobs/104/series")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def verdict(self) -> Any:
        run = self.monitor.jobs.run("104")
        assert run is not None
        verdict = self.monitor.judge(run)
        return verdict.body()


def unsealed() -> Batch:
    """A batch of a moment that is sealed as well, with what is known there: it changes nothing."""
    return Batch(NODE, "ab" * 16, 1, "00000000-0000-4000-8000-000000000000", START * 1000, 1)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    monitor = Monitor(tmp_path_factory.mktemp("jobs"), clock=lambda: NOW)
    scene(monitor)
    with serving(monitor) as server:
        damaged = Damaged(server)
        yield damaged
        damaged.client.close()


def test_graphs_and_verdicts_are_as_before_and_name_the_files(damaged: Damaged) -> None:
    graphs, verdict = damaged.before
    assert graphs["unreadable"] == []
    after = damaged.graphs()
    assert after["unreadable"] == [f"samples/{DAY}.db", "samples/incoming.db", f"samples/{MONTH}.db"]
    assert {**after, "unreadable": []} == graphs
    assert damaged.verdict() == verdict
    assert damaged.client.get("/jobs/104").status_code == 200


def test_administrators_learn_of_each_file(damaged: Damaged) -> None:
    damaged.graphs()
    page = damaged.client.get("/admin/alarms").text
    for name in (DAY, MONTH, "incoming"):
        assert f"samples/{name}.db" in page
    (check,) = [each for each in all_checks(damaged.monitor.folder) if each.check == "samples"]
    assert check.state == "warning"
    found = {each.file for each in damaged_samples(damaged.folder)}
    assert found == {
        f"{DAY}.db", f"{MONTH}.db", "incoming.db", "day-2026-13-01.db", "day-nonsense.db", "notes.db"
    }  # fmt: skip
    damaged.monitor.look_for_damage()
    places = [each.place for each in damaged.monitor.all_damage() if hasattr(each, "place")]
    assert len(places) == len(set(places))


def test_sealing_and_thinning_go_on(damaged: Damaged) -> None:
    store = damaged.monitor.samples
    assert isinstance(store, ChunkStore)
    late = Job(104, {"step_cpu_user_seconds_total": 15.5}).batches()[-1].batch
    late.wall_ms = int(NOW * 1000) + DAY_MS
    late.seq = 7
    store.put([filed(late)])
    damaged.monitor.samples.tidy(int(NOW * 1000) + 2 * DAY_MS, Thinning())
    with closing(opened(damaged.folder / "incoming.db", readonly=True)) as base:
        assert base.execute("SELECT count(*) FROM batches").fetchone()[0] == 0
    assert (damaged.folder / f"{day_of(late.wall_ms)}.db").exists()
    assert {**damaged.graphs(), "unreadable": []} == damaged.before[0]
    # The month's file is damaged: the day is not thinned, stays, and goes when months go.
    store.tidy(LATER_MS, Thinning())
    assert {**damaged.graphs(), "unreadable": []} == damaged.before[0]
    (damaged.folder / f"{MONTH}.db").unlink()
    store.tidy(LATER_MS + DAY_MS, Thinning())
    assert (damaged.folder / f"{MONTH}.db").exists()
    assert not (damaged.folder / f"{DAY}.db").exists()
    thin = damaged.graphs()
    names = [each["set"] for each in thin["plots"] if each["lines"]]
    assert names == [each["set"] for each in damaged.before[0]["plots"] if each["lines"]]


def test_a_damaged_day_keeps_batches_waiting_and_no_other_day(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path)
    day = tmp_path / f"{day_of(START * 1000)}.db"
    day.write_bytes(b"nonsense" * 999)
    times = [START * 1000, START * 1000 + DAY_MS]
    store.put([filed(node_batch(seq, "n1", wall_ms=at)) for seq, at in enumerate(times, 1)])
    store.tidy(START * 1000 + 3 * DAY_MS, Thinning())

    def times_read() -> list[int]:
        read = store.read("n1", "node", times[0] - 1, times[1], ["node"])
        return read["node", "node_memory_total_bytes"].times.tolist()

    assert times_read() == times
    assert store.unreadable("n1", *times) == [day.name]
    assert (tmp_path / f"{day_of(times[1])}.db").exists()
    day.unlink()  # as an administrator does
    store.tidy(START * 1000 + 3 * DAY_MS, Thinning())
    assert times_read() == times
    assert day.exists()
    assert store.unreadable("n1", *times) == []
    store.close()


class Remembering(PromStore):
    """A database that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__("http://127.0.0.1:1")
        self.seqs: list[int] = []

    def put(self, batches: Any) -> None:
        self.seqs += [each.batch.seq for each in batches if time_is_number(each)]

    def began(self) -> str:
        return "1"


def time_is_number(batch: Filed) -> bool:
    return batch.batch.wall_ms + batch.shift_ms >= 0


def test_a_damaged_batch_does_not_keep_others_from_the_database(tmp_path: Path) -> None:
    folder, database = tmp_path / "samples", Remembering()
    AheadStore(Remembering(), folder).close()
    with closing(opened(folder / "ahead.db")) as base:
        columns = "node, stream, seq, shift, period, payload"
        good = {"node": "n1", "stream": "s", "seq": 1, "shift": 0, "period": 10_000, "payload": b""}
        for seq in range(1, 80):
            payload = encode(node_batch(seq, "n1"))
            row = {**good, "seq": seq, "payload": payload}
            if seq <= 3 * len(VALUES):
                row[("shift", "period", "payload")[seq % 3]] = VALUES[seq // 3 % len(VALUES)]
            base.execute(f"INSERT INTO batches ({columns}) VALUES (?,?,?,?,?,?)", [*row.values()])
    store = AheadStore(database, folder)
    try:
        store.tidy(int(NOW * 1000), Thinning())
        assert {*database.seqs} >= {*range(3 * len(VALUES) + 1, 80)}
        assert store.unreadable("n1", 0, int(NOW * 1000)) == ["ahead.db"]
    finally:
        store.close()


@pytest.mark.parametrize("time", [math.inf, math.nan, 1e300, "x", None, {}])
def test_an_answer_of_a_database_that_cannot_be_read_is_told_as_such(
    time: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = {"metric": {"device": "0", "__name__": "step_memory_bytes"}, "values": [[time, "1"]]}
    text = json.dumps({"data": {"result": [row]}}).encode()
    store: Samples = PromStore("http://127.0.0.1:1")
    monkeypatch.setattr(store, "_ask", lambda *_: text)
    with pytest.raises(StoreFailed):
        store.read("n1", "step", 0, 1000)
