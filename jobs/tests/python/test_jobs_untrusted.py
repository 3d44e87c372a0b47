"""What a node with a stolen token, a wrong clock or a broken driver can do to a server: nothing to others."""

from __future__ import annotations

import dataclasses
import json
import re
import zlib
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from jobs_scene import GIB, Job, filed, put
from jobs_server import NOW, Server, node_batch, served
from test_jobs_api import bearer, sent

from peerway_jobs.batch import Batch, Facts, Interval, Note, Samples, encode
from peerway_jobs.batch_check import MOST_TEXT, BadBatch, decode
from peerway_jobs.frames import MOST_FRAMES, frame
from peerway_jobs.monitor import Monitor
from peerway_jobs.rules.hours import hours
from peerway_jobs.serve.ingest import MOST_POST_PARTS
from peerway_jobs.store.filing import MOST_UNCONFIRMED
from peerway_jobs.store.runs import Run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOW_MS = int(NOW * 1000)
BEFORE_MS = NOW_MS - 600_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("jobs")) as server:
        server.monitor.jobs.slurm_answered = NOW  # Slurm is asked
        yield server


class Node:
    """An agent with a node's token."""

    def __init__(self, server: Server, name: str) -> None:
        self.server, self.name, self.seq = server, name, 0
        self.head = {**bearer(server.token("", "agent", node=name)), **sent()}

    def batch(self, **parts: Any) -> Batch:
        self.seq += 1
        return node_batch(self.seq, self.name, **parts)

    def post(self, *batches: Batch) -> httpx.Response:
        body = b"".join(frame(encode(each)) for each in batches)
        return httpx.post(
            f"{self.server.url}/api/v1/agent/batches", content=body, headers=self.head, timeout=60
        )

    def say(self, *intervals: Interval, **parts: Any) -> None:
        answer = self.post(self.batch(intervals=list(intervals), **parts))
        assert answer.status_code == 200, answer.text


def get(server: Server, path: str, who: str = "admin") -> Any:
    head = bearer(server.token(who, "jobs:read", "cluster:read", "admin"))
    return httpx.get(server.url + path, headers=head, timeout=60)


def alarms(server: Server, node: str) -> dict[tuple[str, str], str]:
    return {
        (a["kind"], a["job"]): a["text"] for a in get(server, "/api/v1/alarms").json() if a["node"] == node
    }


def slurm(server: Server, job: int, node: str, **more: Any) -> Run:
    """Make Slurm report that this job runs."""
    values = {"user": "vic", "started": BEFORE_MS / 1000, "nodes": 1, "cores": 8, "node_list": node, **more}
    run = Run(str(job), **values)
    server.monitor.jobs.update([run])
    return run


# -- whose claims about a job count


def test_a_node_that_slurm_did_not_give_a_job_changes_nothing_of_it(server: Server) -> None:
    slurm(server, 1001, "good1", memory=8 * GIB)
    good, evil = Node(server, "good1"), Node(server, "evil1")
    good.say(Interval("1001.1", 1001, BEFORE_MS, cpus=8, user="vic"))
    before = get(server, "/api/v1/jobs/1001").json()
    evil.say(
        Interval("evil.1", 1001, BEFORE_MS, cpus=1, user="vic"),
        Interval("evil.2", 1001, BEFORE_MS, step="batch", slot=0, source="processes"),
        notes=[Note("foreign_process", BEFORE_MS + 1000, job=1001, text="miner")],
        samples={"step": Samples(["0"], {"step_cpu_user_seconds_total": [5000.0]})},
    )
    assert get(server, "/api/v1/jobs/1001").json() == before
    run = server.monitor.jobs.run("1001")
    assert run is not None
    assert [part["node"] for part in server.monitor.jobs.intervals(run)] == ["good1"]
    assert server.monitor.jobs.notes(run) == []
    # what the epilog may ask for is not extended either
    url = f"{server.url}/api/v1/agent/jobs/1001"
    assert httpx.get(url, headers=evil.head).status_code == 404
    assert httpx.get(url, headers=good.head).json()["on"] == ["good1"]
    assert "Slurm ran on good1" in alarms(server, "evil1")["claim", "1001"]
    assert alarms(server, "good1") == {}
    assert "Slurm ran on good1" in get(server, "/admin/alarms").text
    assert get(server, "/api/v1/alarms", "alice").status_code == 403


def test_a_node_that_names_another_user_is_not_heard(server: Server) -> None:
    slurm(server, 1002, "good2")
    Node(server, "good2").say(Interval("1002.1", 1002, BEFORE_MS, cpus=8, user="mallory"))
    run = server.monitor.jobs.run("1002")
    assert run is not None
    assert run.user == "vic"
    assert server.monitor.jobs.intervals(run) == []
    assert "mallory" in alarms(server, "good2")["claim", "1002"]


def test_what_only_an_agent_has_said_is_shown_to_nobody_until_slurm_says_it(server: Server) -> None:
    node = Node(server, "good3")
    node.say(Interval("1003.1", 1003, BEFORE_MS, cpus=8, user="vic"))
    for path in ("/api/v1/jobs/1003", "/jobs/1003", "/api/v1/jobs/1003/series"):
        assert get(server, path).status_code == get(server, path, "vic").status_code == 404
    for path in ("/api/v1/jobs?most=500", "/jobs?everyone=true&text=1003", "/admin/jobs"):
        assert '"job":"1003"' not in get(server, path).text
        assert "/jobs/1003" not in get(server, path).text
    assert httpx.get(f"{server.url}/api/v1/agent/jobs/1003", headers=node.head).status_code == 404
    server.monitor.judge_due()
    slurm(server, 1003, "good3")
    assert get(server, "/api/v1/jobs/1003", "vic").json()["node_list"] == "good3"
    assert alarms(server, "good3") == {}


def test_a_claim_that_came_before_slurms_word_is_an_alarm_when_that_comes(server: Server) -> None:
    Node(server, "evil4").say(Interval("1004.1", 1004, BEFORE_MS, cpus=8, user="vic"))
    assert alarms(server, "evil4") == {}
    slurm(server, 1004, "good4")
    assert "Slurm ran on good4" in alarms(server, "evil4")["claim", "1004"]
    assert get(server, "/api/v1/jobs/1004").json()["node_list"] == "good4"


def test_a_job_that_was_shrunk_accuses_no_node_that_it_had(server: Server) -> None:
    run = slurm(server, 1005, "good[5-7]", nodes=3)
    nodes = [Node(server, f"good{n}") for n in (5, 6, 7)]
    for node in nodes:
        node.say(Interval("1005.1", 1005, BEFORE_MS, cpus=8, user="vic"))
    for names, count in (("good[5-6]", 2), ("good5", 1)):  # scontrol update jobid=1005 nodelist=...
        server.monitor.jobs.update([dataclasses.replace(run, node_list=names, nodes=count)])
    nodes[1].say(Interval("1005.1", 1005, BEFORE_MS, NOW_MS - 1000, cpus=8, user="vic"))
    server.monitor.jobs.update([dataclasses.replace(run, node_list="good5", nodes=1, ended=NOW - 1)])
    kept = server.monitor.jobs.run("1005")
    assert kept is not None
    assert (kept.node_list, kept.former_nodes) == ("good5", "good6,good7")
    assert {part["node"] for part in server.monitor.jobs.intervals(kept)} == {"good5", "good6", "good7"}
    assert [alarms(server, node.name) for node in nodes] == [{}, {}, {}]
    # a node that an agent claims does not count as a node that the job once had
    Node(server, "evil5").say(Interval("evil5.1", 1006, BEFORE_MS, cpus=8, user="vic"))
    slurm(server, 1006, "good5")
    slurm(server, 1006, "good6")
    assert ("claim", "1006") in alarms(server, "evil5")


@pytest.mark.parametrize("asks", [True, False], ids=["with Slurm", "without"])
def test_one_post_makes_no_thousands_of_jobs(server: Server, asks: bool) -> None:
    store, name = server.monitor.jobs, f"many{asks}".lower()
    store.slurm_answered = NOW if asks else None
    count = "SELECT count(*) FROM jobs"
    before = store.reader.execute(count).fetchone()[0]
    first = 2_000_000 + 100_000 * asks
    node = Node(server, name)
    batches = [
        node.batch(
            intervals=[
                Interval(f"m.{at + n}", first + at + n, BEFORE_MS, BEFORE_MS + 1, cpus=1, user="bob")
                for n in range(1500)
            ]
        )
        for at in (0, 1500)
    ]
    assert node.post(*batches).status_code == 200
    store.slurm_answered = NOW
    assert store.reader.execute(count).fetchone()[0] - before == MOST_UNCONFIRMED
    assert ("too many", "") in alarms(server, name)


DAYS = 86_400.0


@pytest.mark.parametrize(
    ("slurm_answered", "accounts_answered", "deleted"),
    [(15, 15, True), (None, None, False), (15, None, False), (1, 15, False), (13, 13, False)],
    ids=["old", "--no-slurm", "slurmdbd away", "squeue away", "not yet"],
)
def test_what_slurm_never_confirms_is_deleted_after_two_weeks(
    tmp_path: Path, slurm_answered: float | None, accounts_answered: float | None, deleted: bool
) -> None:
    """The days are counted up to Slurm's last answer."""
    now = [NOW]
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    store = monitor.jobs
    store.slurm_answered = NOW
    late = NOW + 2 * DAYS
    confirmed = Run("7", 1, started=late, user="vic", nodes=1, node_list="n1", submitted=late - 1)
    intervals = [
        Interval("7.1", 7, BEFORE_MS, BEFORE_MS + 1000, cpus=1, user="vic"),
        Interval("7.0", 7, BEFORE_MS, BEFORE_MS + 1000, step="0", slot=1),
        Interval("8.1", 8, BEFORE_MS, cpus=1, user="vic"),
        Interval("9.1", 9, BEFORE_MS, cpus=1, user="vic"),
    ]
    notes = [Note("leftover", BEFORE_MS + 2000, job=7), Note("leftover", BEFORE_MS, job=9)]
    later = [Interval("7.2", 7, int(late * 1000), cpus=1, user="vic")]
    again = [Interval("8.1", 8, BEFORE_MS, int(late * 1000), cpus=1, user="vic")]  # reported since then
    store.file([filed(node_batch(1, "n1", intervals=intervals, notes=notes))])
    store.file([filed(node_batch(2, "n1", intervals=[*later, *again], wall_ms=int(late * 1000)))])
    store.update([confirmed, Run("9", started=BEFORE_MS / 1000, user="vic", nodes=1, node_list="n1")])
    last = max(each or 0 for each in (slurm_answered, accounts_answered, 15 if slurm_answered is None else 0))
    now[0] = NOW + last * DAYS
    store.slurm_answered = slurm_answered and NOW + slurm_answered * DAYS
    store.accounts_answered = accounts_answered and NOW + accounts_answered * DAYS
    monitor.tidy()
    rows = store.reader.execute("SELECT job, restart FROM jobs ORDER BY job, restart").fetchall()
    kept = [(row["job"], row["restart"]) for row in rows]
    assert kept == [*([] if deleted else [("7", 0)]), ("7", 1), ("8", 0), ("9", 0)]
    ids = {row["id"] for row in store.reader.execute("SELECT id FROM intervals")}
    assert ids == {"7.2", "8.1", "9.1", *([] if deleted else ["7.1", "7.0"])}
    seen = [row["job"] for row in store.reader.execute("SELECT job FROM seen ORDER BY job")]
    assert seen == ["9"] if deleted else ["7", "9"]
    monitor.close()


def test_unconfirmed_runs_are_looked_for_at_most_once_an_hour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, times = [NOW], []
    monitor = Monitor(tmp_path, clock=lambda: now[0])
    monkeypatch.setattr("peerway_jobs.monitor.delete_unconfirmed", lambda _, when: times.append(when))
    for second in (0, 60, 3599, 3600, 3660):
        now[0] = NOW + second
        monitor.tidy()
    assert times == [NOW, NOW + 3600]
    monitor.close()


def test_intervals_of_more_jobs_than_a_node_may_name_are_deleted_too(tmp_path: Path) -> None:
    monitor = Monitor(tmp_path, clock=lambda: NOW + 15 * DAYS)
    store = monitor.jobs
    store.slurm_answered = NOW
    ended = BEFORE_MS + 1
    many = [Interval(f"{n}", n + 1, BEFORE_MS, ended, cpus=1) for n in range(MOST_UNCONFIRMED + 5)]
    store.file([filed(node_batch(1, "n1", intervals=many))])
    store.slurm_answered = store.accounts_answered = NOW + 15 * DAYS
    monitor.tidy()
    for table in ("jobs", "intervals"):
        assert store.reader.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == 0
    monitor.close()


# -- impossible times and sizes

FUTURE = {
    "the last that fits": (1 << 48) - 1,
    "the year 9999": 253_402_300_805_000,
    "an hour ahead": NOW_MS + 3_600_000,
}
PAST = {"1970": 0, "1970 and a bit": 1}


@pytest.mark.parametrize("start", [*FUTURE.values(), *PAST.values()], ids=[*FUTURE, *PAST])
def test_an_interval_of_an_impossible_time_is_left_out_and_the_rest_kept(server: Server, start: int) -> None:
    node, job = Node(server, f"when{start % 1000003}"), 3_000_000 + start % 1000003
    node.say(
        Interval("bad", job, start, cpus=2, user="bob"),
        Interval("endless", job, BEFORE_MS, max(BEFORE_MS, FUTURE["an hour ahead"]), cpus=2, user="bob"),
        Interval("good", job + 1, BEFORE_MS, cpus=2, user="bob"),
        notes=[Note("leftover", start, job=job), Note("leftover", BEFORE_MS, job=job + 1)],
    )
    assert alarms(server, node.name)["implausible", ""].startswith(f"job {job}: an interval")
    rows = server.monitor.jobs.reader.execute("SELECT id FROM intervals WHERE node = ?", (node.name,))
    assert [row["id"] for row in rows] == ["good"]
    rows = server.monitor.jobs.reader.execute("SELECT job FROM seen WHERE node = ?", (node.name,))
    assert [row["job"] for row in rows] == [str(job + 1)]
    for path in ("/jobs?everyone=true", "/api/v1/jobs", "/statistics", "/admin/jobs", "/cluster"):
        assert get(server, path).status_code == 200


@pytest.mark.parametrize("wall", [(1 << 48) - 1, NOW_MS + 3_600_000, 0])
def test_a_batch_of_an_impossible_time_is_refused_and_never_kept(server: Server, wall: int) -> None:
    node = Node(server, f"wall{wall % 1009}")
    good = node.batch()
    bad = node.batch(wall_ms=wall, boot="00000000-0000-4000-8000-000000000009")
    answer = node.post(good, bad)
    assert (answer.status_code, answer.json()["frame"], answer.json()["seq"]) == (422, 1, 2)
    assert "set the node's clock" in answer.json()["error"]
    server.monitor.tidy()  # there must be no file for the year 10889


@pytest.mark.parametrize(("field", "value"), [("memory_bytes", (1 << 63) - 1), ("cpus", 1 << 20)])
def test_sizes_that_no_node_has_are_unknown(server: Server, field: str, value: int) -> None:
    node = Node(server, f"size-{field[:3]}")
    node.say(Interval("1", 1010, BEFORE_MS, user="vic", **{field: value}))  # type: ignore[arg-type]
    row = server.monitor.jobs.reader.execute(
        "SELECT * FROM intervals WHERE node = ?", (node.name,)
    ).fetchone()
    assert row["memory"] is row["cpus"] is None
    assert f"{value:,}" in alarms(server, node.name)["implausible", ""]


# -- numbers in URLs


def routes_of(server: Server) -> list[Any]:
    """All routes of pages and API."""
    routers = [getattr(each, "original_router", None) for each in server.app.routes]
    return [route for router in routers if router for route in router.routes]


def numbers_of(server: Server) -> list[tuple[str, str]]:
    """Path and name of all numeric parameters of pages and API."""
    found = []
    for route in routes_of(server):
        if "GET" not in route.methods:
            continue
        for each in route.dependant.query_params:
            if any(kind in str(each.field_info.annotation) for kind in ("int", "float")):
                found.append((route.path, each.name))
    return found


@pytest.mark.parametrize(
    "value",
    [
        1 << 63,
        "nan",
        *(pytest.param(value, marks=pytest.mark.long) for value in (-(1 << 63), 10**30, "1e400", "-inf")),
    ],
)
def test_every_number_in_an_address_has_bounds(server: Server, value: Any) -> None:
    numbers = numbers_of(server)
    assert {("/jobs/{job}", "restart"), ("/api/v1/jobs", "since")} <= set(numbers)
    for path, name in numbers:
        address = path.replace("{job}", "104").replace("{by}", "user")
        status = get(server, f"{address}?{name}={value}").status_code
        assert status in (404, 422), (address, name)
    for job in ("9" * 11, "1" * 400, "1_" + "9" * 30):
        assert get(server, f"/jobs/{job}").status_code == 404
        assert get(server, f"/api/v1/jobs/{job}").status_code == 422
    assert get(server, "/jobs?before=1:1:" + "9" * 30).status_code in (404, 422)


# -- impossible figures


def test_no_ratio_is_more_than_what_is_possible(server: Server) -> None:
    """Figures stored before they were checked."""
    figures = {
        "gpu_utilization_ratio": lambda d, m: 42_949_672.95 if m % 4 else 0.5,
        "step_cpu_user_seconds_total": 40.0,
        "step_memory_bytes": 192 * GIB,
    }
    put(server.monitor, Job(150, figures, gpus=1, node_gpus=1, memory=64 * GIB, slurm={"user": "vic"}))
    run = server.monitor.jobs.run("150")
    assert run is not None
    spent = hours(server.monitor.measured(run), 0.01, 600)
    assert (spent.cpu_efficiency, spent.gpu_efficiency, spent.memory_efficiency) == (1, 0.5, 1)
    assert spent.idle_core_hours == 0


# -- requests that cost the server more than their sender


def bomb(text: bytes) -> bytes:
    return zlib.compress(text, 9)


@pytest.mark.parametrize(
    ("begin", "repeated", "times", "end"),  # every process that collects the tests would make whole texts
    [
        (b'{"a":"', b"x", 64 << 20, b'"}'),
        (b"", b"[", 15 << 20, b""),
        (b"[", b"0,", 1 << 20, b"0]"),
        (b'{"version":', b"9", 1 << 20, b"}"),
        (b"", b" ", MOST_TEXT + 1, b""),
        (b'{"samples":{', b'"a":0,', 400_000, b'"a":0}}'),
    ],
    ids=["a long text", "deep", "long", "digits", "blanks", "keys"],
)
def test_a_batch_that_unpacks_to_much_is_refused_before_it_is_read(
    begin: bytes, repeated: bytes, times: int, end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    loads = json.loads
    monkeypatch.setattr(
        "peerway_jobs.batch_check.json.loads", lambda t, **k: (read.append(len(t)), loads(t, **k))[1]
    )
    with pytest.raises(BadBatch):
        decode(bomb(begin + repeated * times + end))
    assert sum(read) <= 256 << 10


def test_a_post_that_costs_much_is_taken_in_parts_and_nothing_is_lost(server: Server) -> None:
    node = Node(server, "parts1")
    of_one = MOST_POST_PARTS // 4
    batches = [
        node.batch(notes=[], intervals=[
            Interval(f"p{k}.{n}", 4_000_000 + n, BEFORE_MS, step="0", slot=0) for n in range(of_one)
        ])
        for k in range(6)
    ]  # fmt: skip
    first = node.post(*batches).json()["acknowledged"]
    assert first == 4
    assert node.post(*batches[first:]).json()["acknowledged"] == 6


def test_the_most_that_a_real_node_sends_is_taken() -> None:
    """512 CPUs, 16 GPUs with 7 instances each, 500 jobs of 4 steps, all idle, which compresses best."""
    samples = {
        "core": Samples(
            [str(n) for n in range(512)], {f"core_{k}_seconds_total": [0] * 512 for k in ("busy", "iowait")}
        ),
        "gpu": Samples([f"GPU-{n}" for n in range(128)], {"gpu_utilization_ratio": [0.0] * 128}),
        "step": Samples(
            [str(n) for n in range(2000)],
            {"step_memory_bytes": [0] * 2000, "step_cpu_user_seconds_total": [0] * 2000},
        ),
    }
    intervals = [Interval(f"{n}.1", n + 1, NOW_MS, cpus=1, user="u", cores=[n]) for n in range(500)]
    batch = node_batch(
        1, "big", samples=samples, intervals=intervals, facts=Facts(512, 1 << 42, 10_000, "v2", "1")
    )
    known = decode(encode(batch))
    assert len(known.intervals) == 500
    assert len(known.samples["step"].devices) == 2000
    assert MOST_FRAMES * len(encode(batch)) < 8 << 20


# -- rights of a token


def test_pages_and_api_ask_the_same_rights_of_a_token(server: Server) -> None:
    run = server.monitor.jobs.run("103")
    assert run is not None
    server.monitor.jobs.update([dataclasses.replace(run, script="#!/bin/sh\nsecret")])
    pairs = {
        "/jobs": "/api/v1/jobs",
        "/jobs/103": "/api/v1/jobs/103",
        "/statistics": "/api/v1/sums/user",
        "/cluster": "/api/v1/cluster",
        "/cluster/waiting": "/api/v1/cluster/waiting",
        "/wall/now": "/api/v1/cluster/use",
        "/admin/alarms": "/api/v1/alarms",
        "/admin/jobs": "/api/v1/alarms",
        "/admin/rules": "/api/v1/alarms",
        "/admin/audit": "/api/v1/audit",
    }
    for who in ("bob", "admin"):
        for scopes in (["cluster:read"], ["jobs:read"], ["admin"], ["jobs:read", "admin"]):
            head = bearer(server.token(who, *scopes))
            for page, api in pairs.items():
                shown = httpx.get(server.url + page, headers=head)
                assert shown.status_code == httpx.get(server.url + api, headers=head).status_code, (
                    scopes,
                    page,
                )
                assert ("secret" in shown.text) <= ("jobs:read" in scopes)
            assert httpx.get(server.url + "/tokens", headers=head).status_code == 403
    pages = {each.path for each in routes_of(server) if "GET" in each.methods and not each.include_in_schema}
    named = {re.sub(r"\d+", "{job}", page) for page in pairs}
    assert pages - named == {"/", "/login", "/tokens", "/healthz", "/metrics", "/metrics/nodes", "/wall"}
