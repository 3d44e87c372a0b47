"""The contract of the stores of samples (built-in and real servers); jobs; what is acknowledged."""

from __future__ import annotations

import _sqlite3
import contextlib
import ctypes
import dataclasses
import os
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jobs_scene import BOOT, START, Job, filed, put
from ports import free_port
from victoria_cluster import PROGRAMS, Cluster, RealCluster

from peerway_jobs import vanished
from peerway_jobs.batch import Batch, Interval, Samples
from peerway_jobs.monitor import Monitor, NotJudged
from peerway_jobs.rules.judging import Verdict
from peerway_jobs.store import promql
from peerway_jobs.store.chunk import BadChunk, Points, merged, packed, unpacked, unpacked_all
from peerway_jobs.store.chunks import ChunkStore
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.pending import due
from peerway_jobs.store.promql import PromStore, SamplesRefused, quoted
from peerway_jobs.store.ranges import add, has
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import DAY_MS, Filed, StoreFailed, Thinning, thinned
from peerway_jobs.store.samples import Samples as Store
from peerway_jobs.store.schema import bring_up
from peerway_jobs.store.write_ahead import AheadStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

BASE = int(time.time()) // 3600 * 3600 * 1000 - 4 * 3_600_000  # servers accept only recent samples


def batch(seq: int, node: str = "n1", stream: str = "0" * 32, **more: object) -> Batch:
    at = BASE + seq * 10_000
    gpu = Samples(
        ["GPU-a", "GPU-b"], {"gpu_utilization_ratio": [seq / 1000, None], "gpu_power_watts": [100.5, seq]}
    )
    node_part = Samples(["node"], {"node_cpu_busy_seconds_total": [seq * 3.25]})
    return Batch(node, stream, seq, BOOT, at, seq * 10_000, samples={"gpu": gpu, "node": node_part}, **more)  # type: ignore[arg-type]


def prometheus(folder: Path, port: int) -> list[str]:
    (folder / "p.yml").write_text("storage:\n  tsdb:\n    out_of_order_time_window: 30d\n")
    return [
        "prometheus",
        f"--config.file={folder}/p.yml",
        f"--storage.tsdb.path={folder}/d",
        f"--web.listen-address=127.0.0.1:{port}",
        "--web.enable-remote-write-receiver",
        "--log.level=error",
    ]


def victoria(folder: Path, port: int) -> list[str]:
    return [
        "victoria-metrics",
        f"-storageDataPath={folder}/d",
        f"-httpListenAddr=127.0.0.1:{port}",
        "-search.latencyOffset=0s",
        "-loggerLevel=ERROR",
        "-memory.allowedBytes=64MB",
    ]


SERVERS: dict[str, Callable[[Path, int], list[str]]] = {
    "prometheus": prometheus,
    "victoria-metrics": victoria,
}


@pytest.fixture(
    scope="module",
    params=[
        "embedded",
        "prometheus",
        "cluster",
        pytest.param("victoria-metrics", marks=pytest.mark.long),
        pytest.param("real-cluster", marks=pytest.mark.long),
    ],
)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("samples")
    if request.param == "embedded":
        found = ChunkStore(folder)
        yield found
        found.close()
        return
    if request.param == "real-cluster":
        if missing := [program for program in PROGRAMS if not shutil.which(program)]:
            pytest.skip(f"there is no {', '.join(missing)} (VictoriaMetrics' cluster version)")
        with contextlib.ExitStack() as stack:
            found = AheadStore(RealCluster(folder, stack).store(), folder / "ahead")
            yield found
            found.close()
        return
    name = "victoria-metrics" if request.param == "cluster" else request.param
    if not shutil.which(name):
        pytest.skip(f"there is no {name}; on Debian: apt-get install {name}")
    with running(name, folder) as (url, _), contextlib.ExitStack() as stack:
        series = Cluster(url, stack).store() if request.param == "cluster" else PromStore(url)
        found = AheadStore(series, folder / "ahead")
        yield found
        found.close()


@contextlib.contextmanager
def running(name: str, folder: Path, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Start a real server on a folder; yields its address and process, which is killed at the end."""
    port = port or free_port()
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(SERVERS[name](folder, port), stdout=log, stderr=log)
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/-/ready", timeout=5).close()
                break
            except OSError:
                assert server.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.kill()
        server.wait()


def read(store: Store, node: str, start: int, end: int, count: int) -> dict[tuple[str, str], Points]:
    """Read from the store until it returns `count` samples: a server shows new samples a moment later."""
    for _ in range(200):
        found = store.read(node, "gpu", BASE + start * 10_000, BASE + end * 10_000)
        if sum(points.times.size for points in found.values()) >= count or isinstance(store, ChunkStore):
            break
        time.sleep(0.1)
    return found


def test_what_was_put_is_read_again_exactly(store: Store) -> None:
    store.put([filed(batch(seq, "exact"), period_ms=10_000) for seq in range(1, 1001)])
    found = read(store, "exact", 0, 1000, 3000)
    assert set(found) == {
        ("GPU-a", "gpu_utilization_ratio"),
        ("GPU-a", "gpu_power_watts"),
        ("GPU-b", "gpu_power_watts"),
    }
    use = found["GPU-a", "gpu_utilization_ratio"]
    assert use.times.tolist() == [BASE + seq * 10_000 for seq in range(1, 1001)]
    assert use.values.tolist() == [seq / 1000 for seq in range(1, 1001)]
    assert use.period == 10_000
    part = store.read("exact", "gpu", BASE + 100_000, BASE + 200_000, ["GPU-b"], ["gpu_power_watts"])
    assert list(part) == [("GPU-b", "gpu_power_watts")]
    assert part["GPU-b", "gpu_power_watts"].values.tolist() == [float(seq) for seq in range(11, 21)]
    assert store.read("exact", "core", BASE, BASE + 10**7) == {}
    assert store.read("nobody", "gpu", BASE, BASE + 10**7) == {}


@pytest.mark.parametrize(
    "store",
    [
        "embedded",
        "prometheus",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("cluster", "victoria-metrics")),
    ],
    indirect=True,
)
def test_twice_late_and_out_of_order_is_as_once_and_in_order(store: Store) -> None:
    batches = [filed(batch(seq, "late"), period_ms=10_000) for seq in range(1, 301)]
    random.Random(7).shuffle(batches)
    store.put(batches[:200])
    read(store, "late", 0, 300, 600)
    store.tidy(int(time.time() * 1000), Thinning())  # seals finished stretches; the other samples come late
    store.put(batches[100:])
    store.tidy(int(time.time() * 1000), Thinning())
    use = read(store, "late", 0, 300, 900)["GPU-a", "gpu_utilization_ratio"]
    assert use.times.tolist() == [BASE + seq * 10_000 for seq in range(1, 301)]
    assert use.values.tolist() == [seq / 1000 for seq in range(1, 301)]


@pytest.mark.parametrize("name", ['a"} or {node=~".*', "a\\", "a\nb", 'x"}[1d] or vector(1) #'])
def test_no_name_leaves_its_quotes_in_promql(store: Store, name: str) -> None:
    assert store.read(name, "gpu", BASE, BASE + 10_000_000) == {}
    inside = quoted(name)[1:-1].replace("\\\\", "").replace('\\"', "")
    assert '"' not in inside
    assert "\n" not in inside


# -- only the built-in store


def test_a_chunk_is_exact_and_much_smaller_than_its_samples() -> None:
    times = BASE + np.arange(0, 3600_000, 10_000)
    values = np.random.default_rng(1).random(times.size)
    block = packed({"a": Points(times, values, 10_000), "b": Points(times, np.round(values, 1), 10_000)})
    found = unpacked(block)
    assert (found["a"].times == times).all()
    assert (found["a"].values == values).all()
    assert list(unpacked(block, frozenset("b"))) == ["b"]
    assert len(packed({"a": Points(times, np.ones(times.size), 10_000)})) < 300
    for damaged in (b"", b"PWC1", block[:-9], b"XXXX" + block[4:]):
        with pytest.raises(BadChunk):
            unpacked(damaged)


def test_chunks_that_are_taken_apart_together_are_as_each_alone() -> None:
    random_of = np.random.default_rng(1)

    def points(count: int, shift: int = 0) -> Points:
        return Points(BASE + shift + np.arange(count) * 10_000, random_of.random(count), 10_000)

    blocks = [
        packed({"a": points(180), "b": points(180)}),
        packed({"a": points(180, 5), "b": points(180, 5)}),  # other times
        packed({"a": points(180), "b": points(180)}),
        packed({"b": points(180)}),  # another metric
        packed({"a": points(180), "b": points(7)}),  # times of its own for each
        packed({"a": points(180), "b": points(180)}),
    ]
    for wanted in (None, frozenset("b"), frozenset("x")):
        together = unpacked_all(blocks, wanted)
        for one, block in zip(together, blocks, strict=True):
            assert not isinstance(one, BadChunk)
            alone = unpacked(block, wanted)
            assert list(one) == list(alone)
            for name, each in alone.items():
                assert (one[name].times == each.times).all()
                assert (one[name].values == each.values).all()
    *others, cut = unpacked_all([*blocks, blocks[0][:-9]])
    assert isinstance(cut, BadChunk)
    assert not any(isinstance(each, BadChunk) for each in others)
    assert unpacked_all([]) == []


def test_of_two_samples_of_one_time_the_later_counts() -> None:
    one = Points(np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0]), 1)
    both = merged([one, Points(np.array([2]), np.array([9.0]), 1)])
    assert both.times.tolist() == [1, 2, 3]
    assert both.values.tolist() == [1, 9, 3]


def test_old_days_are_thinned_to_means_and_older_months_dropped(tmp_path: Path) -> None:
    store = ChunkStore(tmp_path)
    store.put([filed(batch(seq), period_ms=10_000) for seq in range(1, 361)])
    store.tidy(BASE + DAY_MS, Thinning())
    assert sorted(path.name for path in tmp_path.glob("day-*.db"))
    store.tidy(BASE + 40 * DAY_MS, Thinning())
    assert not [*tmp_path.glob("day-*")]
    found = store.read("n1", "gpu", BASE, BASE + 3_600_000)["GPU-a", "gpu_utilization_ratio"]
    assert found.period == 300_000
    assert found.times.size == 12
    assert found.values[0] == pytest.approx(sum(range(1, 31)) / 30 / 1000)
    busy = store.read("n1", "node", BASE, BASE + 3_600_000)["node", "node_cpu_busy_seconds_total"]
    assert busy.values[-1] == 360 * 3.25  # for a counter the last value
    store.tidy(BASE + 500 * DAY_MS, Thinning())
    assert store.read("n1", "gpu", BASE, BASE + 3_600_000) == {}
    assert thinned("gpu_power_watts", Points(np.empty(0, np.int64), np.empty(0), 1), 10).times.size == 0
    store.close()


def test_the_step_that_ends_at_midnight_is_of_the_day_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    midnight = BASE // DAY_MS * DAY_MS
    monkeypatch.setattr(sys.modules[__name__], "BASE", midnight - 3_600_000)
    store = thin(tmp_path, "n1")
    found = store.read("n1", "gpu", BASE, midnight)["GPU-a", "gpu_utilization_ratio"]
    assert (found.times.size, found.times[-1]) == (12, midnight)
    assert found.values[-1] == pytest.approx(sum(range(331, 361)) / 30 / 1000)
    store.close()


def everything(store: ChunkStore, *nodes: str) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """All samples of the nodes."""
    return {
        (node, kind, *key): list(zip(points.times.tolist(), points.values.tolist(), strict=True))
        for node in nodes
        for kind in ("gpu", "node")
        for key, points in store.read(node, kind, BASE - DAY_MS, BASE + DAY_MS).items()
    }


def thin(folder: Path, *nodes: str, seqs: Sequence[int] = range(1, 361)) -> ChunkStore:
    """A store with thinned samples of the nodes."""
    store = ChunkStore(folder)
    store.put([filed(batch(seq, node), period_ms=10_000) for node in nodes for seq in seqs])
    store.tidy(BASE + 40 * DAY_MS, Thinning())
    return store


def test_a_batch_that_comes_after_its_day_was_thinned_is_added_and_takes_nothing_away(tmp_path: Path) -> None:
    store = thin(tmp_path / "late", "n1", "n2", seqs=[seq for seq in range(1, 361) if not 31 <= seq <= 60])
    before = everything(store, "n1", "n2")
    late = [filed(batch(seq), period_ms=10_000) for seq in range(31, 61)]
    late += [filed(batch(1, other), period_ms=10_000) for other in ("n1", "n3")]  # again, and a new node
    for some in (late[:29], late[29:]):  # first all of a step but its last counter value, then that value
        store.put(some)
        store.tidy(BASE + 40 * DAY_MS, Thinning())
        after = everything(store, "n1", "n2")
        assert all(set(points) <= set(after[key]) for key, points in before.items())
    at_once = thin(tmp_path / "once", "n1", "n2")
    found, wanted = everything(store, "n1", "n2"), everything(at_once, "n1", "n2")
    assert (
        found["n1", "node", "node", "node_cpu_busy_seconds_total"]
        == (wanted["n1", "node", "node", "node_cpu_busy_seconds_total"])
    )
    assert [at for at, _ in found["n1", "gpu", "GPU-a", "gpu_power_watts"]] == (
        [at for at, _ in wanted["n1", "gpu", "GPU-a", "gpu_power_watts"]]
    )
    assert found["n1", "gpu", "GPU-a", "gpu_utilization_ratio"][1][1] == pytest.approx(0.045)  # 31 to 59
    assert len(everything(store, "n3")) == 4
    assert not [*(tmp_path / "late").glob("day-*")]
    store.close()
    at_once.close()


def test_thinning_that_was_interrupted_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = thin(tmp_path / "whole", "n1", "n2", "n3")
    store = ChunkStore(tmp_path / "cut")
    store.put(
        [filed(batch(seq, node), period_ms=10_000) for node in ("n1", "n2", "n3") for seq in range(1, 361)]
    )
    done = store._thin_node

    def die_at_n2(day: str, node: str, thinning: Thinning) -> None:
        if node == "n2":
            raise KeyboardInterrupt
        done(day, node, thinning)

    monkeypatch.setattr(store, "_thin_node", die_at_n2)
    with pytest.raises(KeyboardInterrupt):
        store.tidy(BASE + 40 * DAY_MS, Thinning())
    store.close()
    store = ChunkStore(tmp_path / "cut")
    assert len(everything(store, "n3")["n3", "gpu", "GPU-a", "gpu_power_watts"]) == 360
    store.tidy(BASE + 40 * DAY_MS, Thinning())
    assert everything(store, "n1", "n2", "n3") == everything(whole, "n1", "n2", "n3")
    store.close()
    whole.close()


def test_batches_are_taken_while_a_day_is_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ChunkStore(tmp_path)
    store.put([filed(batch(seq, node), period_ms=10_000) for node in ("n1", "n2") for seq in (1, 2)])
    taken: list[Filed] = []

    def take_one(*arguments: Any) -> Points:
        late = filed(batch(400 + len(taken)), period_ms=10_000)
        other = threading.Thread(target=store.put, args=([late],), daemon=True)
        other.start()
        other.join(30)
        assert not other.is_alive()
        taken.append(late)
        return thinned(*arguments)

    monkeypatch.setattr("peerway_jobs.store.blocks.thinned", take_one)
    store.tidy(BASE + 40 * DAY_MS, Thinning())
    assert len(taken) >= 8
    store.close()


def test_a_seal_that_was_interrupted_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ChunkStore(tmp_path)
    store.put([filed(batch(seq), period_ms=10_000) for seq in range(1, 181)])

    def die(_: object) -> None:
        raise KeyboardInterrupt  # the batches are about to be deleted: the chunks are written

    monkeypatch.setattr(store._incoming, "delete", die)
    with pytest.raises(KeyboardInterrupt):
        store.seal(BASE + DAY_MS)
    store.close()
    store = ChunkStore(tmp_path)
    for _ in range(2):
        use = store.read("n1", "gpu", BASE, BASE + DAY_MS)["GPU-a", "gpu_utilization_ratio"]
        assert use.times.size == 180
        store.seal(BASE + DAY_MS)
    store.close()


WRITER = """
import sys, pathlib
import test_jobs_store
from test_jobs_store import batch, filed
test_jobs_store.BASE = int(sys.argv[2])  # an hour may have begun since
from peerway_jobs.store.chunks import ChunkStore
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.pending import due
folder = pathlib.Path(sys.argv[1])
samples, jobs = ChunkStore(folder / "samples"), JobStore(folder / "jobs.db")
for first in range(1, 100_000, 5):
    several = [filed(batch(seq), period_ms=10_000) for seq in range(first, first + 5)]
    samples.put(several)
    jobs.file(several)
    print(first + 4, flush=True)
"""


@pytest.mark.sqlite
def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path), str(BASE)]
    modules = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}  # the test scenes
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=modules) as writer:
        assert writer.stdout is not None
        for line in writer.stdout:
            if int(line) >= 200:
                writer.send_signal(signal.SIGKILL)
                break
        told = max([200, *(int(line) for line in writer.stdout.read().split())])
    samples, jobs = ChunkStore(tmp_path / "samples"), JobStore(tmp_path / "jobs.db")
    times = samples.read("n1", "gpu", BASE, BASE + 10**9)["GPU-a", "gpu_utilization_ratio"].times
    assert set(range(1, told + 1)) <= {int(at - BASE) // 10_000 for at in times}
    assert all(jobs.known("n1", "0" * 32, seq) for seq in range(1, told + 1))
    samples.close()
    jobs.close()


# The database must keep what it accepted, and the server's own file covers its gap. For the built-in store
# see the tests above.
@pytest.mark.long
@pytest.mark.parametrize("name", SERVERS)
def test_what_was_acknowledged_outlives_kill_9_of_the_database(tmp_path: Path, name: str) -> None:
    """Killed at once, while VictoriaMetrics has it only in memory; and again while it is rewritten."""
    if not shutil.which(name):
        pytest.skip(f"there is no {name}; on Debian: apt-get install {name}")
    port = free_port()
    with running(name, tmp_path, port) as (url, server):
        store = AheadStore(PromStore(url), tmp_path / "ahead")
        store.put([filed(batch(seq), period_ms=10_000) for seq in range(1, 21)])
        store.tidy(0, Thinning())  # everything is written
        server.kill()
        server.wait()
        store.put([filed(batch(seq), period_ms=10_000) for seq in range(21, 41)])  # it is down
        with pytest.raises(StoreFailed):
            store.tidy(0, Thinning())
    with running(name, tmp_path, port):
        store.tidy(0, Thinning())
    store.close()  # our own server ends, too
    with running(name, tmp_path, port):
        store = AheadStore(PromStore(url), tmp_path / "ahead")
        found = read(store, "n1", 0, 100, 120)
        store.close()
    assert found["GPU-a", "gpu_utilization_ratio"].times.size == 40


def test_agents_keep_what_does_not_fit_while_the_database_is_away(tmp_path: Path) -> None:
    store = AheadStore(PromStore(f"http://127.0.0.1:{free_port()}"), tmp_path, most_bytes=1 << 16)
    many = [filed(batch(seq), period_ms=10_000) for seq in range(1, 1000)]
    store.put(many)
    with pytest.raises(StoreFailed, match="wait for the database, the most are"):
        store.put([filed(batch(1000), period_ms=10_000)])
    store.close()


LINE = b'{"metric":{"__name__":"node_up","device":"node"},"values":[1],"timestamps":[1000]}\n'
ANSWERS = {
    "none": (b"", "cannot reach"),
    "too long": (b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n" + LINE * 12000, "answered more than"),
    "cut at a line": (b"HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n" + LINE, "broke off"),
    "cut in a piece": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n999\r\n" + LINE, "broke off"),
    "cut in an error": (b"HTTP/1.1 500 No\r\nContent-Length: 99\r\n\r\nful", "answered 500"),
}


@pytest.mark.parametrize(("answer", "failure"), ANSWERS.values(), ids=ANSWERS)
def test_an_export_that_ends_early_is_no_export(
    answer: bytes, failure: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What came of it would pass for all samples."""
    monkeypatch.setattr(promql, "MOST_ANSWER", 200_000)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(1) as pool:

        def serve() -> None:
            if answer:
                with listener.accept()[0] as connection:
                    connection.recv(1 << 16)
                    with contextlib.suppress(OSError):  # the reader has enough of what is too long
                        connection.sendall(answer)

        serving = pool.submit(serve)
        port = listener.getsockname()[1]
        if not answer:
            listener.close()
        with pytest.raises(StoreFailed, match=failure):
            PromStore(f"http://127.0.0.1:{port}").read("n1", "node", 0, 2000)
        serving.result()


def test_what_the_database_forgets_nothing_of_is_forgotten_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Database(PromStore):
        kept = 0

        def began(self) -> str:
            return "1"

        def put(self, batches: Sequence[Filed]) -> None:
            Database.kept += len(batches)
            if any(each.batch.seq == 3 for each in batches):
                raise SamplesRefused("too old")

        def read(self, *_: object) -> dict[tuple[str, str], Points]:  # type: ignore[override]
            return {}

    store = AheadStore(Database("http://none"), tmp_path)
    store.put([filed(batch(seq), period_ms=10_000) for seq in range(1, 6)])
    store.tidy(0, Thinning())
    with contextlib.closing(sqlite3.connect(tmp_path / "ahead.db")) as base:
        assert base.execute("SELECT count(*) FROM batches WHERE written > 0").fetchone()[0] == 5
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 600)
        store.tidy(0, Thinning())
        assert base.execute("SELECT count(*) FROM batches").fetchone()[0] == 0
    store.close()
    assert Database.kept == 10  # all at once, then one by one


@pytest.mark.parametrize(
    "version_0",
    [
        pytest.param(False, id="new"),
        pytest.param(True, id="of a file as older versions made it", marks=pytest.mark.long),
    ],
)
def test_the_disk_that_an_absence_of_the_database_took_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version_0: bool
) -> None:
    class Database(PromStore):
        away = True

        def began(self) -> str:
            if self.away:
                raise StoreFailed("away")
            return "1"

        def put(self, batches: Sequence[Filed]) -> None:
            pass

    def size() -> int:
        return sum(path.stat().st_size for path in tmp_path.iterdir())

    if version_0:
        with contextlib.closing(sqlite3.connect(tmp_path / "ahead.db")) as base:
            base.execute("PRAGMA auto_vacuum = NONE")
            base.execute("CREATE TABLE something (a)")
    monkeypatch.setattr("peerway_jobs.store.blocks.decode", lambda _: batch(1))
    database = Database("http://none")
    store = AheadStore(database, tmp_path)
    for first in range(1, 4001, 500):
        many = [filed(batch(seq), period_ms=10_000) for seq in range(first, first + 500)]
        store.put([dataclasses.replace(each, payload=os.urandom(10_000)) for each in many])
    grown = size()
    assert grown > 40 << 20
    database.away = False
    now = time.time()
    for minute in range(1, 12):
        monkeypatch.setattr(time, "time", lambda minute=minute: now + 60 * minute)
        store.tidy(0, Thinning())
    assert size() < grown / 2
    store.close()


# -- jobs and intervals


@pytest.mark.sqlite
def test_threads_that_read_much_keep_little_of_it(tmp_path: Path) -> None:
    """A server has some forty threads, each with its own connection."""
    store = JobStore(tmp_path / "jobs.db")
    store.writer.execute("PRAGMA wal_autocheckpoint = 0")  # so that new data is not in the mapped file
    store.write("CREATE TABLE much (a INTEGER PRIMARY KEY, b BLOB)")
    store.write(
        "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 2000) "
        "INSERT INTO much SELECT x, zeroblob(3000) FROM n"
    )
    used = ctypes.CDLL(_sqlite3.__file__).sqlite3_memory_used
    used.restype = ctypes.c_int64
    before, read, stay = used(), threading.Barrier(11), threading.Event()

    def look() -> None:
        store.reader.execute("SELECT sum(length(hex(b))) FROM much").fetchall()
        read.wait()
        stay.wait()

    threads = [threading.Thread(target=look) for _ in range(10)]
    for thread in threads:
        thread.start()
    read.wait()
    grown = used() - before
    stay.set()
    for thread in threads:
        thread.join()
    store.close()
    assert grown < 10 << 20


def test_ranges_hold_what_came_in_any_order() -> None:
    numbers = [*range(1, 60), *range(70, 90)]
    random.Random(3).shuffle(numbers)
    ranges: list[list[int]] = []
    assert all(add(ranges, number) for number in numbers)
    assert ranges == [[1, 59], [70, 89]]
    assert not add(ranges, 75)
    assert has(ranges, 59)
    assert not has(ranges, 60)


def interval(ident: str, start: int, end: int | None, **more: object) -> Interval:
    return Interval(
        ident,
        7,
        BASE + start * 1000,
        None if end is None else BASE + end * 1000,
        user="alice",
        cpus=4,
        gpus=["GPU-a"],
        **more,
    )  # type: ignore[arg-type]


def test_a_requeued_job_has_two_runs_and_neither_gets_the_others_use(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, clock=lambda: BASE / 1000 + 4000)
    first, second = interval("a1", 0, 1000), interval("a2", 1100, 2000)
    batches = [batch(seq) for seq in range(1, 301)]
    batches[0].intervals = [first]
    batches[150].intervals = [second]
    everything = [filed(each, period_ms=10_000) for each in batches]
    monitor.samples.put(everything)
    monitor.jobs.file(reversed(everything))  # even if the later batch is filed first
    monitor.jobs.file(everything)
    assert monitor.jobs.restarts("7") == [0, 1]
    for run in (monitor.jobs.run("7", 0), monitor.jobs.run("7", 1)):
        assert run is not None
        times = [t for series in monitor.measured(run)["gpu.utilization"] or () for t in series.times]
        assert run.started is not None
        assert run.ended is not None
        assert run.started < min(times)
        assert max(times) <= run.ended
    monitor.close()


def test_an_interval_is_mended_and_an_older_telling_changes_nothing(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.db")
    early, late = batch(1), batch(2)
    early.intervals, late.intervals = [interval("a1", 0, None)], [interval("a1", 0, 500)]
    store.file([filed(late)])
    store.file([filed(early)])
    run = store.run("7")
    assert run is not None
    assert run.ended == BASE / 1000 + 500
    assert run.state == "ENDED"
    assert run.cores == 4
    store.close()


def test_a_batch_is_filed_once(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, clock=lambda: START + 9000.0)
    job = Job(9, {"step_cpu_user_seconds_total": 3.0}, minutes=30)
    put(monitor, job)
    put(monitor, job)
    assert monitor.jobs.reader.execute("SELECT count(*) FROM intervals").fetchone()[0] == 2
    run = monitor.jobs.run("9")
    assert run is not None
    cpu = monitor.measured(run)["step.cpu"]
    assert cpu is not None
    assert cpu[0].mean() == pytest.approx(3.0)
    monitor.close()


# -- which runs are judged, and when


def put_batches(monitor: Monitor, batches: list[Filed]) -> None:
    """File batches as the server does."""
    monitor.samples.put(batches)
    monitor.jobs.file(batches, monitor.late_ms())


def test_a_verdict_waits_for_agents_that_are_behind_and_late_samples_are_judged(tmp_path: Path) -> None:
    end = START + 30 * 60
    job = Job(9, {"step_cpu_user_seconds_total": 3.0}, minutes=30)
    now = [end + 3000.0]
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    early, late = job.batches()[:6], job.batches()[6:]
    early[0].batch.intervals[0].end_ms = early[0].batch.intervals[1].end_ms = None
    late[-1].batch.intervals = job.batches()[0].batch.intervals  # the agent learned the end last
    monitor.jobs.update([job.run()])
    for each in early:
        put_batches(monitor, [each])
    assert monitor.judge_due() == 0  # the server was down, and the agent's spool is still arriving
    now[0] = end + 3700.0  # the agent seems to be gone
    assert monitor.judge_due() == 1
    run = monitor.jobs.run("9")
    assert run is not None
    assert run.verdict == "no data"
    assert monitor.judge_due() == 0
    put_batches(monitor, late)
    assert monitor.judge_due() == 1
    run = monitor.jobs.run("9")
    assert run is not None
    assert run.verdict == "inefficient"
    assert run.cpu_efficiency == pytest.approx(3 / 8)
    monitor.jobs.file(late, monitor.late_ms())  # again: nothing is new
    assert monitor.judge_due() == 0
    monitor.close()


def test_a_verdict_waits_for_agents_that_have_not_told_of_the_job_at_all(tmp_path: Path) -> None:
    end = START + 30 * 60
    job = Job(9, {"step_cpu_user_seconds_total": 3.0}, minutes=30, nodes=2)
    now = [end + 1000.0]
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    first, second = job.batches()[:16], job.batches()[16:]
    told, second[0].batch.intervals = second[0].batch.intervals, []
    second[-1].batch.intervals = told
    monitor.jobs.update([job.run()])
    put_batches(monitor, [*first, *second[:-1]])
    assert monitor.judge_due() == 0
    put_batches(monitor, second[-1:])
    assert monitor.judge_due() == 1
    assert monitor.judge_due() == 0
    # An agent that was gone long before the job ended is not waited for.
    later = dataclasses.replace(job.run(), job="10", started=end + 20_000.0, ended=end + 21_000.0)
    monitor.jobs.update([later])
    now[0] = end + 22_000.0
    assert monitor.judge_due() == 1
    monitor.close()


@pytest.mark.parametrize("before", [False, True], ids=["for the first time", "once more"])
def test_what_arrives_while_a_run_is_judged_is_judged_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bool
) -> None:
    end = START + 30 * 60
    job = Job(9, {"step_cpu_user_seconds_total": 3.0}, minutes=30)
    now = [end + 3700.0]
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    early, late = job.batches()[:6], job.batches()[6:]
    monitor.jobs.update([job.run()])
    put_batches(monitor, early)
    if before:
        assert monitor.judge_due() == 1
        put_batches(monitor, late[:1])
    judge = monitor.judge

    def judge_and_file(run: Run) -> Verdict:
        verdict = judge(run)  # it has read the samples
        put_batches(monitor, late)
        return verdict

    with monkeypatch.context() as during:
        during.setattr(monitor, "judge", judge_and_file)
        assert monitor.judge_due() == 1
    assert monitor.judge_due() == 1
    run = monitor.jobs.run("9")
    assert run is not None
    assert run.cpu_efficiency == pytest.approx(3 / 8)
    assert run.verdict == "inefficient"
    assert monitor.judge_due() == 0
    monitor.close()


def test_an_end_that_is_told_while_a_run_is_judged_is_judged_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether Slurm reports the end, or no longer reports the run."""
    end = START + 30 * 60
    monitor = Monitor(tmp_path, clock=lambda: end + 1000.0)
    judge = monitor.judge
    job = Job(9, {"step_cpu_user_seconds_total": 3.0}, minutes=30)
    ends: list[Callable[[], object]] = [
        lambda: monitor.jobs.update([dataclasses.replace(job.run(), state="OUT_OF_MEMORY")]),
        lambda: vanished.close(monitor.jobs, set(), end + 1000.0),
    ]
    put(monitor, job)
    for told in ends:
        monitor.jobs.update([dataclasses.replace(job.run(), ended=None, state="RUNNING")])

        def judge_and_end(run: Run, when_judged: Callable[[], object] = told) -> Verdict:
            verdict = judge(run)
            when_judged()
            return verdict

        with monkeypatch.context() as during:
            during.setattr(monitor, "judge", judge_and_end)
            assert monitor.judge_due() == 1
        assert [run.job for run in due(monitor.jobs, end + 1000.0)] == ["9"]
        assert monitor.judge_due() == 1
        assert monitor.judge_due() == 0
    monitor.close()


def test_a_run_whose_end_is_told_late_is_judged_once_more(tmp_path: Path) -> None:
    """Its last verdict was made after its end, but as for a running run."""
    end = START + 30 * 60
    now = [end + 1000.0]
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    job = Job(9, {"step_cpu_user_seconds_total": 3.0}, minutes=30)
    put(monitor, job)
    monitor.jobs.update([dataclasses.replace(job.run(), ended=None, state="RUNNING")])
    assert monitor.judge_due() == 1
    monitor.jobs.update([dataclasses.replace(job.run(), state="OUT_OF_MEMORY")])
    assert monitor.judge_due() == 1
    run = monitor.jobs.run("9")
    assert run is not None
    assert run.tag == "out-of-memory"
    monitor.jobs.update([dataclasses.replace(job.run(), state="OUT_OF_MEMORY")])  # nothing is new
    assert monitor.judge_due() == 0
    monitor.close()


def test_a_run_that_cannot_be_judged_does_not_keep_others_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = START + 10_000.0
    monitor = Monitor(tmp_path, clock=lambda: now)
    runs(monitor, running=2, ended=2, now=now)
    cannot_judge(monitor, monkeypatch, "3", ValueError("damaged"))
    with pytest.raises(NotJudged, match="job 3 cannot be judged: ValueError: damaged"):
        monitor.judge_due()
    assert [run.job for run in due(monitor.jobs, now)] == ["3"]
    monitor.close()


def cannot_judge(monitor: Monitor, patch: pytest.MonkeyPatch, job: str, error: Exception) -> None:
    """Make judging of this job fail."""
    judge = monitor.judge

    def judge_others(run: Run) -> Verdict:
        if run.job == job:
            raise error
        return judge(run)

    patch.setattr(monitor, "judge", judge_others)


def runs(monitor: Monitor, *, running: int, ended: int, now: float) -> None:
    """Add runs: some have been running for a day without a verdict, others have just ended."""
    monitor.jobs.update(Run(str(n), started=now - DAY_MS / 1000, cores=1) for n in range(1, running + 1))
    monitor.jobs.update(
        Run(str(n), state="COMPLETED", started=now - 9000, ended=now - 4000, cores=1)
        for n in range(running + 1, running + ended + 1)
    )


def test_final_verdicts_come_before_those_on_runs_that_go_on(tmp_path: Path) -> None:
    now = START + 90_000.0
    monitor = Monitor(tmp_path, clock=lambda: now)
    runs(monitor, running=400, ended=3, now=now)
    monitor.judge_due()
    judged = [run.judged for n in range(401, 404) if (run := monitor.jobs.run(str(n)))]
    assert judged == [now] * 3
    while monitor.judge_due():  # and none of the running runs is forgotten
        pass
    never = "SELECT count(*) FROM jobs WHERE judged <= 0"
    assert monitor.jobs.reader.execute(never).fetchone()[0] == 0
    monitor.close()


def test_a_verdict_is_kept_though_the_next_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = START + 90_000.0
    monitor = Monitor(tmp_path, clock=lambda: now)
    runs(monitor, running=0, ended=3, now=now)
    cannot_judge(monitor, monkeypatch, "3", StoreFailed("away"))
    with pytest.raises(StoreFailed):
        monitor.judge_due()
    assert [run.judged for n in (1, 2, 3) if (run := monitor.jobs.run(str(n)))] == [now, now, 0]
    monitor.close()


def test_the_longer_a_run_is_the_seldomer_it_is_judged(tmp_path: Path) -> None:
    now = [float(START)]
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    monitor.jobs.update([Run("1", started=float(START), cores=1)])
    judged = []
    for _ in range(1000):  # 100 h
        now[0] += 360
        if monitor.judge_due():
            judged.append(now[0] - START)
    pauses = np.diff(judged)
    assert pauses[0] == 360
    assert 3600 * 4 < pauses[-1] < 3600 * 5.5
    assert len(judged) < 100
    monitor.close()


def test_threads_that_ended_leave_no_connection_behind(tmp_path: Path) -> None:
    """A server's threads come and go with its requests, so each must close what it opened."""
    store = JobStore(tmp_path / "jobs.db")
    path = str(tmp_path / "jobs.db")

    def opened() -> int:
        found = 0
        for each in os.listdir("/proc/self/fd"):
            with contextlib.suppress(FileNotFoundError):  # the descriptor of the listing itself
                found += str(Path("/proc/self/fd", each).readlink()) == path
        return found

    for _ in range(40):
        thread = threading.Thread(target=lambda: store.reader.execute("SELECT 1"))
        thread.start()
        thread.join()
    assert opened() <= 3  # the writer's, and those of the last thread until another one starts
    store.close()
    assert opened() == 0


def test_two_processes_that_migrate_one_database_do_each_step_once(tmp_path: Path) -> None:
    """The second one reads the old version, and then waits for the first one's lock."""
    versions = [
        "CREATE TABLE one (a TEXT DEFAULT ';'); -- a; b\nINSERT INTO one VALUES (';')",
        "CREATE TABLE two (b)",
    ]
    done_by_first = [
        "CREATE TABLE one (a)",
        "INSERT INTO one VALUES (1)",
        "PRAGMA user_version = 1",
        "COMMIT",
    ]
    first = sqlite3.connect(tmp_path / "base.db", isolation_level=None)
    waits, errors = threading.Event(), []

    def migrate() -> None:
        second = sqlite3.connect(tmp_path / "base.db", timeout=60)
        second.set_trace_callback(lambda statement: waits.set() if statement.startswith("BEGIN") else None)
        try:
            bring_up(second, versions)
        except Exception as error:
            errors.append(error)
        second.close()

    thread = threading.Thread(target=migrate)
    first.execute("BEGIN IMMEDIATE")
    thread.start()
    assert waits.wait(60)
    for statement in done_by_first:
        first.execute(statement)
    thread.join(60)
    assert errors == []
    assert first.execute("SELECT count(*) FROM one").fetchone() == (1,)
    assert first.execute("PRAGMA user_version").fetchone() == (2,)
    assert first.execute("SELECT count(*) FROM two").fetchone() == (0,)
