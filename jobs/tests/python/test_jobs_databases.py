"""The contract of the database of jobs, in SQLite and in PostgreSQL; copies between them; several servers."""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from click.testing import CliRunner
from jobs_scene import BOOT, START, Job, filed, put
from jobs_server import NOW, PASSWORD, node_batch, scene, serving
from postgres_server import PostgresServer

from peerway_common.cli import command as peerway
from peerway_jobs import backup as backups
from peerway_jobs.agent.sender import MEDIA_TYPE
from peerway_jobs.batch import Interval, encode
from peerway_jobs.clock import Sent
from peerway_jobs.copying import copy
from peerway_jobs.damage import KEYS, TABLES, damaged_rows
from peerway_jobs.frames import frame
from peerway_jobs.mail.digest import digests
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.job_metrics import AccountMetrics, JobMetrics
from peerway_jobs.serve.people import People
from peerway_jobs.store import audit, months
from peerway_jobs.store.alarms import alarms
from peerway_jobs.store.arrays import array_sum, folded
from peerway_jobs.store.cluster import cluster_state
from peerway_jobs.store.database import database_at, place_in, set_address
from peerway_jobs.store.dialect import translated
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.lists import ORDERS, SUMMED, Filter, listed, sums
from peerway_jobs.store.pending import due
from peerway_jobs.store.queue import queue
from peerway_jobs.store.retention import Retention, delete_old
from peerway_jobs.store.runs import Run
from peerway_jobs.store.schema import VERSIONS, bring_up, opened
from peerway_jobs.store.unconfirmed import delete_unconfirmed
from peerway_jobs.usage import around_notices, oldest_start, usage
from peerway_jobs.verdicts import read_verdict

DATABASES = ("sqlite", "postgresql")
EVERYBODY: tuple[str, list[str]] = ("TRUE", [])
MANAGER = ("(user = ? OR account IN (?))", ["manager", "chem"])


@pytest.fixture(params=DATABASES)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A server's folder whose jobs will be in one of the databases."""
    return in_database(tmp_path / "data", request.param, request)


def in_database(folder: Path, kind: str, request: pytest.FixtureRequest) -> Path:
    folder.mkdir()
    if kind == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        set_address(folder, server.new())
    return folder


def full(folder: Path) -> Monitor:
    """A monitor with jobs of all kinds, arrays, mails, alarms and an audit log."""
    monitor = Monitor(folder, clock=lambda: NOW)
    scene(monitor)
    jobs = monitor.jobs
    tasks = [
        Job(200 + task, {"step_cpu_user_seconds_total": 1.0}, slurm={"array": f"200_{task}", "project": "p1"})
        for task in range(1, 4)
    ]
    put(monitor, *tasks)
    parts = [Run(str(300 + n), started=NOW - 60, component=f"300+{n}", user="bob") for n in range(2)]
    again = Run("107", 1, "alice", started=NOW - 30, name="50%_done\0", script="#!/bin/sh\0")
    jobs.update([*parts, again])
    monitor.judge_due()
    jobs.alarm("node01", "claim", "node01 claims job 9", "9")
    jobs.alarm("node01", "claim", "node01 claims job 9", "9")
    months.sum_months(jobs, NOW, lambda: False, past=True)
    jobs.keep_clocks({"node01": ("boot", -5)})
    jobs.write("INSERT INTO notices VALUES (?,?,?)", ("alice", NOW - 2 * 86_400, "mail"))
    for name in ("logged in", "wrong password"):
        audit.note(jobs, NOW, "alice", "10.0.0.1", name)
    People(jobs).set_mail("bob", False)
    People(jobs).make_token("", ["agent"], NOW, "node01")
    return monitor


def everything(monitor: Monitor) -> dict[str, Any]:
    """What all readers of the database make of it."""
    jobs, base, people = monitor.jobs, monitor.jobs.reader, People(monitor.jobs)
    runs, _ = listed(base, EVERYBODY, Filter(), most=500)
    state: Any = SimpleNamespace(monitor=monitor)  # all that these metrics need of a server
    mail = Mail("smtp://x", "a@b", "{user}@b", "https://x", least_gpu_hours=0, least_core_hours=0)
    return {
        "lists": {  # a running job has run until now, which differs
            order: listed(base, EVERYBODY, Filter(state="finished"), order=order, most=3) for order in ORDERS
        },
        "seen": [run.job for run in listed(base, MANAGER, Filter())[0]],
        "filters": {
            str(wanted): [(run.job, run.restart) for run in listed(base, EVERYBODY, wanted)[0]]
            for wanted in (
                Filter(text="TRAIN"), Filter(text="50%_"), Filter(state="running"), Filter(array="200"),
                Filter(verdict="inefficient"), Filter(since=START + 1), Filter(ran_since=NOW - 60),
            )
        },
        "folded": folded(base, EVERYBODY, Filter(), NOW),
        "array": array_sum(base, EVERYBODY, "200", NOW),
        "metrics": [
            (sample.name, sample.labels, sample.value)
            for family in (*JobMetrics(state).collect(), *AccountMetrics(state).collect())
            for sample in family.samples
        ],
        "sums": {by: sums(base, EVERYBODY, by, 0, now=NOW) for by in SUMMED},
        "runs": [dataclasses.asdict(run) for run in runs],
        "verdicts": [read_verdict(jobs, run) for run in runs],
        "intervals": [jobs.intervals(run) for run in runs],
        "notes": [jobs.notes(run) for run in runs],
        "siblings": [run.job for run in jobs.siblings(runs[0])] + [len(jobs.siblings(run)) for run in runs],
        "due": [(run.job, run.restart) for run in due(jobs, NOW + 600)],
        "restarts": jobs.restarts("107"),
        "array run": jobs.run("200_2"),
        "period": jobs.period(),
        "facts": jobs.facts("n101-0"),
        "clocks": jobs.clocks("node01"),
        "cluster": cluster_state(base),
        "alarms": [{**each, "first": 0, "last": 0} for each in alarms(base)],
        "audit": audit.entries(jobs),
        "people": [people.person(name) for name in ("alice", "manager", "nobody")],
        "password": (people.check("bob", PASSWORD), people.check("bob", "wrong")),
        "wants mail": [people.wants_mail(name) for name in ("alice", "bob")],
        "mails": [(each.user, len(each.runs)) for each in digests(jobs, mail, NOW)],
        "usage": usage(base, START, NOW, ()),
        "around": around_notices(base, 86_400, NOW),
        "oldest": oldest_start(base),
        "damage": damaged_rows(base),
        "months": [months.sums_of_months(base, EVERYBODY, by, 0, 10, "wasted") for by in SUMMED],
        "growth": months.growth(base, EVERYBODY, 0),
        "queue": queue(base),
    }  # fmt: skip


def plain(value: Any) -> Any:
    """Answers in a form that can be compared: texts with NUL characters as PostgreSQL stores them."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain(dataclasses.asdict(value))
    if isinstance(value, dict):
        return {str(plain(name)): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(each) for each in value]
    if isinstance(value, (int, float)):
        return round(float(value), 6)
    return value.replace("\0", "\ufffd") if isinstance(value, str) else value


def test_both_databases_answer_alike(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """The one difference: PostgreSQL stores no NUL character."""
    both = []
    for kind in DATABASES:
        monitor = full(in_database(tmp_path / kind, kind, request))
        both.append(plain(everything(monitor)))
        monitor.close()
    sqlite, postgres = both
    assert sqlite["lists"]
    for name, answer in sqlite.items():
        assert postgres[name] == answer, name


def test_every_table_has_its_kinds_and_keys(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.db")
    rows = store.reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    assert {row[0] for row in rows} == TABLES.keys()
    for table in TABLES:
        columns = list(store.reader.execute(f"PRAGMA table_info({table})"))
        keys = tuple(row["name"] for row in columns if row["pk"] and row["name"] not in ("hash", "password"))
        assert KEYS.get(table, ()) == keys
    store.close()


@pytest.mark.parametrize(
    ("sql", "translation"),
    [
        ("end = ? AND 'user?' = user", "\"end\" = %s AND 'user?' = \"user\""),
        ("a = :a AND b::text = ':a'", "a = %(a)s AND b::text = ':a'"),
        ("SELECT CASE WHEN a THEN 1 END", "SELECT CASE WHEN a THEN 1 END"),
        ("a LIKE 'x:%'", "a ILIKE 'x:%%'"),
        ("typeof(user) != 'text' OR typeof(n) = 'integer'", '("user" IS NULL) OR (n IS NOT NULL)'),
        ("submitted IS ? AND a IS NOT NULL", "submitted IS NOT DISTINCT FROM %s AND a IS NOT NULL"),
        ("jobs INDEXED BY jobs_of_array WHERE +a = 1 + 2", "jobs WHERE a = 1 + 2"),
    ],
)  # fmt: skip
def test_what_postgresql_has_otherwise_is_translated(sql: str, translation: str) -> None:
    assert translated(sql) == translation


def test_what_is_written_together_is_all_or_nothing(folder: Path) -> None:
    store = Monitor(folder).jobs
    batch = node_batch(1, intervals=[Interval("a", 5, START * 1000, user="u" * 20)])
    bad = node_batch(2, intervals=[Interval("b", 6, "no time")])  # type: ignore[arg-type]
    with pytest.raises((sqlite3.Error, TypeError, ValueError)):
        store.file([filed(batch), filed(bad)])
    assert not store.known("node01", batch.stream, 1)
    store.file([filed(batch)])
    assert store.known("node01", batch.stream, 1)
    store.close()


def test_threads_that_read_and_write_at_once_lose_nothing(folder: Path) -> None:
    """Two stores of one database, as two servers have, and both write the same streams."""
    monitor = Monitor(folder)
    stores = [monitor.jobs, JobStore(place_in(folder))]
    errors: list[Exception] = []

    def write(store: JobStore, numbers: range) -> None:
        try:
            for seq in numbers:
                store.file([filed(node_batch(seq))])
                store.known("node01", "ab" * 16, seq)
        except Exception as error:
            errors.append(error)

    threads = [
        threading.Thread(target=write, args=(store, range(1 + n, 41, 2))) for n, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert all(stores[0].known("node01", "ab" * 16, seq) for seq in range(1, 41))
    stores[1].close()
    monitor.close()


def test_old_jobs_and_scripts_are_deleted_and_newer_ones_stay(folder: Path) -> None:
    monitor = Monitor(folder, clock=lambda: NOW)
    old = Job(1, {"step_cpu_user_seconds_total": 1.0}, minutes=10)
    put(monitor, old, Job(2, {"step_cpu_user_seconds_total": 1.0}, minutes=10))
    day = 86_400
    later = START + 100 * day
    runs = [Run("3", user="a", started=later, ended=later + 60, state="COMPLETED", script="new"),
            Run("4", user="a", started=later, script="running"),
            Run("5", user="a", started=START, ended=START + 60, state="COMPLETED", script="old")]  # fmt: skip
    jobs = monitor.jobs
    jobs.update(runs)
    monitor.judge_due()
    now = later + 2 * day
    assert delete_old(jobs, Retention(script_days=30), now) == 0
    assert [jobs.run(each).script for each in ("3", "4", "5")] == ["new", "running", ""]  # type: ignore[union-attr]
    assert delete_old(jobs, Retention(job_days=30), now) == 3
    assert [jobs.run(each) is None for each in "12345"] == [True, True, False, False, True]
    for table in ("verdicts", "intervals"):
        rows = jobs.reader.execute(f"SELECT count(*) FROM {table} WHERE job IN ('1', '2', '5')")
        assert rows.fetchone()[0] == 0, table
    assert delete_old(jobs, Retention(), now + 10_000 * day) == 0
    monitor.close()


def test_unconfirmed_runs_are_deleted(folder: Path) -> None:
    jobs = Monitor(folder).jobs
    jobs.slurm_answered = jobs.accounts_answered = START
    jobs.file([filed(node_batch(1, intervals=[Interval("a", 5, START * 1000, START * 1000 + 60_000)]))])
    assert jobs.run("5") is None
    assert jobs.run("5", provisional=True)
    jobs.slurm_answered = jobs.accounts_answered = now = START + 40 * 86_400.0
    jobs.write("UPDATE intervals SET told = 0")
    assert delete_unconfirmed(jobs, now) == 1
    assert jobs.run("5", provisional=True) is None
    jobs.close()


# -- copies


@pytest.fixture
def sqlite_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    monitor = full(folder)
    monitor.close()
    return folder


def of(folder: Path) -> Any:
    monitor = Monitor(folder, clock=lambda: NOW)
    try:
        return plain(everything(monitor))
    finally:
        monitor.close()


def run(*words: str, fails: bool = False) -> str:
    """The output of a command of `peerway jobs`."""
    outcome = CliRunner().invoke(peerway, ["jobs", *words])
    assert (outcome.exit_code != 0) == fails, outcome.output
    assert not isinstance(outcome.exception, (ValueError, sqlite3.Error, OSError)), outcome.exception
    return outcome.output


def test_jobs_move_to_postgresql_and_back(sqlite_folder: Path, postgres_server: PostgresServer) -> None:
    before, url = of(sqlite_folder), postgres_server.new()
    data = ("--data", str(sqlite_folder))
    assert "moved 13 runs" in run("migrate", *data, "--to", url)
    assert place_in(sqlite_folder) == url
    assert (sqlite_folder / "database").stat().st_mode & 0o777 == 0o600
    assert of(sqlite_folder) == before
    assert "in PostgreSQL already" in run("migrate", *data, "--to", postgres_server.new(), fails=True)
    run("migrate", *data, "--to", "sqlite")
    assert place_in(sqlite_folder) == sqlite_folder / "jobs.db"
    assert of(sqlite_folder) == before
    assert "already has jobs or people" in run("migrate", *data, "--to", url, fails=True)
    assert place_in(sqlite_folder) == sqlite_folder / "jobs.db"


def test_damaged_values_are_left_out_of_a_copy_and_counted(
    sqlite_folder: Path, postgres_server: PostgresServer
) -> None:
    with sqlite3.connect(sqlite_folder / "jobs.db") as base:
        base.execute("UPDATE jobs SET cores = 'many', provisional = 'no' WHERE job = '101'")
        base.execute("UPDATE intervals SET gpus = x'00ff' WHERE job = '101' AND step IS NULL")
    base.close()
    told = run("migrate", "--data", str(sqlite_folder), "--to", postgres_server.new())
    assert "1 values of jobs.cores were damaged" in told
    assert "1 values of jobs.provisional were damaged" in told
    assert "1 values of intervals.gpus were damaged" in told
    monitor = Monitor(sqlite_folder, clock=lambda: NOW)
    moved = monitor.jobs.run("101")
    assert moved is not None
    assert moved.cores == 0
    assert moved.name == "train-resnet"
    monitor.close()


def test_a_copy_that_fails_half_way_leaves_the_target_empty(
    sqlite_folder: Path, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = postgres_server.new()
    source, target = database_at(sqlite_folder / "jobs.db"), database_at(url)
    target.bring_up(VERSIONS)
    copied: list[str] = []

    def failing(table: str) -> bool:
        copied.append(table)
        if len(copied) > 5:
            raise KeyboardInterrupt
        return False

    types = source.types  # type: ignore[union-attr]
    monkeypatch.setattr(source, "types", lambda table: failing(table) or types(table))
    with pytest.raises(KeyboardInterrupt):
        copy(source, target, source)  # type: ignore[arg-type]
    assert target.reader.execute("SELECT count(*) FROM jobs").fetchone()[0] == 0
    monkeypatch.undo()
    copy(source, target, source)  # type: ignore[arg-type]
    assert target.reader.execute("SELECT count(*) FROM jobs").fetchone()[0] == 13
    source.close()
    target.close()


@pytest.mark.parametrize(
    ("folder", "to"),
    [
        pytest.param(source, to, marks=[] if source != to else [pytest.mark.long])
        for source in DATABASES
        for to in DATABASES
    ],
    indirect=["folder"],
)
def test_a_backup_made_while_a_server_writes_is_restored(
    folder: Path, to: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    monitor = full(folder)
    before = plain(everything(monitor))
    stop = threading.Event()

    def write() -> None:
        seq = 0
        while not stop.is_set():
            seq += 1
            monitor.samples.put([filed(node_batch(seq, "other"))])
            monitor.jobs.file([filed(node_batch(seq, "other"))])

    writer = threading.Thread(target=write)
    writer.start()
    assert "saved" in run("backup", "--data", str(folder), str(tmp_path / "saved"))
    stop.set()
    writer.join()
    monitor.close()
    target = tmp_path / "restored"
    where = ["--database", request.getfixturevalue("postgres_server").new()] if to == "postgresql" else []
    run("restore", "--data", str(target), *where, str(tmp_path / "saved"))
    assert isinstance(place_in(target), str) == (to == "postgresql")
    restored = of(target)
    for name in ("runs", "verdicts", "people", "audit", "intervals", "password"):
        assert restored[name] == before[name], name
    # Each batch that the backup knows as received has its samples there, too.
    monitor = Monitor(target, clock=lambda: NOW)
    received = monitor.jobs.reader.execute("SELECT ranges FROM received WHERE node = 'other'").fetchone()
    if received:
        use = monitor.samples.read("other", "gpu", 0, int(NOW * 2000))
        assert use["GPU-0", "gpu_utilization_ratio"].times.size
    monitor.close()
    assert "already has jobs" in run("restore", "--data", str(target), str(tmp_path / "saved"), fails=True)
    assert "exists already" in run("backup", "--data", str(folder), str(tmp_path / "saved"), fails=True)


def test_an_unfinished_restore_is_told_and_can_be_repeated(
    sqlite_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved, target = tmp_path / "saved", tmp_path / "restored"
    run("backup", "--data", str(sqlite_folder), str(saved))
    save, told = backups._save_file, of(sqlite_folder)

    def failing(file: Path, to: Path) -> None:
        if file.name == "jobs.db":
            raise OSError(28, "No space left on device")
        save(file, to)

    monkeypatch.setattr(backups, "_save_file", failing)
    assert "No space left" in run("restore", "--data", str(target), str(saved), fails=True)
    monkeypatch.undo()
    for command in (("list",), ("serve", "--no-slurm", "--listen", "127.0.0.1:0")):
        assert "did not finish" in run(*command, "--data", str(target), fails=True)
    run("restore", "--data", str(target), str(saved))
    assert of(target) == told


@pytest.mark.parametrize("version", range(1, len(VERSIONS)))
def test_a_database_of_each_older_version_is_upgraded(tmp_path: Path, version: int) -> None:
    old = opened(tmp_path / "jobs.db")
    bring_up(old, VERSIONS[:version])
    old.execute("INSERT INTO jobs (job, restart, user, started, ended) VALUES ('7', 0, 'ann', 1e9, 1.1e9)")
    old.execute("INSERT INTO people (name) VALUES ('ann')")
    old.close()
    told = run("upgrade", "--data", str(tmp_path))
    assert f"was of version {version} and is of version {len(VERSIONS)}" in told
    monitor = Monitor(tmp_path)
    kept = monitor.jobs.run("7")
    assert kept is not None
    assert (kept.user, kept.ended) == ("ann", 1.1e9)
    assert People(monitor.jobs).wants_mail("ann")
    monitor.close()
    saved = opened(tmp_path / f"jobs-before-{len(VERSIONS)}.db", readonly=True)
    assert saved.execute("PRAGMA user_version").fetchone()[0] == version
    assert saved.execute("SELECT user FROM jobs").fetchone()[0] == "ann"
    saved.close()


def test_a_database_of_a_newer_version_is_refused(folder: Path) -> None:
    monitor = Monitor(folder)
    if monitor.jobs.database.is_shared:
        monitor.jobs.write("UPDATE peerway_version SET version = 99")
    else:
        monitor.jobs.writer.execute("PRAGMA user_version = 99")
    monitor.close()
    for command in (("list",), ("upgrade",), ("user", "bob", "--no-password")):
        told = run(*command, "--data", str(folder), fails=True)
        assert f"version 99, this Peerway knows {len(VERSIONS)}" in " ".join(told.split())


# -- several servers of one PostgreSQL


@pytest.fixture
def url(postgres_server: PostgresServer) -> str:
    return postgres_server.new()


def test_one_server_leads_and_another_takes_over(url: str) -> None:
    first, second = JobStore(url), JobStore(url)
    assert [first.database.leads(), second.database.leads(), first.database.leads()] == [True, False, True]
    first.close()
    while not second.database.leads():  # PostgreSQL has yet to notice
        time.sleep(0.01)
    second.close()


def test_a_server_keeps_out_migrations_and_restores(
    url: str, sqlite_folder: Path, postgres_server: PostgresServer
) -> None:
    server = JobStore(url)
    assert server.database.leads()
    assert "a server uses" in run("migrate", "--data", str(sqlite_folder), "--to", url, fails=True)
    server.close()
    while postgres_server.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'"):
        time.sleep(0.01)
    run("migrate", "--data", str(sqlite_folder), "--to", url)


def test_a_verdict_waits_for_what_comes_to_other_servers(url: str) -> None:
    leading, other = JobStore(url), JobStore(url)
    job = Job(1, {"step_cpu_user_seconds_total": 1.0}, minutes=10)
    leading.update([job.run()])
    end = START + 600.0
    other.file(job.batches()[:2])
    assert due(leading, end + 900) == []
    other.file(job.batches())
    assert [each.job for each in due(leading, end + 900)] == ["1"]
    leading.close()
    other.close()


def test_rules_that_are_saved_at_one_server_reach_the_others(tmp_path: Path, url: str) -> None:
    monitors = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        set_address(tmp_path / name, url)
        monitors.append(Monitor(tmp_path / name))
    text = monitors[0].rules.text.replace("[[rule]]", "# ours\n[[rule]]", 1)
    monitors[0].rules_file.write_text(text)
    monitors[0].share_rules(text)
    assert monitors[1].rules.text != text
    assert monitors[1].reload()
    assert monitors[1].rules.text == text
    assert not monitors[1].reload()
    for monitor in monitors:
        monitor.close()


# -- PostgreSQL is away, full or newer


@pytest.fixture
def client(tmp_path: Path, own_postgres: PostgresServer) -> Iterator[tuple[httpx.Client, Monitor, str]]:
    """A server's pages, as an administrator, and an agent's token."""
    folder = tmp_path / "data"
    folder.mkdir()
    set_address(folder, own_postgres.new())
    monitor = Monitor(folder, clock=lambda: NOW)
    scene(monitor)
    people = People(monitor.jobs)
    agent = people.make_token("", ["agent"], NOW, "node01")
    admin = people.make_token("admin", ["jobs:read", "cluster:read", "admin"], NOW)
    headers = {"Authorization": f"Bearer {admin}"}
    with serving(monitor) as server, httpx.Client(base_url=server.url, headers=headers, timeout=60) as client:
        yield client, monitor, agent


@pytest.fixture(scope="module")
def own_postgres(postgres_server: PostgresServer) -> PostgresServer:
    return postgres_server


def sent(client: httpx.Client, agent: str, seq: int) -> tuple[int, str]:
    body = frame(encode(node_batch(seq)))
    clocks = Sent(int(NOW * 1000), 60_000, BOOT).header()
    headers = {"Authorization": f"Bearer {agent}", "Content-Type": MEDIA_TYPE, "Peerway-Sent": clocks}
    answer = client.post("/api/v1/agent/batches", content=body, headers=headers)
    return answer.status_code, answer.text


Client = tuple[httpx.Client, Monitor, str]


def test_a_postgresql_that_is_away_is_told_and_comes_back(
    client: Client, own_postgres: PostgresServer
) -> None:
    web, monitor, agent = client
    assert sent(web, agent, 1)[0] == 200
    own_postgres.stop()
    try:
        status, why = sent(web, agent, 2)
        assert status == 503
        assert "the server cannot write" in why  # the agent's token is known without the database
        page = web.get("/jobs")
        assert page.status_code == 503
        assert "the database does not answer" in page.text
        assert "peerway-pg" not in page.text  # the place of the database is nobody's business
        assert web.get("/healthz").status_code == 503
    finally:
        own_postgres.start()
    assert web.get("/jobs").status_code == 200
    assert sent(web, agent, 2)[0] == 200
    assert monitor.jobs.known("node01", "ab" * 16, 1)
    assert monitor.jobs.known("node01", "ab" * 16, 2)
    assert "Nothing can be stored" not in web.get("/jobs").text


def refusing(monitor: Monitor, sqlstate: str) -> None:
    """From now on, PostgreSQL itself refuses batches with this error."""
    monitor.jobs.writer.execute(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION USING ERRCODE = '{sqlstate}', MESSAGE = 'could not extend file'; END $$"
    )
    monitor.jobs.writer.execute(
        "CREATE TRIGGER refuse BEFORE INSERT ON received FOR EACH ROW EXECUTE FUNCTION refuse()"
    )


def test_a_full_disk_of_postgresql_is_told_on_the_pages(client: Client) -> None:
    web, monitor, agent = client
    refusing(monitor, "53100")
    status, why = sent(web, agent, 1)
    assert status == 503
    assert "could not extend file" in why
    assert "make room on the disk of PostgreSQL" in why
    assert "nothing is lost" in why
    page = web.get("/jobs")
    assert page.status_code == 200
    assert "Nothing can be stored" in page.text
    assert "make room on the disk of PostgreSQL" in page.text
    monitor.jobs.writer.execute("DROP TRIGGER refuse ON received")
    assert sent(web, agent, 1)[0] == 200
    assert "Nothing can be stored" not in web.get("/jobs").text


def test_a_server_older_than_its_database_writes_nothing(client: Client) -> None:
    web, monitor, agent = client
    monitor.jobs.writer.execute("UPDATE peerway_version SET version = version + 1")
    status, why = sent(web, agent, 1)
    assert status == 503
    assert f"this Peerway knows {len(VERSIONS)}" in why
    assert "install a newer one" in web.get("/jobs").text
    assert not monitor.jobs.known("node01", "ab" * 16, 1)


def test_serve_says_what_its_database_needs(tmp_path: Path, url: str) -> None:
    serve: Callable[..., str] = lambda *words: run(  # noqa: E731
        "serve", "--no-slurm", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "data"), *words, fails=True
    )
    assert "give --samples" in serve("--database", url)
    assert "such as postgresql://" in serve("--database", "mysql://x", "--samples", "http://127.0.0.1:1")
    away = "postgresql://peerway@127.0.0.1:1/x"
    told = serve("--database", away, "--samples", "http://127.0.0.1:1")
    assert "postgresql://127.0.0.1:1/x" in told
    assert "refused" in told
    assert place_in(tmp_path / "data") == tmp_path / "data" / "jobs.db"
    Monitor(tmp_path / "data").close()
    assert "peerway jobs migrate" in serve("--database", url, "--samples", "http://127.0.0.1:1")


class Explaining:
    """A connection that also keeps the plan of each statement."""

    in_transaction = False

    def __init__(self, store: JobStore) -> None:
        self._reader = store.reader
        self._explain = "EXPLAIN ANALYZE" if store.database.is_shared else "EXPLAIN QUERY PLAN"
        self.plan: list[str] = []

    def execute(self, sql: str, values: Any = (), /) -> Any:
        self.plan += [str(row[-1]) for row in self._reader.execute(f"{self._explain} {sql}", values)]
        return self._reader.execute(sql, values)

    def executemany(self, sql: str, values: Any, /) -> Any:
        raise NotImplementedError


def test_a_list_reads_no_more_jobs_than_it_shows(url: str, postgres_server: PostgresServer) -> None:
    """PostgreSQL once expected few of a user's jobs to fit, and read and sorted all of them."""
    store = JobStore(url)
    postgres_server.execute(
        'INSERT INTO jobs (job, restart, "user", started, ended) '
        "SELECT n::text, 0, 'user' || n % 4, n, n + 60 FROM generate_series(1, 40000) AS n",
        url,
    )
    postgres_server.execute("ANALYZE jobs", url)
    base = Explaining(store)
    listed(base, ("user = ?", ["user1"]), Filter())
    (scanned,) = [line for line in base.plan if "Scan" in line]
    assert "jobs_of_user" in scanned
    assert int(scanned.rpartition("rows=")[2].split()[0]) < 100
    store.close()


def test_the_list_by_waste_is_ranked_in_postgresqls_index(url: str, postgres_server: PostgresServer) -> None:
    """It once read the rows of all jobs of the week, each with its script."""
    store = JobStore(url)
    postgres_server.execute(
        'INSERT INTO jobs (job, restart, "user", started, ended, idle_gpu_hours, script) SELECT n::text, 0, '
        "'ann', n, n + 60, n % 1000, repeat('srun ', 30) FROM generate_series(1, 40000) AS n",
        url,
    )
    postgres_server.execute("VACUUM ANALYZE jobs", url)
    base = Explaining(store)
    listed(base, ("TRUE", []), Filter(ran_since=30_000), order="wasted")
    scans = {line.partition(" using ")[2].split()[0]: line for line in base.plan if "Scan" in line}
    assert set(scans) == {"jobs_ended", "jobs_pkey"}, base.plan
    assert all("Index Only Scan" in line for line in base.plan if "jobs_ended" in line)
    store.close()


@pytest.mark.sqlite
def test_the_list_by_waste_is_ranked_in_sqlites_index(tmp_path: Path) -> None:
    store = JobStore(tmp_path / "jobs.db")
    base = Explaining(store)
    listed(base, ("TRUE", []), Filter(ran_since=30_000), order="wasted")
    assert len([line for line in base.plan if "COVERING INDEX jobs_ended (" in line]) == 2, base.plan
    assert not [line for line in base.plan if line.startswith("SCAN jobs")], base.plan
    store.close()
