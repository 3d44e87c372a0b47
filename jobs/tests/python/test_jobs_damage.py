"""No content of a database row breaks a page, an API answer, an agent, a verdict or a restart.

Each column of each table in turn gets impossible values, in a row of its own, and that row must be listed.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from jobs_server import NOW, Server, node_batch, scene, serving
from test_jobs_api import bearer, sent
from test_jobs_untrusted import routes_of

from peerway_jobs import sync
from peerway_jobs.accounting import Accounts
from peerway_jobs.batch import Interval, encode
from peerway_jobs.damage import TABLES, damaged_rows
from peerway_jobs.frames import frame
from peerway_jobs.mail.digest import digests
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.checks import all_checks
from peerway_jobs.store import acts, deliveries
from peerway_jobs.store.acts import Act
from peerway_jobs.store.lists import ORDERS
from peerway_jobs.store.unconfirmed import delete_unconfirmed

pytestmark = pytest.mark.sqlite
NOT_TEXT = [b"\xff\xfe", None]
TEXTS = [*NOT_TEXT, "", "{", '{"a": 1}', '[1, null, [2], {"name": 3}]', "[1e999]", "9" * 400, "\udcff"]
NUMBERS = ["x", b"\xff", None, -1e300, math.inf, -(1 << 63), 1 << 62]
FIRST = 2001  # the number of the first damaged job
NODES = 40  # nodes of a job, which have damaged facts
SECRET = "s{:042}"


def values_of(kind: str) -> list[Any]:
    return TEXTS if kind == "TEXT" else NUMBERS


def columns_of(base: sqlite3.Connection, table: str) -> list[tuple[str, str]]:
    return [(row["name"], row["type"]) for row in base.execute(f"PRAGMA table_info({table})")]


def insert(base: sqlite3.Connection, table: str, row: dict[str, Any]) -> None:
    """Insert a row, even with text that is not UTF-8, which Python would not bind."""
    broken = {name for name, value in row.items() if value == "\udcff"}
    places = ["CAST(? AS TEXT)" if name in broken else "?" for name in row]
    values = [b"\xff" if name in broken else value for name, value in row.items()]
    base.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({', '.join(places)})", values)


class Damaged:
    """A server whose database has good rows, and one bad row for each column and value."""

    def __init__(self, server: Server) -> None:
        self.server, self.base = server, server.monitor.jobs.writer
        self.rows: dict[str, list[tuple[str, Any, dict[str, Any]]]] = {}  # column, value, the row's key
        head = bearer(server.token("admin", "jobs:read", "cluster:read", "admin"))
        self.client = httpx.Client(base_url=server.url, headers=head, timeout=300)

    def add(self, table: str, good: dict[str, Any], key: Callable[[int], dict[str, Any]]) -> None:
        rows = self.rows[table] = []
        for column, kind in columns_of(self.base, table):
            for value in values_of(kind):
                number = key(len(rows))
                try:
                    insert(self.base, table, {**good, **number, column: value})
                except sqlite3.IntegrityError:  # NOT NULL, or another row's key
                    continue
                rows.append((column, value, number))

    def first(self, table: str, where: str) -> dict[str, Any]:
        row = self.base.execute(f"SELECT * FROM {table} WHERE {where}").fetchone()
        return dict(row)

    def unreadable(self, table: str) -> list[tuple[str, dict[str, Any]]]:
        """Column and key of the rows that must be listed, by the test's own rules."""
        kinds = dict(columns_of(self.base, table))
        return [
            (column, key)
            for column, value, key in self.rows[table]
            if column not in key and (value == b"\xff\xfe" if kinds[column] == "TEXT" else value == "x")
        ]

    def get(self, path: str) -> httpx.Response:
        return self.client.get(path)


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Damaged]:
    monitor = Monitor(tmp_path_factory.mktemp("jobs"), clock=lambda: NOW)
    scene(monitor)
    with serving(monitor) as server:
        damaged = Damaged(server)
        server.monitor.jobs.slurm_answered = server.monitor.jobs.accounts_answered = NOW
        fill(damaged)
        yield damaged
        damaged.client.close()


def fill(damaged: Damaged) -> None:
    first, add = damaged.first, damaged.add
    job = first("jobs", "job = '104'")
    add("jobs", job, lambda n: {"job": str(FIRST + n)})
    of_verdicts = FIRST + len(damaged.rows["jobs"]) + 1
    add("verdicts", first("verdicts", "job = '103'"), lambda n: {"job": str(of_verdicts + n)})
    for _, _, key in damaged.rows["verdicts"]:
        insert(damaged.base, "jobs", {**job, "job": key["job"]})
    add("intervals", first("intervals", "job = '104' AND step IS NULL"), lambda n: {"id": f"d{n}"})
    note = {
        "node": "n104-0",
        "kind": "oom_kill",
        "time": int((NOW - 7200) * 1000),
        "job": "104",
        "pids": "[7]",
    }
    add("seen", note, lambda n: {})
    wide = {**job, "job": "1999", "node_list": f"d[0-{NODES}]"}
    insert(damaged.base, "jobs", wide)
    part = first("intervals", "job = '104' AND step IS NULL AND id NOT GLOB 'd*'")
    for n in range(NODES):
        insert(damaged.base, "intervals", {**part, "node": f"d{n}", "id": "wide", "job": "1999"})
    add("nodes", first("nodes", "node = 'n104-0'"), lambda n: {"node": f"d{n}"})
    add("clocks", {"boot": "b", "difference": 0}, lambda n: {"node": f"c{n}"})
    add("received", {"node": "r1", "ranges": "[[1,2]]"}, lambda n: {"stream": f"{n:032x}"})
    add(
        "alarms",
        {"node": "n1", "kind": "claim", "text": "t", "first": NOW, "last": NOW, "count": 1},
        lambda n: {"job": str(n)},
    )
    add("audit", {"at": NOW, "who": "w", "address": "a", "action": "logged in", "detail": ""}, lambda n: {})
    add("notices", {"name": "bob", "sent": NOW - 99, "body": ""}, lambda n: {})
    add("deliveries", {"hook": "h", "event": "jobs", "sent": NOW, "upto": NOW, "outcome": ""}, lambda n: {})
    act = {"at": NOW, "policy": "p", "form": "f", "act": "hold", "user": "u", "account": "a", "dry": 0}
    add("acts", {**act, "restart": 0, "outcome": "done", "evidence": "{}"}, lambda n: {"job": str(n)})
    add("people", {}, lambda n: {"name": f"p{n}"})
    add("arrivals", {"newest": 1}, lambda n: {"node": f"a{n}"})
    add("shared", {"since": NOW, "text": ""}, lambda n: {"name": f"s{n}"})
    add("rulesets", {"since": NOW, "text": "", "by": ""}, lambda n: {"hash": f"h{n}"})
    secret = lambda n: {"hash": hashlib.sha256(SECRET.format(n).encode()).hexdigest()}  # noqa: E731
    add("sessions", {"name": "alice", "ends": NOW + 999}, secret)
    sums = {name: 1 for name, kind in columns_of(damaged.base, "months") if kind != "TEXT"}
    texts = {name: name for name, kind in columns_of(damaged.base, "months") if kind == "TEXT"}
    add("months", {**sums, **texts, "month": 1_788_220_800}, lambda n: {"user": f"m{n}"})
    minute = dict.fromkeys((name for name, _ in columns_of(damaged.base, "utilization")), 1)
    add("utilization", {**minute, "step": 900, "at": int(NOW // 900 * 900)}, lambda n: {"node_type": f"t{n}"})
    waited = {"step": 900, "minutes": 1, "jobs": 1, "cores": 1, "gpus": 1}
    add("queue_history", waited, lambda n: {"at": int(NOW // 900 - n) * 900})
    add("tokens", {"name": "admin", "scopes": "jobs:read cluster:read admin", "made": NOW}, secret)


def test_every_table_and_column_is_damaged_here(damaged: Damaged) -> None:
    tables = {
        row["name"] for row in damaged.base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    }
    # The cluster and the queue have one row, tested below and in test_jobs_queue.py.
    assert tables - {"cluster", "queue"} == damaged.rows.keys()
    assert tables == TABLES.keys()
    for table in tables:
        assert {name for name, _ in columns_of(damaged.base, table)} - {"one"} == {*TABLES[table]}, table


def test_no_page_and_no_answer_breaks(damaged: Damaged) -> None:
    for route in routes_of(damaged.server):
        if "GET" in route.methods and "{job}" not in route.path:
            for by in ("user", "account", "project", "partition", "tag"):
                path = route.path.replace("{by}", by)
                query = f"?by={by}" if path == "/statistics" else ""
                years = f"{query}&years=3&order=used" if query else "?range=month"
                for more in (query, f"{query or '?'}&running=true", "?everyone=true&form=csv", years):
                    answer = damaged.get(path + more)
                    assert answer.status_code in ((403,) if path == "/tokens" else (200, 303)), (
                        path,
                        answer.text,
                    )
                    if by == "user" and path in ("/api/v1/alarms", "/api/v1/audit"):
                        table = path.rpartition("/")[2]
                        named = {name for row in answer.json() for name in row["unreadable"]}
                        assert named >= {column for column, _ in damaged.unreadable(table)}
                if "{by}" not in route.path and not query:
                    break


@pytest.mark.parametrize("order", ORDERS)
def test_lists_go_on_behind_rows_that_cannot_be_read(damaged: Damaged, order: str) -> None:
    listed: list[str] = []
    path = f"/api/v1/jobs?order={order}&most=25"
    while path:
        answer = damaged.get(path)
        assert answer.status_code == 200, answer.text
        listed += [row["job"] for row in answer.json()]
        following = re.match("<(.*?)>", answer.headers.get("link", ""))
        path = f"/api/v1/jobs{following[1]}" if following else ""
    assert len(listed) == len(set(listed))
    others = {"started", "user", "provisional"}  # NULL means "no start"; the other columns can hide a row
    jobs = {
        key["job"] for column, _, key in damaged.rows["jobs"] if column not in {"job", "restart", *others}
    }
    assert {*listed} >= jobs | {str(number) for number in range(101, 108)}
    if order == "started":
        shown: list[str] = []
        path = "/jobs?everyone=true"
        while path:
            page = damaged.get(path).text
            shown += re.findall(r'class="id" href="/jobs/(\d+)', page)
            following = re.search(r'class="button" href="(\?[^"]*before=[^"]*)"', page)
            path = f"/jobs{following[1].replace('&amp;', '&')}" if following else ""
        assert {*shown} >= {str(number) for number in range(101, 108)}


def test_each_damaged_job_has_its_page_which_names_the_column(damaged: Damaged) -> None:
    hidden = ("job", "restart", "provisional")
    jobs = [(column, key["job"]) for column, _, key in damaged.rows["jobs"] if column not in hidden]
    verdicts = [("", key["job"]) for _, _, key in damaged.rows["verdicts"]]
    for column, job in [*jobs, *verdicts, ("", "104"), ("", "1999")]:
        assert damaged.get(f"/jobs/{job}").status_code == 200, job
        assert damaged.get(f"/api/v1/jobs/{job}").status_code == 200, job
        if column in ("", "started", "ended", "cores", "nodes", "node_list", "suspended", "user", "reason"):
            assert damaged.get(f"/api/v1/jobs/{job}/series").status_code == 200, job
    for table, prefix in (("jobs", ""), ("verdicts", "verdicts.")):
        for column, key in damaged.unreadable(table):
            if column not in ("restart", "provisional", "rules"):
                assert f"cannot be read: {prefix}{column}" in damaged.get(f"/jobs/{key['job']}").text
    unreadable = damaged.get("/api/v1/jobs/104").json()["unreadable"]
    parts = {
        f"{table}.{column}" for table in ("intervals", "seen") for column, _ in damaged.unreadable(table)
    }
    assert {*unreadable} >= parts - {"intervals.job", "seen.job"}


CLUSTERS = [
    ("at", value) for value in NUMBERS if value is not None
] + [
    ("body", value) for value in [*TEXTS, '{"nodes": {}}', '{"nodes": [7, {}]}'] if value is not None
]  # fmt: skip


@pytest.mark.parametrize(("column", "value"), CLUSTERS)
def test_a_cluster_that_cannot_be_read_is_shown_as_such(damaged: Damaged, column: str, value: Any) -> None:
    kept = damaged.first("cluster", "1")
    damaged.base.execute("DELETE FROM cluster")
    insert(damaged.base, "cluster", {**kept, column: value})
    try:
        assert "cannot be read: cluster." in damaged.get("/cluster").text
        assert damaged.get("/api/v1/cluster").json()["unreadable"][0].startswith("cluster.")
        run = damaged.server.monitor.jobs.run("104")
        assert run is not None
        damaged.server.monitor.judge(run)
    finally:
        damaged.base.execute("DELETE FROM cluster")
        insert(damaged.base, "cluster", kept)


GOOD_NODE = {
    "name": "node01", "state": "busy", "cores": 64, "cores_busy": 8, "memory": 1, "memory_busy": 0,
    "gpus": 4, "gpus_busy": 1, "gpus_blocked": 0, "gpu_type": "", "reason": "", "partitions": ["p"],
}  # fmt: skip


@pytest.mark.parametrize("field", GOOD_NODE)
def test_a_node_of_the_cluster_that_cannot_be_read_leaves_the_others(damaged: Damaged, field: str) -> None:
    kept = damaged.first("cluster", "1")
    try:
        for value in ({}, [[]], -1e300, 1e300, 1 << 70, "\n"):
            if field in ("name", "gpu_type", "reason") and isinstance(value, str):
                continue
            nodes = [{**GOOD_NODE, field: value}, {**GOOD_NODE, "name": "good9"}]
            body = json.dumps({"nodes": nodes, "running": "x", "reasons": [["a", -1]]})
            damaged.base.execute("UPDATE cluster SET body = ?", (body,))
            page = damaged.get("/cluster").text
            assert "good9" in page
            assert "cluster.nodes[0], cluster.running, cluster.reasons" in page
            assert [node["name"] for node in damaged.get("/api/v1/cluster").json()["nodes"]] == ["good9"]
    finally:
        damaged.base.execute("UPDATE cluster SET body = ?", (kept["body"],))


def test_agents_deliver_whatever_is_kept_of_them(damaged: Damaged) -> None:
    nodes = [key["node"] for _, _, key in damaged.rows["clocks"] + damaged.rows["nodes"]]
    streams = [("r1", key["stream"]) for _, _, key in damaged.rows["received"]]
    for node, stream in [*((node, "ab" * 16) for node in nodes), *streams]:
        head = {**bearer(damaged.server.token("", "agent", node=node)), **sent()}
        interval = Interval("i", 104, int(NOW * 1000) - 5000)
        batch = node_batch(9, node, stream=stream, intervals=[interval])
        answer = httpx.post(
            f"{damaged.server.url}/api/v1/agent/batches",
            content=frame(encode(batch)),
            headers=head,
            timeout=300,
        )
        assert answer.status_code == 200, (node, stream, answer.text)
    alarms = damaged.get("/api/v1/alarms").json()
    assert any(each["kind"] == "damaged" and "received.ranges" in each["text"] for each in alarms)


def test_sessions_tokens_and_people_that_cannot_be_read_open_nothing(damaged: Damaged) -> None:
    url = f"{damaged.server.url}/api/v1/jobs"
    for number, (column, value, _) in enumerate(damaged.rows["tokens"]):
        status = httpx.get(url, headers=bearer(SECRET.format(number))).status_code
        assert status in (200, 401, 403), (column, value)
        if column == "ends" and value is not None and value != 1 << 62:
            assert status == 401, value
    for number, (column, value, _) in enumerate(damaged.rows["sessions"]):
        status = httpx.get(url, cookies={"peerway_session": SECRET.format(number)}).status_code
        assert status in (200, 401), (column, value)
        if column == "ends":
            assert status == 401, value
    people = damaged.server.app.state.peerway.people
    for column, value, key in damaged.rows["people"]:
        assert not people.check(key["name"], "password"), (column, value)
        assert people.viewer(key["name"]).role == "user", (column, value)
        assert people.person(key["name"]) is not None or column == "name"
        people.wants_mail(key["name"])


def test_judging_slurm_mails_and_a_restart_go_on(damaged: Damaged, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = damaged.server.monitor
    squeue = [
        {"job_id": int(key["job"]), "job_state": "RUNNING", "start_time": int(NOW) - 3600, "user_name": "bob"}
        for _, _, key in damaged.rows["jobs"][::3]
    ]
    sync.take(monitor.jobs, squeue, [], NOW)
    asked: list[str] = []

    def answer(*command: str) -> dict[str, Any]:
        asked.extend(command[-1].split(","))
        return {"jobs": []}

    monkeypatch.setattr("peerway_jobs.accounting.answer_of", answer)
    Accounts().missed(monitor.jobs, set(), NOW)
    assert all(number.isdecimal() for number in asked)
    mail = Mail("smtp://localhost", "p@example.org", "{user}@example.org", "https://jobs.example.org")
    list(digests(monitor.jobs, mail, NOW))
    delete_unconfirmed(monitor.jobs, NOW)
    monitor.tidy()
    assert damaged.get("/healthz").status_code == 200
    draft = {"text": monitor.rules.text, "since_days": 300, "most": 50}
    assert damaged.client.post("/api/v1/rules/replay", json=draft).status_code == 200
    monitor.judge_due()
    restarted = Monitor(monitor.folder, clock=lambda: NOW)
    try:
        restarted.judge_due()
        run = restarted.jobs.run("101")
        assert run is not None
        assert not run.unreadable
    finally:
        restarted.close()


def test_administrators_learn_of_every_damaged_table(damaged: Damaged) -> None:
    monitor = damaged.server.monitor
    monitor.look_for_damage()
    named = {(each.table, column) for each in damaged_rows(monitor.jobs.reader) for column in each.columns}
    assert {table for table, _ in named} >= damaged.rows.keys()
    digests = {key["hash"] for table in ("sessions", "tokens") for _, _, key in damaged.rows[table]}
    assert not any(digest in str(each) for each in monitor.damage for digest in digests)
    page = damaged.get("/admin/alarms").text
    assert "These rows and files cannot be read" in page
    assert "clocks (node" in page
    (rows,) = [each for each in all_checks(monitor.folder) if each.check == "rows"]
    assert rows.state == "warning"
    assert "cannot be read in full" in rows.observed


def test_damaged_acts_and_deliveries_hold_up_no_policy_and_no_webhook(damaged: Damaged) -> None:
    store, base = damaged.server.monitor.jobs, damaged.server.monitor.jobs.reader
    acts.record(store, Act(NOW, "p", "f", "hold", "4242", dry=False))
    assert "4242" in {act.job for act in acts.held(base)}
    assert [act.job for act in acts.of_run(base, "p", "4242", 0, NOW - 1)] == ["4242"]
    assert acts.newest(base, 1000)
    assert acts.first_seen(base, "p", "f") is None
    deliveries.record(store, "h", "jobs", NOW, NOW + 1, deliveries.SENT)
    assert deliveries.covered(base, "h", "jobs") == NOW + 1
    assert deliveries.outcomes(base, NOW - 60)["webhook", "sent"] >= 1
