"""The API and the pages against requests without rights, and against what no honest client sends."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import csv
import dataclasses
import ipaddress
import json
import re
import socket
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from jobs_cluster import record_queue
from jobs_scene import GIB
from jobs_server import EVIL, EVIL_QUOTED, NOW, PASSWORD, Server, filed, node_batch, served, serving

from peerway_jobs import serve
from peerway_jobs.batch import Facts, Gpu, Samples, encode
from peerway_jobs.clock import Sent
from peerway_jobs.frames import MOST_BODY, frame
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve import admin_pages, connections, pages, statistics_page
from peerway_jobs.serve.access import Portal
from peerway_jobs.serve.attempts import FREE, LONGEST_S, Attempts
from peerway_jobs.serve.limits import MOST_BYTES, Buckets
from peerway_jobs.serve.live import Live
from peerway_jobs.serve.oidc import LoginFailed, Provider
from peerway_jobs.serve.outward import Outward
from peerway_jobs.serve.people import People
from peerway_jobs.serve.recorder import Recorder
from peerway_jobs.serve.words import LANGUAGES, WORDS
from peerway_jobs.store import utilization as rollups
from peerway_jobs.store.audit import entries
from peerway_jobs.store.disk import DiskFailed
from peerway_jobs.store.lists import Filter, listed
from peerway_jobs.store.promql import PromStore
from peerway_jobs.store.queue import ReasonSum, WaitingJob, keep_queue
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Filed
from peerway_jobs.store.utilization import record

if TYPE_CHECKING:
    from collections.abc import Iterator

BOOT = "00000000-0000-4000-8000-000000000000"
MAIL = Mail("smtp://127.0.0.1:1", "a@b", "{user}@b", "https://p")  # no server listens there
REVOKE = r'name="revoke" value="(\w+)"'
PORTAL = Portal("Remote-User", (ipaddress.ip_network("127.0.0.0/8"),))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("jobs"), outward=Outward(mail=MAIL)) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def sent(boot: str = BOOT) -> dict[str, str]:
    return {
        "Peerway-Sent": Sent(int(NOW * 1000), 60_000, boot).header(),
        "Content-Type": "application/x-peerway-batches",
    }


def test_an_agent_that_ends_in_the_middle_of_a_request_is_no_error_of_the_server(server: Server) -> None:
    answers: list[Any] = []
    parts = iter([{"type": "http.request", "body": b"x", "more_body": True}, {"type": "http.disconnect"}])
    head = {**bearer(server.token("", "agent", node="n1")), **sent(), "Content-Length": "1000"}
    scope = {
        "type": "http", "http_version": "1.1", "method": "POST", "path": "/api/v1/agent/batches",
        "raw_path": b"/api/v1/agent/batches", "query_string": b"", "root_path": "", "scheme": "http",
        "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
        "headers": [(name.lower().encode(), value.encode()) for name, value in head.items()],
    }  # fmt: skip

    async def receive() -> Any:
        return next(parts)

    async def send(message: Any) -> None:
        answers.append(message)

    asyncio.run(server.app(scope, receive, send))  # raises what would be logged with its traceback
    assert answers[0]["status"] == 400


# -- who may see what


@pytest.mark.parametrize(
    ("who", "seen"),
    [
        ("alice", {"101", "102", "105", "107"}),
        ("bob", {"103", "104"}),
        ("manager", {"103", "104"}),
        ("stranger", set()),
        ("admin", {"101", "102", "103", "104", "105", "106", "107"}),
    ],
)
def test_everybody_sees_own_jobs_a_manager_the_accounts_an_administrator_all(
    server: Server, client: httpx.Client, who: str, seen: set[str]
) -> None:
    head = bearer(server.token(who, "jobs:read", "admin"))
    assert {job["job"] for job in client.get("/api/v1/jobs", headers=head).json()} == seen
    missing = client.get("/api/v1/jobs/999", headers=head)
    for job in range(101, 108):
        for path in (f"/api/v1/jobs/{job}", f"/api/v1/jobs/{job}/series"):
            answer = client.get(path, headers=head)
            assert (answer.status_code == 200) is (str(job) in seen)
            if str(job) not in seen:  # the answer does not differ from that for a job that does not exist
                assert answer.text == missing.text.replace("999", str(job))
    sums = client.get("/api/v1/sums/user", headers=head).json()
    assert sum(row["jobs"] for row in sums) == len(seen - {"106"})  # job 106 is running


def test_an_agent_may_ask_for_the_jobs_of_its_node_alone(server: Server, client: httpx.Client) -> None:
    run = server.monitor.jobs.run("102")
    assert run is not None
    server.monitor.jobs.update([dataclasses.replace(run, script="#!/bin/sh\nsecret")])
    head = bearer(server.token("", "agent", node="n102-0"))
    found = client.get("/api/v1/agent/jobs/102", headers=head).json()
    assert (found["job"], found["on"], found["final"]) == ("102", ["n102-0"], True)
    assert found["verdict"]["state"] == "inefficient"
    assert "secret" not in json.dumps(found)
    missing = client.get("/api/v1/agent/jobs/999", headers=head)
    for job in (101, 103, 106):
        answer = client.get(f"/api/v1/agent/jobs/{job}", headers=head)
        assert (answer.status_code, answer.text) == (404, missing.text.replace("999", str(job)))
    assert client.get("/api/v1/jobs/102", headers=head).status_code == 403
    for other in (bearer(server.token("alice")), bearer(server.token("admin", "admin"))):
        assert client.get("/api/v1/agent/jobs/102", headers=other).status_code == 403
    assert client.get("/api/v1/agent/jobs/102").status_code == 401


def test_a_job_of_an_array_is_found_by_either_name(server: Server, client: httpx.Client) -> None:
    server.monitor.jobs.update(
        Run(str(802 + task), array=f"800_{task}", user="array", started=NOW - 60) for task in range(3)
    )
    head = bearer(server.token("array"))
    assert client.get("/api/v1/jobs/800_2", headers=head).json()["job"] == "804"
    assert "<h1>Job 800_2 <small>(804, " in client.get("/jobs/800_2", headers=head).text
    found = client.get("/api/v1/jobs?text=800_1", headers=head).json()
    assert [run["job"] for run in found] == ["803"]
    assert client.get("/api/v1/jobs/800_9", headers=head).status_code == 404
    assert client.get("/api/v1/jobs/800_2", headers=bearer(server.token("bob"))).status_code == 404


def test_projects_are_summed_and_listed(server: Server, client: httpx.Client) -> None:
    ended = {"started": NOW - 7200, "ended": NOW - 3600, "state": "COMPLETED", "user": "pam", "cores": 4}
    server.monitor.jobs.update(
        Run(str(820 + n), project=("climate", "rna")[n % 2], **ended) for n in range(3)
    )
    head = bearer(server.token("pam"))
    found = client.get("/api/v1/sums/project", headers=head).json()
    assert {row["name"]: (row["jobs"], row["core_hours"]) for row in found} == {
        "climate": (2, 8),
        "rna": (1, 4),
    }
    listed = client.get("/api/v1/jobs?project=climate", headers=head).json()
    assert {run["job"] for run in listed} == {"820", "822"}
    page = client.get("/statistics?by=project", headers=head).text
    assert 'href="/jobs?project=climate"' in page
    assert "821" not in client.get("/jobs?project=climate", headers=head).text


def test_filters_cannot_widen_what_is_seen_and_are_no_sql(server: Server, client: httpx.Client) -> None:
    head = bearer(server.token("alice"))
    for value in ("bob", "' OR 1=1 --", "alice' OR '1'='1", "%", "\x00", 'bob" OR ""="'):
        for key in ("user", "account", "project", "partition", "tag", "text"):
            found = client.get("/api/v1/jobs", params={key: value}, headers=head)
            assert found.status_code == 200
            assert {job["user"] for job in found.json()} <= {"alice"}
    assert (
        client.get("/api/v1/jobs", params={"order": "started; DROP TABLE jobs"}, headers=head).status_code
        == 422
    )
    assert client.get("/api/v1/sums/user)--", headers=head).status_code == 422
    assert len(client.get("/api/v1/jobs", headers=head).json()) == 4
    assert listed(server.monitor.jobs.reader, ("TRUE", []), Filter(text="100%_"), most=5) == ([], None)


@pytest.mark.parametrize("order", ["started", "wasted"])
def test_no_job_is_on_no_page_of_a_list_and_none_on_two(
    server: Server, client: httpx.Client, order: str
) -> None:
    """All jobs of an array begin in the same second, and none has wasted anything."""
    user, started = f"many-{order}", NOW - 3600
    base = 200 if order == "started" else 500
    runs = [Run(str(base + number % 100), number // 100, user=user, started=started) for number in range(120)]
    server.monitor.jobs.update([*runs, Run("199", user=user, started=started - 1)])
    found, address = [], f"/api/v1/jobs?most=50&user={user}&order={order}"
    head = bearer(server.token(user))
    while address:
        answer = client.get(address, headers=head)
        found += [(run["job"], run["restart"]) for run in answer.json()]
        address = httpx.URL(address).join(answer.links["next"]["url"]) if answer.links else ""
    assert len(found) == 121
    assert set(found) == {("199", 0), *((run.job, run.restart) for run in runs)}
    assert client.get("/api/v1/jobs?before=1790000000", headers=head).status_code == 422


def test_what_was_wasted_in_a_week_is_also_of_jobs_that_began_before_it(tmp_path: Path) -> None:
    day = 86_400.0
    with served(tmp_path) as other:
        other.monitor.jobs.update([
            Run("901", user="dan", started=NOW - 10 * day, state="RUNNING"),
            Run("902", user="dan", started=NOW - 10 * day, ended=NOW - day, state="COMPLETED"),
            Run("903", user="dan", started=NOW - 10 * day, ended=NOW - 8 * day, state="COMPLETED"),
            Run("904", user="dan", started=NOW - day, ended=NOW, state="COMPLETED"),
        ])  # fmt: skip
        other.monitor.jobs.write("UPDATE jobs SET idle_gpu_hours = 1000 WHERE user = 'dan'")
        with logged_in(other, "admin") as client:
            found = re.findall(r'href="/jobs/(90\d)', client.get("/admin/jobs?days=7").text)
    assert set(found) == {"901", "902", "904"}


def test_the_cluster_page_says_why_jobs_wait(server: Server, client: httpx.Client) -> None:
    page = client.get("/cluster", headers=bearer(server.token("alice"))).text
    assert "Why jobs wait: Priority 9, Resources 3" in page


def test_the_queue_has_only_the_jobs_that_one_may_see(server: Server, client: httpx.Client) -> None:
    record_queue(server.monitor)
    for who, jobs in (("alice", ["9002", "9004"]), ("admin", ["9001", "9002", "9003_[0-499]", "9004"])):
        head = bearer(server.token(who, "jobs:read", "cluster:read", "admin"))
        waiting = client.get("/api/v1/cluster/waiting", headers=head).json()
        assert [line["job"] for line in waiting["lines"]] == jobs
        assert [(each["reason"], each["jobs"]) for each in waiting["reasons"]][:2] == [
            ("Priority", 500), ("Resources", 100),
        ]  # fmt: skip
    head = bearer(server.token("admin", "cluster:read"))
    assert client.get("/api/v1/cluster/waiting", headers=head).json()["lines"] == []


def test_the_server_records_its_cluster_and_sums_its_months_while_it_runs(
    server: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = bearer(server.token("alice"))
    client.get("/api/v1/cluster/use", headers=head).raise_for_status()
    monkeypatch.setattr(rollups, "MINUTE_S", 0.01)
    jobs, failures, stop = server.monitor.jobs, [], threading.Event()
    record = rollups.record

    def fail_once(*figures: Any) -> None:
        monkeypatch.setattr(rollups, "record", record)
        raise OSError("the disk is full")

    monkeypatch.setattr(rollups, "record", fail_once)
    recorder = Recorder(server.app.state.peerway)
    work = threading.Thread(target=recorder.work, args=(stop, lambda *failure: failures.append(failure)))
    work.start()
    try:
        for table in ("utilization", "queue_history", "months"):
            while not jobs.reader.execute(f"SELECT 1 FROM {table}").fetchone():
                time.sleep(0.01)
    finally:
        stop.set()
        work.join()
    assert [(task, str(error)) for task, error in failures] == [
        ("recording the use of the cluster", "the disk is full")
    ]
    use = client.get("/api/v1/cluster/use?range=hour", headers=head).json()
    assert use["whole"]["curves"]["cpu_allocated"][-1] == pytest.approx(176 / 576)  # as the page counts
    assert use["whole"]["curves"]["gpu_allocated"][-1] == pytest.approx(12 / 40)
    assert set(use["types"]) == {""}  # none of these nodes has a feature
    assert use["waiting"]["jobs"][-1] == client.get("/api/v1/cluster", headers=head).json()["waiting"]
    assert "2026-09" in client.get("/statistics?years=1", headers=head).text
    (month,) = client.get("/api/v1/months", headers=bearer(server.token("bob"))).json()
    assert (month["start"], month["users"], month["new_users"], month["jobs"]) == (1_788_220_800, 1, 1, 2)
    assert client.get("/api/v1/cluster/use?range=year", headers=head).status_code == 422


def test_a_component_of_a_heterogeneous_job_is_shown_with_its_siblings(
    server: Server, client: httpx.Client
) -> None:
    server.monitor.jobs.update(
        Run(
            str(800 + n),
            user="mixed",
            started=NOW - 60,
            component=f"800+{n}",
            nodes=n + 1,
            cores=8,
            suspended=90,
        )
        for n in range(3)
    )
    head = bearer(server.token("mixed"))
    page = client.get("/jobs/801", headers=head).text
    assert "(800+1)" in page
    assert "Other components of the heterogeneous job 800" in page
    assert re.findall(r'href="/jobs/(80\d)">(800\+\d)', page) == [("800", "800+0"), ("802", "800+2")]
    assert "3\u00a0nodes, 8\u00a0cores, 0\u00a0GPUs, RUNNING" in page
    russian = client.get("/jobs/801", headers=head | {"accept-language": "ru"}).text
    assert "Другие части гетерогенного задания 800" in russian
    assert client.get("/api/v1/jobs/802", headers=head).json()["component"] == "800+2"


def test_the_pages_of_jobs_show_each_once(server: Server, client: httpx.Client) -> None:
    server.monitor.jobs.update(Run(str(7000 + n), user="paged", started=NOW - 60) for n in range(120))
    head, found, address = bearer(server.token("paged")), [], "/jobs"
    while address:
        page = client.get(address, headers=head).text
        found += re.findall(r'class="id" href="/jobs/(\d+)', page)
        older = re.search(r'href="(\?[^"]*before=[^"]*)"', page)
        address = "/jobs" + older[1].replace("&amp;", "&") if older else ""
    assert sorted(found) == [str(7000 + n) for n in range(120)]


@pytest.mark.parametrize(
    "path", ["/api/v1/jobs", "/api/v1/jobs/101", "/api/v1/cluster", "/api/v1/rules", "/api/v1/sums/user"]
)
def test_without_a_token_nothing_is_told(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code == 401


def forged(header: dict[str, Any], claims: dict[str, Any], key: bytes) -> str:
    import hashlib
    import hmac

    parts = [base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=") for each in (header, claims)]
    signature = hmac.new(key, b".".join(parts), hashlib.sha256).digest() if header["alg"] != "none" else b""
    return b".".join([*parts, base64.urlsafe_b64encode(signature).rstrip(b"=")]).decode()


CLAIMS = {
    "sub": "admin",
    "preferred_username": "admin",
    "iss": "https://id",
    "aud": "peerway",
    "nonce": "n",
    "exp": 4_000_000_000,
}


@pytest.mark.parametrize(
    "token",
    [
        "x",
        "x" * 43,
        "A" * 43,
        "null",
        forged({"alg": "none"}, CLAIMS, b""),
        forged({"alg": "HS256"}, CLAIMS, b""),
        "' OR 1=1 --" + "x" * 32,
        "é" * 43,
    ],
)
def test_forged_tokens_and_sessions_are_refused(client: httpx.Client, token: str) -> None:
    raw = f"Bearer {token}".encode("latin-1")
    assert client.get("/api/v1/jobs", headers={"Authorization": raw}).status_code == 401
    cookie = f"peerway_session={token}".encode("latin-1")
    assert client.get("/api/v1/jobs", headers={"Cookie": cookie}).status_code == 401


def test_a_token_can_do_no_more_than_its_scopes(server: Server, client: httpx.Client) -> None:
    head = bearer(server.token("admin", "cluster:read"))
    assert client.get("/api/v1/cluster", headers=head).status_code == 200
    assert client.get("/api/v1/jobs", headers=head).status_code == 403
    reads = bearer(server.token("admin", "jobs:read"))
    assert (
        client.get("/api/v1/jobs/103", headers=reads).status_code == 404
    )  # an administrator's token without the scope admin
    assert client.post("/api/v1/rules/replay", json={"text": ""}, headers=reads).status_code == 403
    assert client.post("/api/v1/tokens", json={"scopes": ["jobs:read"]}, headers=reads).status_code == 403
    agent = bearer(server.token("", "agent", node="n1"))
    assert client.get("/api/v1/jobs", headers=agent).status_code == 403
    assert client.get("/jobs", headers=agent).status_code == 403
    people = People(server.monitor.jobs)
    for scopes, node in (
        (["agent"], ""),
        (["agent", "admin"], "n1"),
        (["jobs:read"], "n1"),
        ([], ""),
        (["root"], ""),
    ):
        with pytest.raises(ValueError, match="scope"):
            people.make_token("x", scopes, NOW, node)
    ended = people.make_token("alice", ["jobs:read"], NOW - 10 * 86400, days=1)
    assert client.get("/api/v1/jobs", headers=bearer(ended)).status_code == 401


# -- the pages


@contextlib.contextmanager
def logged_in(server: Server, who: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60, headers={"Origin": server.url}) as client:
        answer = client.post("/login", data={"name": who, "password": PASSWORD})
        assert answer.status_code == 303, answer.text
        yield client


def test_who_logs_in_gets_the_page_that_was_asked_for(server: Server) -> None:
    """Such as the page of a job linked in a mail; but never a page of another server."""
    for asked, then in (
        ("/jobs/102?restart=0", "/jobs/102?restart=0"),
        ("//example.org/jobs/102", "/jobs"),
        (f"/jobs?text={'x' * 2000}", "/jobs"),
    ):
        with httpx.Client(base_url=server.url, timeout=60, headers={"Origin": server.url}) as client:
            assert client.get(server.url + asked).status_code in (303, 404, 422)
            answer = client.post("/login", data={"name": "alice", "password": PASSWORD})
            assert answer.headers["location"] == then
            assert client.get("/jobs").status_code == 200
            again = client.post("/login", data={"name": "alice", "password": PASSWORD})
            assert again.headers["location"] == "/jobs"


def test_rules_that_cannot_be_written_are_said_so_and_are_still_in_the_editor(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = tmp_path / "gone" / "rules.toml"
    monkeypatch.setattr(server.monitor, "rules_file", there)
    text = server.monitor.rules.text + "\n# mine\n"
    with logged_in(server, "admin") as client:
        answer = client.post("/admin/rules", data={"text": text})
    assert answer.status_code == 503
    assert f"the server cannot write {there}: No such file or directory" in answer.text
    assert "# mine" in answer.text


def test_lists_that_are_cut_say_so(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics_page, "MOST_SUMS", 2)
    monkeypatch.setattr(admin_pages, "MOST_WASTED", 2)
    with logged_in(server, "admin") as client:
        for path in ("/statistics?by=user&days=366", "/admin/jobs?days=366"):
            assert "The first 2 are shown." in client.get(path).text
        monkeypatch.setattr(statistics_page, "MOST_SUMS", 50)
        assert "are shown" not in client.get("/statistics?by=user&days=366").text


def test_a_job_that_is_not_there_may_not_have_begun(server: Server) -> None:
    with logged_in(server, "alice") as client:
        assert "A job appears when it has begun." in client.get("/jobs/4242").text
        assert "no such page" in client.get("/nowhere").text


def test_a_list_says_which_finding_or_partition_it_is_of(server: Server) -> None:
    with logged_in(server, "admin") as client:
        assert '<a href="/jobs?partition=gpu">' in client.get("/statistics?by=partition&days=366").text
        listed = client.get("/jobs?partition=gpu").text
        assert "· partition gpu</h1>" in listed
        assert '<input type="hidden" name="partition" value="gpu">' in listed
        assert "· GPUs never used</h1>" in client.get("/jobs?tag=gpu-one-used").text


def test_what_a_job_is_called_is_shown_and_never_obeyed(server: Server) -> None:
    waiting = WaitingJob("9", "bob", EVIL_QUOTED, EVIL, EVIL_QUOTED, EVIL, 1, 1, 1, 0, NOW, None)
    keep_queue(server.monitor.jobs, [ReasonSum(EVIL, 1), ReasonSum(EVIL_QUOTED, 1)], [waiting], 0, NOW)
    record(server.monitor.jobs, NOW, {kind: {"minutes": 1, "cores": 1} for kind in ("h100", EVIL_QUOTED)})
    with logged_in(server, "admin") as client:
        for path in (
            "/jobs?everyone=true",
            "/jobs/102",
            "/admin/jobs?days=366",
            "/statistics?by=account&days=366",
            "/cluster",
            "/cluster/waiting",
            "/wall/now",
        ):
            page = client.get(path)
            assert page.status_code == 200
            assert EVIL not in page.text
            assert "<img" not in page.text
            assert "<script>document" not in page.text
            assert "script-src 'self';" in page.headers["content-security-policy"]
            assert not re.search(r"\son\w+\s*=", re.sub(r">[^<]*<", "><", page.text))
        assert "{{7*7}}" in client.get("/jobs/102").text


def test_a_page_of_another_site_changes_nothing(server: Server) -> None:
    with logged_in(server, "admin") as client:
        for headers in (
            {"Origin": "https://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site"},
            {},
        ):
            client.headers.pop("origin", None)
            for path in ("/admin/rules", "/tokens", "/logout", "/language", "/login", "/api/v1/tokens"):
                data = {"text": "x", "name": "a", "password": "b", "to": "ru", "back": "/"}
                body: Any = {"json": {"scopes": ["jobs:read"]}} if path.startswith("/api") else {"data": data}
                assert client.post(path, **body, headers=headers).status_code == 403, (path, headers)
        cookie = client.cookies.jar._cookies["127.0.0.1"]["/"]["peerway_session"]  # type: ignore[attr-defined]
        assert cookie.has_nonstandard_attr("HttpOnly")


def test_only_administrators_reach_their_pages_and_logging_out_ends_the_session(server: Server) -> None:
    with logged_in(server, "alice") as client:
        for path in ("/admin/jobs", "/admin/rules"):
            assert client.get(path).status_code == 403
        assert client.post("/admin/rules", data={"text": "x"}).status_code == 403
        assert client.post("/api/v1/tokens", json={"scopes": ["admin"]}).status_code == 403
        cookies = dict(client.cookies)
        client.post("/logout")
        client.cookies.update(cookies)
        assert client.get("/jobs").status_code == 303
        back = client.post("/language", data={"to": "ru", "back": "//evil.example/"})
        assert back.headers["location"] == "/jobs"


def test_a_person_chooses_whether_to_get_mail(server: Server) -> None:
    with logged_in(server, "bob") as client:
        chosen = 'name="mail" value="true" checked'
        assert chosen in client.get("/tokens").text
        assert client.post("/notices").status_code == 303
        assert chosen not in client.get("/tokens").text
        assert (
            client.post("/notices", data={"mail": "true"}, headers={"Origin": "https://e"}).status_code == 403
        )
        assert not People(server.monitor.jobs).wants_mail("bob")
        assert client.post("/notices", data={"mail": "true"}).status_code == 303
        assert chosen in client.get("/tokens").text


def test_a_script_is_shown_to_its_owner_and_to_administrators_alone(
    server: Server, client: httpx.Client
) -> None:
    secret = "export TOKEN=hush\n</pre><script>alert(1)</script>"
    server.monitor.jobs.write("UPDATE jobs SET script = ? WHERE job = '103'", (secret,))
    for who, shown in (("bob", True), ("admin", True), ("manager", False)):
        head = bearer(server.token(who, "jobs:read", "admin"))
        assert (client.get("/api/v1/jobs/103", headers=head).json()["script"] == secret) is shown
        with logged_in(server, who) as person:
            page = person.get("/jobs/103").text
        assert ("TOKEN=hush" in page) is shown
        assert "<script>alert" not in page
    assert "TOKEN=hush" not in client.get("/api/v1/jobs", headers=bearer(server.token("bob"))).text


def login(
    server: Server, name: str, password: str, address: str = "127.0.0.1", **headers: str
) -> httpx.Response:
    """Log in from an address of this host."""
    transport = httpx.HTTPTransport(local_address=address)
    with httpx.Client(base_url=server.url, transport=transport, timeout=60) as client:
        head = {"Origin": server.url, **headers}
        return client.post("/login", data={"name": name, "password": password}, headers=head)


def test_who_guesses_has_to_wait_and_nobody_else(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    # The clock stands still: on a busy machine the logins take longer than the wait.
    monkeypatch.setattr(server.app.state.logins, "attempts", Attempts(lambda: 0.0))
    answers = [login(server, "alice", f"wrong {n}", "127.0.0.2") for n in range(FREE + 1)]
    assert [each.status_code for each in answers] == [401] * FREE + [429]
    assert int(answers[-1].headers["Retry-After"]) >= 1
    assert "Try again in" in answers[-1].text
    assert login(server, "alice", PASSWORD).status_code == 303  # the owner, from another address
    assert login(server, "bob", PASSWORD, "127.0.0.2").status_code == 303  # another name at that address
    assert login(server, "alice", PASSWORD, "127.0.0.2").status_code == 429


def test_each_wrong_password_makes_the_wait_longer_up_to_seconds_and_time_forgives() -> None:
    now = [0.0]
    attempts, waits = Attempts(lambda: now[0]), []
    for _ in range(FREE + 10):
        waits.append(attempts.wait_s("alice", "a"))
        now[0] += waits[-1]
        assert attempts.wait_s("alice", "a") == 0  # after waiting, another try is always allowed
        attempts.failed("alice", "a")
    assert waits[: FREE + 1] == [0] * FREE + [1]
    assert waits == sorted(waits)
    assert waits[-1] == LONGEST_S <= 5  # because the owner may share that address
    assert attempts.wait_s("alice", "b") == attempts.wait_s("bob", "a") == 0
    attempts.succeeded("alice", "a")
    assert attempts.wait_s("alice", "a") == 0


def test_what_a_trusted_proxy_says_of_a_client_counts_and_what_others_say_does_not(tmp_path: Path) -> None:
    proxy = (ipaddress.ip_network("127.0.0.7"),)
    with served(tmp_path, proxies=proxy, portal=dataclasses.replace(PORTAL, proxies=proxy)) as server:
        server.app.state.logins.attempts = Attempts(lambda: 0.0)
        via = {"X-Forwarded-For": "10.1.1.1", "X-Forwarded-Proto": "https"}
        for n in range(FREE):
            login(server, "alice", f"wrong {n}", "127.0.0.7", **via)
        assert login(server, "alice", PASSWORD, "127.0.0.7", **via).status_code == 429
        other = {**via, "X-Forwarded-For": "6.6.6.6, 10.1.1.2"}  # the first address is the client's own claim
        answer = login(server, "alice", PASSWORD, "127.0.0.7", **other)
        assert answer.status_code == 303
        assert "secure" in answer.headers["set-cookie"].lower()
        straight = login(server, "alice", PASSWORD, "127.0.0.1", **other)
        assert "secure" not in straight.headers["set-cookie"].lower()
        # a client behind the proxy is not the proxy, so it may not name a person
        transport = httpx.HTTPTransport(local_address="127.0.0.7")
        head = {"Remote-User": "admin", "X-Forwarded-For": "10.1.1.1"}
        with httpx.Client(base_url=server.url, transport=transport) as client:
            assert client.get("/admin/jobs", headers=head).status_code == 200
        assert httpx.get(server.url + "/admin/jobs", headers=head).status_code == 303
        spoofed = {"Remote-User": "admin", "X-Forwarded-For": "127.0.0.7"}
        assert httpx.get(server.url + "/admin/jobs", headers=spoofed).status_code == 303


@pytest.mark.parametrize("path", ["/login", "/jobs", "/api/v1/jobs", "/static/page.css", "/nothing"])
def test_head_is_answered_as_get_without_the_body(server: Server, client: httpx.Client, path: str) -> None:
    head = bearer(server.token("alice"))
    got, headed = client.get(path, headers=head), client.head(path, headers=head)
    assert (headed.status_code, headed.content) == (got.status_code, b"")
    assert headed.headers["content-length"] == got.headers["content-length"]


def test_a_request_that_does_not_come_ends_its_connection(
    server: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a header, single bytes, nothing at all, and a body that stops."""
    monkeypatch.setattr(connections, "HEAD_S", 0.2)
    monkeypatch.setattr(connections, "BODY_S", 0.2)
    host, port = httpx.URL(server.url).host, httpx.URL(server.url).port
    for begin, drip in (
        (b"", b""),
        (b"GET /login HTTP/1.1\r\nHost: x\r\n", b""),
        (b"GET /login HTTP/1.1\r\n", b"A: b\r\n"),
        (b"GET /login HTTP/1.1\r\nHost: x\r\n\r\nGET /jobs", b""),
        (b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
         b"Content-Type: application/x-www-form-urlencoded\r\n\r\na=", b""),
    ):  # fmt: skip
        with socket.create_connection((host, port)) as connection:
            connection.sendall(begin)
            connection.settimeout(0.05)
            answer = b""
            while True:
                try:
                    if not (part := connection.recv(65536)):
                        break
                    answer += part
                except TimeoutError:
                    with contextlib.suppress(OSError):
                        connection.sendall(drip)
                except ConnectionResetError:
                    break
            if begin.startswith(b"POST"):  # otherwise a client would wait for the end of an idle connection
                assert answer.startswith(b"HTTP/1.1 408")
                assert b"connection: close" in answer.lower()
    assert client.get("/login").status_code == 200


def test_passwords_of_who_has_none_are_wrong(server: Server) -> None:
    people = People(server.monitor.jobs)
    assert not people.check("nobody", "x")
    assert not people.check("bob", "")
    people.put("portal-only")
    assert not people.check("portal-only", "")
    with pytest.raises(ValueError, match="at least"):
        people.set_password("bob", "short")


def test_a_portals_header_counts_only_from_the_portal(tmp_path: Path) -> None:
    with served(tmp_path / "a", portal=PORTAL) as near, httpx.Client(base_url=near.url) as client:
        assert client.get("/api/v1/jobs/103", headers={"Remote-User": "bob"}).status_code == 200
        assert client.get("/api/v1/jobs/103", headers={"Remote-User": "alice"}).status_code == 404
        two = [("Remote-User", "alice"), ("Remote-User", "bob")]
        assert client.get("/api/v1/jobs/103", headers=two).status_code == 401
        far = Portal("Remote-User", (ipaddress.ip_network("10.0.0.0/8"),))
        near.app.state.peerway.access._portal = far
        headers = {"Remote-User": "bob", "X-Forwarded-For": "10.0.0.1"}
        assert client.get("/api/v1/jobs/103", headers=headers).status_code == 401


def test_an_id_token_needs_the_providers_signature() -> None:
    from joserfc import jwt
    from joserfc.jwk import RSAKey

    key, other = RSAKey.generate_key(2048, {"kid": "1"}), RSAKey.generate_key(2048, {"kid": "1"})
    provider = Provider("https://id", "peerway", "secret", "https://jobs/oidc/back")
    keys = {"keys": [key.as_dict(private=False)]}
    head = {"alg": "RS256", "kid": "1"}
    claims = {**CLAIMS, "exp": int(time.time()) + 60}
    assert provider.name_of(provider.proved(jwt.encode(head, claims, key), keys, "n")) == "admin"
    public = key.as_pem(private=False)
    wrong = [
        jwt.encode(head, claims, other),
        forged({"alg": "none"}, claims, b""),
        forged({"alg": "HS256", "kid": "1"}, claims, b""),
        forged({"alg": "HS256", "kid": "1"}, claims, public),
        "",
        "a.b.c",
        *[
            jwt.encode(head, {**claims, **bad}, key)
            for bad in (
                {"nonce": "m"},
                {"aud": "other"},
                {"iss": "https://evil"},
                {"exp": 1},
                {"sub": None},
                {"preferred_username": ""},
                {"preferred_username": 7},
            )
        ],
    ]
    for token in wrong:
        with pytest.raises(LoginFailed):
            provider.name_of(provider.proved(token, keys, "n"))


# -- agents


def test_a_batch_is_acknowledged_once_it_is_kept_and_a_second_time_changes_nothing(
    server: Server, client: httpx.Client
) -> None:
    head = {**bearer(server.token("", "agent", node="wire1")), **sent()}
    body = frame(encode(node_batch(1, "wire1"))) + frame(encode(node_batch(2, "wire1")))
    for _ in range(2):
        answer = client.post("/api/v1/agent/batches", content=body, headers=head)
        assert (answer.status_code, answer.json()) == (200, {"stream": "ab" * 16, "acknowledged": 2})
    assert server.monitor.jobs.known("wire1", "ab" * 16, 2)
    rows = server.monitor.samples.read("wire1", "gpu", 0, 1 << 50, ["GPU-0"])  # both have one time
    assert [points.times.size for points in rows.values()] == [1]


def test_what_is_no_batch_of_this_node_is_refused_and_what_came_before_is_kept(
    server: Server, client: httpx.Client
) -> None:
    head = {**bearer(server.token("", "agent", node="wire2")), **sent()}
    good, foreign = frame(encode(node_batch(1, "wire2"))), frame(encode(node_batch(9, "wire1")))
    bad = node_batch(2, "wire2")
    bad.node = "../../etc"
    cases = [
        (good + foreign, 403),
        (frame(encode(bad)), 422),
        (b"", 400),
        (b"PWJ1xxxx", 400),
        (good[:-1], 400),
        (frame(b"junk"), 422),
        (good * 65, 400),
    ]
    for body, status in cases:
        answer = client.post("/api/v1/agent/batches", content=body, headers=head)
        assert answer.status_code == status, answer.text
        assert "error" in answer.json()
    assert server.monitor.jobs.known("wire2", "ab" * 16, 1)
    assert not server.monitor.jobs.known("wire1", "ab" * 16, 9)
    person = {**bearer(server.token("admin", "jobs:read")), **sent()}
    assert client.post("/api/v1/agent/batches", content=good, headers=person).status_code == 403
    no_clock = {key: value for key, value in head.items() if key != "Peerway-Sent"}
    assert client.post("/api/v1/agent/batches", content=good, headers=no_clock).status_code == 400
    assert not [path for path in server.monitor.folder.rglob("*") if "etc" in path.name]


PART = b'--x\r\nContent-Disposition: form-data; name="a"; filename="b"\r\n\r\n'
FIELDS = b"&".join([b"a=" + b"x" * 65536] * (MOST_BODY // 65536 + 1))


@pytest.mark.parametrize("whole", [True, False], ids=["length told", "in chunks"])
@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("/login", "application/x-www-form-urlencoded", FIELDS),
        ("/login", "multipart/form-data; boundary=x", PART + FIELDS),
        ("/language", "application/x-www-form-urlencoded", FIELDS),
        ("/api/v1/tokens", "application/json", FIELDS),
        ("/api/v1/rules/replay", "application/json", FIELDS),
    ],
)
def test_nobody_fills_the_servers_memory(
    client: httpx.Client, path: str, kind: str, body: bytes, whole: bool
) -> None:
    content = body if whole else (body[at : at + 65536] for at in range(0, len(body), 65536))
    answer = client.post(path, content=content, headers={"Content-Type": kind})
    assert answer.status_code == 413, answer.text[:300]
    assert f"{MOST_BODY:,}" in answer.text


def test_a_full_disk_is_not_now_and_nothing_of_it_is_acknowledged(
    server: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = {**bearer(server.token("", "agent", node="wire3")), **sent()}
    body = frame(encode(node_batch(1, "wire3")))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(server.monitor.samples, "put", full)
        assert client.post("/api/v1/agent/batches", content=body, headers=head).status_code == 503
    assert not server.monitor.jobs.known("wire3", "ab" * 16, 1)
    assert client.post("/api/v1/agent/batches", content=body, headers=head).status_code == 200


def test_a_database_of_samples_that_is_away_is_said_in_words(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server.monitor, "samples", PromStore("http://127.0.0.1:1"))
    head = bearer(server.token("alice", "jobs:read"))
    answer = httpx.get(f"{server.url}/api/v1/jobs/102/series", headers=head)
    assert answer.status_code == 503
    assert "cannot reach http" not in answer.text  # the address of the database is only for the log
    assert "the database of samples does not answer" in answer.text
    assert httpx.get(f"{server.url}/api/v1/jobs/102", headers=head).status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/plotly/..%2f..%2fpage.html.j2",
        "/jobs/..%2f..%2fetc",
        "/jobs/1%27",
        "/static/%00",
    ],
)
def test_no_path_leaves_its_folder(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code in (303, 404)


# -- the whole API


@pytest.mark.long
def test_the_api_keeps_what_its_document_says_whatever_is_sent(server: Server) -> None:
    import schemathesis
    from hypothesis import HealthCheck, given, settings
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    headers = bearer(server.token("admin", "jobs:read", "cluster:read", "admin"))
    calls = []

    def check(case: Any) -> None:
        calls.append(case.operation.path)
        # No schema can say which texts are rules.
        replay = case.operation.path.endswith("/replay")
        case.call_and_validate(
            headers=headers, timeout=60, excluded_checks=[positive_data_acceptance] if replay else None
        )

    bounded = settings(
        max_examples=25,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    schema = schemathesis.openapi.from_url(f"{server.url}/api/v1/openapi.json")
    for found in schema.exclude(path="/api/v1/agent/batches").get_all_operations():
        bounded(given(case=found.ok().as_strategy())(check))()
    assert len(set(calls)) >= 7


def test_the_document_says_what_each_call_answers(client: httpx.Client) -> None:
    document = client.get("/api/v1/openapi.json").json()
    for path, methods in document["paths"].items():
        for method, told in methods.items():
            good = next(each for code, each in told["responses"].items() if code.startswith("2"))
            schema = good["content"]["application/json"]["schema"]
            assert schema.keys() & {"$ref", "items"}, (method, path)
    assert "started" in document["components"]["schemas"]["RunTold"]["required"]
    assert "findings" in document["components"]["schemas"]["VerdictTold"]["required"]


def test_agents_may_send_any_bytes_and_the_server_lives(server: Server, client: httpx.Client) -> None:
    from hypothesis import HealthCheck, given, settings
    from hypothesis import strategies as some

    head = {**bearer(server.token("", "agent", node="wire4")), **sent()}

    @settings(
        max_examples=40,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(some.binary(max_size=200), some.booleans(), some.text(max_size=20))
    def check(body: bytes, framed: bool, clock: str) -> None:
        content = frame(body) if framed and body else body
        answer = client.post("/api/v1/agent/batches", content=content, headers=head)
        assert answer.status_code in (400, 413, 422)
        odd = {
            **head,
            "Peerway-Sent": clock.encode("ascii", "ignore")
            .replace(b"\r", b"")
            .replace(b"\n", b"")
            .replace(b"\0", b""),
        }
        with contextlib.suppress(httpx.LocalProtocolError):
            assert client.post("/api/v1/agent/batches", content=content, headers=odd).status_code == 400

    check()


def test_no_word_is_missing_in_any_language() -> None:
    used: set[str] = set()
    for path in (Path(serve.__file__).parent / "templates").glob("*.j2"):
        used |= set(re.findall(r'\bt\("([^"]+)"[,)]', path.read_text()))
    assert len(used) > 60
    assert used <= set(WORDS)
    for key, texts in WORDS.items():
        assert len(texts) == len(LANGUAGES)
        assert key == "none" or all(texts)
        assert set(re.findall(r"{\w+}", texts[0])) == set(re.findall(r"{\w+}", texts[1]))


# -- the server itself


def test_the_server_says_how_it_is(server: Server, client: httpx.Client) -> None:
    assert (client.get("/healthz").status_code, client.get("/healthz").json()) == (200, {"status": "ok"})
    assert client.get("/metrics").status_code == 401
    assert client.get("/metrics", headers=bearer(server.token("bob", "jobs:read"))).status_code == 403
    head = {**bearer(server.token("", "agent", node="wire9")), **sent()}
    reader = bearer(server.token("bob", "cluster:read"))

    def figures() -> dict[str, float]:
        text = client.get("/metrics", headers=reader).text
        assert text.endswith("# EOF\n")
        return {
            name: float(value) for name, value in re.findall(r"^(peerway_\w+) (\S+)$", text, re.MULTILINE)
        }

    before = figures()
    assert before["peerway_jobs_jobs"] >= 7
    client.post("/api/v1/agent/batches", content=frame(encode(node_batch(1, "wire9"))), headers=head)
    client.post("/api/v1/agent/batches", content=frame(b"junk"), headers=head)
    after = figures()
    for name in ("taken", "refused"):
        assert after[f"peerway_jobs_batches_{name}_total"] == before[f"peerway_jobs_batches_{name}_total"] + 1


def test_a_node_that_sends_without_end_is_told_to_come_later() -> None:
    now = [0.0]
    buckets = Buckets(lambda: now[0])
    sent_at_once = 0
    while not (wait := buckets.wait_s("n1", 1 << 20)):
        sent_at_once += 1 << 20
    assert MOST_BYTES * 0.9 < sent_at_once <= MOST_BYTES
    assert buckets.wait_s("n2", 1 << 20) == 0
    now[0] += wait
    assert buckets.wait_s("n1", 1 << 20) == 0
    assert buckets.wait_s("n1", 1 << 20) > 0


def test_too_much_of_a_node_is_429_with_a_time(
    server: Server, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = {**bearer(server.token("", "agent", node="wire10")), **sent()}
    monkeypatch.setattr(Buckets, "wait_s", lambda *_: 2.5)
    answer = client.post(
        "/api/v1/agent/batches", content=frame(encode(node_batch(1, "wire10"))), headers=head
    )
    assert (answer.status_code, answer.headers["Retry-After"]) == (429, "3")


def test_logins_rules_and_tokens_are_in_the_log_for_administrators(server: Server) -> None:
    login(server, "alice", "wrong", "127.0.0.9")
    with logged_in(server, "admin") as client:
        before = set(re.findall(REVOKE, client.get("/tokens").text))  # tokens of other tests
        client.post("/tokens", data={"days": 1})
        (token,) = set(re.findall(REVOKE, client.get("/tokens").text)) - before
        client.post("/tokens", data={"revoke": token})
        client.post("/admin/rules", data={"text": server.monitor.rules.text})
        client.post("/logout")
    head = bearer(server.token("admin", "jobs:read", "admin"))
    found = [
        (e["who"], e["action"]) for e in httpx.get(f"{server.url}/api/v1/audit", headers=head).json()[:6]
    ]
    assert found[::-1] == [
        ("alice", "wrong password"), ("admin", "logged in"), ("admin", "token made"),
        ("admin", "token revoked"),
        ("admin", "rules changed"), ("admin", "logged out"),
    ]  # fmt: skip
    page = httpx.get(f"{server.url}/admin/audit", headers=head).text
    assert "wrong password" in page
    assert "127.0.0.9" in page
    for path in ("/api/v1/audit", "/admin/audit"):
        assert httpx.get(server.url + path, headers=bearer(server.token("bob"))).status_code == 403


def test_whom_a_portal_lets_in_is_in_the_log_once_a_day(tmp_path: Path) -> None:
    clock = [NOW]
    for _ in range(2):  # the second server has restarted
        monitor = Monitor(tmp_path, clock=lambda: clock[0])
        with serving(monitor, portal=PORTAL) as server:
            for day in (0, 1):
                clock[0] = NOW + day * 86_400
                for who, path in (("bob", "/jobs"), ("ann", "/api/v1/jobs"), ("bob", "/api/v1/jobs")):
                    assert httpx.get(server.url + path, headers={"Remote-User": who}).status_code == 200
            found = [(e["who"], e["action"], e["detail"], e["address"]) for e in entries(monitor.jobs)]
        of_day = [(who, "logged in", "portal", "127.0.0.1") for who in ("ann", "bob")]
        assert found == of_day * 2


def test_whom_a_portal_names_reads_pages_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise DiskFailed(tmp_path / "jobs.db", sqlite_error)

    sqlite_error = sqlite3.OperationalError("database or disk is full")
    sqlite_error.sqlite_errorcode, sqlite_error.sqlite_errorname = sqlite3.SQLITE_FULL, "SQLITE_FULL"
    with served(tmp_path, portal=PORTAL) as server:
        head = {"Remote-User": "bob"}
        with monkeypatch.context() as patched:
            patched.setattr("peerway_jobs.serve.access.note", full)
            assert httpx.get(f"{server.url}/jobs/103", headers=head).status_code == 200
        assert entries(server.monitor.jobs) == []
        assert httpx.get(f"{server.url}/jobs/103", headers=head).status_code == 200
        assert [entry["who"] for entry in entries(server.monitor.jobs)] == ["bob"]


# -- lists, sums and tiles


@pytest.fixture(scope="module")
def usage(server: Server) -> dict[str, str]:
    """Jobs of uma: two ended tasks of an array, and one running job."""
    some: dict[str, Any] = {"user": "uma", "cores": 4, "node_list": "node01", "nodes": 1}
    failed: dict[str, Any] = {"state": "FAILED", "exit_code": 7, "reason": "NonZeroExitCode", "name": "=1+1"}
    day = 86_400
    server.monitor.jobs.update(
        [
            Run("1601", array="1600_3", started=NOW - 7200, ended=NOW - 3600, **failed, **some),
            Run(
                "1602", array="1600_4", started=NOW - 9 * day, ended=NOW - 8 * day, state="COMPLETED", **some
            ),
            Run("1603", started=NOW - 3600, **some),
        ]
    )
    server.monitor.jobs.write("UPDATE jobs SET cpu_efficiency = 0.1 WHERE job = '1602'")
    return bearer(server.token("uma"))


def test_a_list_is_ordered_bounded_by_days_and_had_as_csv(
    client: httpx.Client, usage: dict[str, str]
) -> None:
    def shown(query: str) -> list[tuple[str, str]]:
        page = client.get(f"/jobs?{query}", headers=usage).text
        return re.findall(r'class="id" href="/jobs/(\d+)[^>]*>([^<]*)<', page)

    assert shown("text=160") == []
    assert shown("text=1600_3") == [("1601", "1600_3")]
    assert [job for job, _ in shown("order=elapsed&state=finished")] == ["1602", "1601"]
    assert shown("order=cpu")[0][0] == "1602"
    day = time.strftime("%Y-%m-%d", time.gmtime(NOW - 86_400 * 9))
    assert [job for job, _ in shown(f"since={day}&until={day}")] == ["1602"]
    for wrong in ("since=2026-13-01", "since=soon", "order=name", "form=pdf"):
        assert client.get(f"/jobs?{wrong}", headers=usage).status_code == 422
    answer = client.get("/jobs?form=csv&order=started", headers=usage)
    assert answer.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert [row["job"] for row in rows] == ["1603", "1601", "1602"]
    assert (rows[1]["exit_code"], rows[1]["name"], rows[0]["ended"]) == ("7", "'=1+1", "")
    found = client.get(f"/api/v1/jobs?until={NOW - 86_400}", headers=usage).json()
    assert [run["job"] for run in found] == ["1602"]


def test_a_csv_has_all_pages(server: Server, client: httpx.Client) -> None:
    server.monitor.jobs.update(Run(str(17_000 + n), user="vera", started=NOW - 60) for n in range(1200))
    text = client.get("/jobs?form=csv", headers=bearer(server.token("vera"))).text
    assert len({row["job"] for row in csv.DictReader(text.splitlines())}) == 1200


def test_a_jobs_page_says_where_it_ran_and_how_it_ended(client: httpx.Client, usage: dict[str, str]) -> None:
    page = client.get("/jobs/1601", headers=usage).text
    for text in ("<dt>Exit code</dt><dd>7</dd>", "<dt>Reason</dt><dd>NonZeroExitCode</dd>", "Nodes: node01"):
        assert text in page


def test_sums_may_count_jobs_that_run(client: httpx.Client, usage: dict[str, str]) -> None:
    assert client.get("/api/v1/sums/user?days=1", headers=usage).json()[0]["core_hours"] == 4
    assert client.get("/api/v1/sums/user?days=1&running=true", headers=usage).json()[0]["core_hours"] == 8
    assert client.get("/statistics?running=true", headers=usage).status_code == 200


def test_tiles_name_the_jobs_that_one_may_see(
    server: Server, client: httpx.Client, usage: dict[str, str]
) -> None:
    link = 'href="/jobs/1603"'
    assert link in client.get("/cluster", headers=usage).text
    assert link not in client.get("/cluster", headers=bearer(server.token("bob"))).text
    assert link not in client.get("/cluster", headers=bearer(server.token("uma", "cluster:read"))).text


def test_tasks_of_an_array_are_listed_with_their_sum(
    server: Server, client: httpx.Client, usage: dict[str, str]
) -> None:
    server.monitor.jobs.update([Run("1699", array="16000_1", user="uma", started=NOW - 60)])
    page = client.get("/jobs?array=1600", headers=usage).text
    assert re.findall(r'class="id" href="/jobs/(\d+)', page) == ["1601", "1602"]
    for key, value in (("Tasks begun", "2"), ("not completed", "1"), ("Core-hours", "100")):
        assert f"<dt>{key}</dt><dd>{value}</dd>" in page
    assert 'href="/jobs?array=1600"' in client.get("/jobs/1601", headers=usage).text
    other = client.get("/jobs?array=1600", headers=bearer(server.token("bob"))).text
    assert "<dt>Tasks begun</dt><dd>0</dd>" in other


def test_an_array_is_one_row_of_the_list_with_its_sum(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tasks began between other jobs, on both sides of a page break."""
    monkeypatch.setattr(pages, "A_PAGE", 3)
    tasks = [n for n in range(1, 31) if n != 7]
    some: dict[str, Any] = {"user": "fay", "cores": 2, "nodes": 1, "state": "COMPLETED"}
    ended = [
        Run(str(19_000 + n), array=f"19000_{n}", started=NOW - 9000 + n, ended=NOW - 5400 + n, **some)
        for n in tasks
    ]
    other = [Run(str(19_100 + n), started=NOW - 9000 + 7 * n, ended=NOW - 60, **some) for n in range(5)]
    alone = Run("19200", array="19200_5", started=NOW - 9100, ended=NOW - 60, **some)
    server.monitor.jobs.update([*ended, *other, alone])
    head, query, rows = bearer(server.token("fay")), "", []
    while True:
        page = httpx.get(f"{server.url}/jobs{query}", headers=head).text
        rows += re.findall(r'class="id" href="/jobs([^"]*)">([^<]*)<', page)
        if not (older := re.search(r'class="button" href="([^"]*before=[^"]*)"', page)):
            break
        query = older[1].replace("&amp;", "&")
    assert rows == [
        ("?array=19000", "19000_[1-6,8-30]"),
        *[(f"/{19_100 + n}", str(19_100 + n)) for n in (4, 3, 2, 1, 0)],
        ("/19200", "19200_5"),
    ]
    first = httpx.get(f"{server.url}/jobs", headers=head).text
    assert "tasks begun: 29" in first
    assert "Core-hours: 58" in first
    by_use = httpx.get(f"{server.url}/jobs?order=elapsed", headers=head).text
    assert "[1-6" not in by_use


def test_a_long_array_leaves_no_page_empty(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages, "A_PAGE", 2)
    some: dict[str, Any] = {"user": "gus", "cores": 1, "nodes": 1}
    tasks = [Run(str(21_000 + n), array=f"21000_{n}", started=NOW - 5000 + n, **some) for n in range(300)]
    older = [Run(str(21_900 + n), started=NOW - 6000 + n, **some) for n in range(2)]
    server.monitor.jobs.update([*tasks, *older])
    head = bearer(server.token("gus"))
    first = httpx.get(f"{server.url}/jobs", headers=head).text
    assert re.findall(r'class="id" href="/jobs([^"]*)"', first) == ["?array=21000", "/21901"]
    link = re.search(r'class="button" href="([^"]*before=[^"]*)"', first)
    assert link is not None
    second = httpx.get(f"{server.url}/jobs{link[1].replace('&amp;', '&')}", headers=head).text
    assert re.findall(r'class="id" href="/jobs([^"]*)"', second) == ["/21900"]
    middle = f"{NOW - 4800}:21200:0"  # a page that begins among its tasks
    page = httpx.get(f"{server.url}/jobs?before={middle}", headers=head).text
    assert re.findall(r'class="id" href="/jobs([^"]*)"', page) == ["/21901", "/21900"]


def test_a_defect_at_one_batch_holds_up_no_other(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether the batches are written together or not."""
    file = server.monitor.jobs.file

    def failing(batches: list[Filed], late_ms: int = 0) -> None:
        if any(each.batch.node == "defect" for each in batches):
            raise TypeError("no defect that anybody thought of")
        file(batches, late_ms)

    monkeypatch.setattr(server.monitor.jobs, "file", failing)

    def status(node: str, seq: int) -> int:
        head = {**bearer(server.token("", "agent", node=node)), **sent()}
        body = frame(encode(node_batch(seq, node)))
        url = f"{server.url}/api/v1/agent/batches"
        return httpx.post(url, content=body, headers=head, timeout=60).status_code

    nodes = ["defect", "fine-1", "fine-2"] * 3
    with ThreadPoolExecutor(len(nodes)) as pool:
        answers = list(pool.map(status, nodes, range(1, len(nodes) + 1)))
    assert answers == [503, 200, 200] * 3
    assert status("fine-1", 99) == 200


GPUS = ["GPU-c", "GPU-a", "GPU-b", "GPU-d"]  # the node's order
IN_THE_FACTS = [Gpu(uuid, index=index) for index, uuid in enumerate(GPUS)]
DIVIDED = [
    *IN_THE_FACTS[:2],
    Gpu("MIG-2", parent="GPU-c"),
    Gpu("MIG-1", parent="GPU-a"),
]
LOST = {  # facts, devices in the batch, devices whose use the squares show
    "none": (IN_THE_FACTS, GPUS, GPUS),
    "none, in another order": (IN_THE_FACTS, GPUS[::-1], GPUS),
    "one": (IN_THE_FACTS, ["GPU-d", "GPU-c", "GPU-b"], ["GPU-c", None, "GPU-b", "GPU-d"]),
    "the first": (IN_THE_FACTS, GPUS[1:], [None, *GPUS[1:]]),
    "one, before the agent began": (
        [each for each in IN_THE_FACTS if each.uuid != "GPU-a"],
        ["GPU-c", "GPU-b", "GPU-d"],
        ["GPU-c", None, "GPU-b", "GPU-d"],
    ),
    "the last, before the agent began": (IN_THE_FACTS[:3], GPUS[:3], GPUS[:3]),
    "no facts": (None, GPUS, sorted(GPUS)),
    "none of those that are divided": (DIVIDED, ["GPU-c", "GPU-a", "MIG-1", "MIG-2"], ["MIG-2", "MIG-1"]),
}


@pytest.mark.parametrize("case", LOST)
def test_each_gpu_keeps_its_square_while_others_are_lost(
    case: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus, devices, names = LOST[case]
    live = Live(server.monitor.jobs.facts)
    monkeypatch.setattr(server.app.state.peerway, "live", live)
    facts = Facts(64, GIB, 10_000, "v2", "1", gpus=gpus) if gpus else None
    use = {uuid: 0.1 * number for number, uuid in enumerate([*GPUS, "MIG-1", "MIG-2"], 1)}
    part = Samples(devices, {"gpu_utilization_ratio": [use[uuid] for uuid in devices]})
    node = "squares"
    live.saw(filed(node_batch(1, node, samples={"gpu": part}, facts=facts)))
    assert [share for _, share in live.nodes()[node].gpus] == [use.get(uuid or "") for uuid in names]
    cluster = server.monitor.jobs.reader.execute("SELECT body FROM cluster").fetchone()["body"]
    node_of_slurm = {**json.loads(cluster)["nodes"][0], "name": node, "gpus": len(GPUS), "gpus_busy": 4}
    server.monitor.jobs.write("UPDATE cluster SET body = ?", (json.dumps({"nodes": [node_of_slurm]}),))
    try:
        page = httpx.get(f"{server.url}/cluster", headers=bearer(server.token("bob"))).text
    finally:
        server.monitor.jobs.write("UPDATE cluster SET body = ?", (cluster,))
    tile = page[page.index(f"<b>{node}</b>") :]
    for number, uuid in enumerate(names):
        share = "no figures" if uuid is None else f"{use[uuid] * 100:.0f}\u00a0%"
        assert f'title="GPU {number}: {share}"' in tile


def test_rules_are_checked_while_they_are_typed(server: Server) -> None:
    head = bearer(server.token("admin", "jobs:read", "admin"))
    for text, error in (("", ""), ("[[rule]]\nname = 7", "line 1"), (server.monitor.rules.text, "")):
        answer = httpx.post(f"{server.url}/api/v1/rules/check", json={"text": text}, headers=head)
        assert answer.status_code == 200
        assert answer.json()["error"].startswith(error)
        assert bool(answer.json()["error"]) == bool(error)
    nobody = bearer(server.token("bob"))
    refused = httpx.post(f"{server.url}/api/v1/rules/check", json={"text": ""}, headers=nobody)
    assert refused.status_code == 403


def test_the_list_of_what_was_wasted_says_what_wasted_it(server: Server) -> None:
    head = bearer(server.token("admin", "jobs:read", "admin"))
    page = httpx.get(f"{server.url}/admin/jobs?days=30", headers=head).text
    run = server.monitor.jobs.run("102")
    assert run is not None
    assert run.tag
    assert f'href="/jobs?tag={run.tag}"' in page


def test_the_list_of_what_was_wasted_has_no_job_that_wasted_nothing(server: Server) -> None:
    store = server.monitor.jobs
    store.update(Run(str(1700 + n), user="wes", started=NOW - 7200, ended=NOW - 60) for n in range(3))
    for job, verdict, cores, gpus in (
        (1700, "efficient", 3, 0),
        (1701, "efficient", 3, 1),
        (1702, "inefficient", 3, 0),
    ):
        store.write(
            "UPDATE jobs SET verdict = ?, idle_core_hours = ?, idle_gpu_hours = ? WHERE job = ?",
            (verdict, cores, gpus, str(job)),
        )
    with logged_in(server, "admin") as client:
        found = re.findall(r'href="/jobs/(170\d)', client.get("/admin/jobs").text)
    assert found == ["1701", "1702"]
