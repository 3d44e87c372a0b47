"""Messages to webhooks, received by an HTTP server on loopback: what is sent, and that nothing is lost."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jobs_scene import GIB, START, Job, put
from jobs_server import EVIL

from peerway_jobs.cli.notices import command
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.outward import Outward, read_outward
from peerway_jobs.store import acts, deliveries
from peerway_jobs.store.acts import Act
from peerway_jobs.webhooks.deliver import Deliveries
from peerway_jobs.webhooks.post import NotNow, send
from peerway_jobs.webhooks.settings import BadWebhooks, Webhook, Webhooks, read

HOUR = 3600.0
DAY = 24 * HOUR
SECRET_PATH = "/services/T000/B000/s3cr3t"
PAGE = "https://jobs.example.org"
MENTIONS = "`<!channel> @all [x](http://evil.example) <http://evil.example|x>`"


class Sink(ThreadingHTTPServer):
    """Takes messages, and answers with `status` and `headers`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.status = 200
        self.extra: dict[str, str] = {}
        self.echo = False
        self.posts: list[tuple[str, dict[str, str], bytes]] = []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}{SECRET_PATH}"

    def messages(self) -> list[Any]:
        """The bodies of the messages that came, which are taken out."""
        bodies = [json.loads(body) for _, _, body in self.posts]
        self.posts.clear()
        return bodies


class Handler(BaseHTTPRequestHandler):
    server: Sink

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.posts.append((self.path, dict(self.headers), body))
        self.send_response(self.server.status)
        for name, value in self.server.extra.items():
            self.send_header(name, value)
        self.end_headers()
        if self.server.echo:
            self.wfile.write(f"no such hook {self.server.url}".encode())

    def log_message(self, *_: object) -> None:
        pass


class Scene:
    """A monitor with a clock that the test sets, and a service that takes messages."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.now = START + 3 * HOUR
        self.monitor = Monitor(folder / "jobs", clock=lambda: self.now)
        self.sink = Sink()
        self.log: list[str] = []
        self.hook = Webhook("ops", "json", self.secret("url", self.sink.url), ("jobs",), least_core_hours=10)
        self.workers: dict[tuple[Webhook, ...], Deliveries] = {}

    def secret(self, name: str, text: str) -> str:
        file = self.folder / name
        file.write_text(f"{text}\n")
        file.chmod(0o600)
        return str(file)

    def idle(self, job: int, user: str = "alice", **slurm: Any) -> None:
        """Add a job of two hours whose 16 cores do nothing."""
        figures = {"step_cpu_user_seconds_total": 0.01, "step_memory_bytes": 2 * GIB}
        put(self.monitor, Job(job, figures, cores=16, slurm={"user": user, **slurm}))
        assert self.monitor.judge_due() == 1

    def send(self, *hooks: Webhook, **changes: Any) -> list[Any]:
        """The messages of one round of a server with these webhooks."""
        hooks = hooks or (replace(self.hook, **changes),)
        if hooks not in self.workers:
            self.workers[hooks] = Deliveries(self.monitor, Webhooks(PAGE, hooks), self.log.append)
        self.workers[hooks].send_due()
        return self.sink.messages()


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.sink.shutdown()
    made.sink.server_close()
    made.monitor.close()


def test_json_has_the_jobs_with_what_to_change_and_only_once(scene: Scene) -> None:
    scene.idle(1, name=EVIL, account="phys")
    scene.idle(2, "bob", account="chem")
    (message,) = scene.send()
    assert (message["version"], message["event"], message["webhook"]) == (1, "jobs", "ops")
    first = next(job for job in message["jobs"] if job["job"] == "1")
    assert (first["user"], first["name"], first["url"]) == ("alice", EVIL, f"{PAGE}/jobs/1")
    assert first["findings"][0]["rule"] == "cpu-idle" or first["findings"][0]["tag"]
    assert first["findings"][0]["advice"]
    assert scene.send() == []
    scene.now += 60
    scene.idle(3)
    assert scene.send() == []  # not yet: one message a day
    scene.now += DAY
    (second,) = scene.send()
    assert [job["job"] for job in second["jobs"]] == ["3"]


@pytest.mark.parametrize("kind", ["slack", "mattermost"])
@pytest.mark.parametrize("language", ["en", "ru"])
def test_what_users_name_their_jobs_is_shown_as_code(scene: Scene, kind: str, language: str) -> None:
    scene.idle(1, name=MENTIONS)
    (message,) = scene.send(kind=kind, language=language)
    assert set(message) == {"text"}
    text: str = message["text"]
    line = next(each for each in text.splitlines() if "/jobs/1" in each)
    before, name, after = line.split("`")  # one code span, whatever backticks the name has
    assert "channel" in name
    assert "channel" not in before + after
    if kind == "slack":
        assert "<!channel>" not in text
    assert ("Inefficient" in text) == (language == "en")


def test_accounts_and_amounts_choose_what_is_sent(scene: Scene) -> None:
    scene.idle(1, account="phys")
    scene.idle(2, "bob", account="chem")
    assert scene.send(accounts=("bio",)) == []
    assert scene.send(least_core_hours=1e6, least_gpu_hours=1e6) == []
    (message,) = scene.send(accounts=("chem",))
    assert [job["job"] for job in message["jobs"]] == ["2"]


def test_ten_jobs_and_the_number_of_the_others(scene: Scene) -> None:
    for job in range(1, 14):
        scene.idle(job)
    (message,) = scene.send(kind="mattermost")
    assert message["text"].count(f"{PAGE}/jobs/") == 10
    assert f"And 3 more: {PAGE}/jobs?verdict=inefficient" in message["text"]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_service_that_is_away_loses_no_message(scene: Scene, status: int) -> None:
    scene.idle(1)
    scene.sink.status = status
    assert len(scene.send()) == 1  # it came, but was not taken
    assert "takes no message now" in scene.log[0]
    assert str(status) in scene.log[0]
    scene.sink.status = 200
    scene.now += 300
    assert scene.send() == []  # not before ten minutes
    scene.now += 301
    scene.idle(2)
    (message,) = scene.send()
    assert {job["job"] for job in message["jobs"]} == {"1", "2"}
    assert len(scene.log) == 1


def test_nobody_listens_there(scene: Scene) -> None:
    scene.idle(1)
    away = replace(scene.hook, name="away", url_file=scene.secret("away", "http://127.0.0.1:1/s3cr3t"))
    assert len(scene.send(away, scene.hook)) == 1  # the other webhook gets its message
    scene.now += 601
    scene.send(away, scene.hook)
    assert len(scene.log) == 1  # once, not at each try
    assert "webhook away" in scene.log[0]
    assert "127.0.0.1" in scene.log[0]


def test_the_pause_that_a_service_asks_for_is_kept(scene: Scene) -> None:
    scene.idle(1)
    scene.sink.status, scene.sink.extra = 429, {"Retry-After": "1800"}
    scene.send()
    scene.sink.status = 200
    for wait, messages in ((1799, 0), (2, 1)):
        scene.now += wait
        assert len(scene.send()) == messages


@pytest.mark.parametrize("status", [301, 307, 400, 403, 404, 410])
def test_a_refusal_is_told_without_the_address_and_tried_again(scene: Scene, status: int) -> None:
    scene.idle(1)
    scene.sink.status, scene.sink.echo = status, True
    scene.sink.extra = {"Location": f"{scene.sink.url}/elsewhere"}
    assert len(scene.send()) == 1  # a redirection is not followed
    assert f"answered {status}" in scene.log[0]
    row = scene.monitor.jobs.reader.execute("SELECT outcome FROM deliveries").fetchone()
    assert row["outcome"].startswith("refused: ")
    scene.sink.status = 200
    scene.now += HOUR + 1
    (message,) = scene.send()
    assert [job["job"] for job in message["jobs"]] == ["1"]


def test_no_failure_shows_the_secret(scene: Scene, tmp_path: Path) -> None:
    scene.idle(1)
    scene.sink.status, scene.sink.echo = 404, True
    scene.send()
    hosts = (
        "http://127.0.0.1:1",
        "http://[::1",
        "ftp://127.0.0.1",
        "http://10.0.0.1",
        "https://127.0.0.1:1",
        "x",
    )
    for place, host in enumerate(hosts):
        file = scene.secret("other", host + SECRET_PATH)
        scene.send(replace(scene.hook, name=f"other{place}", url_file=file))
    assert len(scene.log) == 7
    everything = "\n".join(scene.log) + str(
        [tuple(row) for row in scene.monitor.jobs.reader.execute("SELECT * FROM deliveries")]
    )
    assert "s3cr3t" not in everything
    assert "T000" not in everything


def test_a_changed_address_counts_without_a_restart(scene: Scene) -> None:
    scene.idle(1)
    scene.secret("url", "http://127.0.0.1:1/old")
    assert scene.send() == []
    scene.secret("url", scene.sink.url)
    scene.now += 601
    assert len(scene.send()) == 1


def test_json_is_signed_with_the_secret(scene: Scene) -> None:
    scene.idle(1)
    signed = replace(scene.hook, secret_file=scene.secret("key", "k3y"))
    body = b'{"a":1}'
    send(signed, body)
    _, headers, sent = scene.sink.posts[0]
    assert sent == body
    assert headers["Peerway-Signature"] == "sha256=" + hmac.new(b"k3y", body, hashlib.sha256).hexdigest()


def test_new_alarms_and_acts_of_policies(scene: Scene) -> None:
    scene.monitor.jobs.writer.execute(
        "INSERT INTO alarms VALUES ('n0', 'claim', '7', 'before the server', ?, ?, 1)", (scene.now, scene.now)
    )
    hook = replace(scene.hook, events=("alarms", "policies"))
    assert scene.send(hook) == []  # of what was before the server started, a new webhook is not told
    scene.now += 60
    scene.monitor.jobs.writer.execute(
        "INSERT INTO alarms VALUES ('n1', 'claim', '7', ?, ?, ?, 1)", (EVIL, scene.now - 5, scene.now - 5)
    )
    acts.record(
        scene.monitor.jobs,
        Act(scene.now - 4, "idle", "f", "cancel", "42", user="bob", dry=False, evidence={"idle_s": 7200}),
    )
    alarms, done = scene.send(hook)
    assert [each["node"] for each in alarms["alarms"]] == ["n1"]
    (act,) = done["acts"]
    assert (act["act"], act["job"], act["dry"], act["evidence"]) == ("cancel", "42", False, {"idle_s": 7200})
    assert scene.send(hook) == []
    scene.now += 60
    scene.monitor.jobs.writer.execute("UPDATE alarms SET last = ?, count = 2", (scene.now,))
    assert scene.send(hook) == []  # it is no new alarm


def test_many_alarms_come_in_several_messages(scene: Scene) -> None:
    hook = replace(scene.hook, events=("alarms",))
    assert scene.send(hook) == []
    scene.now += 100
    for number in range(120):
        row = (f"n{number}", scene.now - 99 + number / 2, scene.now)
        scene.monitor.jobs.writer.execute("INSERT INTO alarms VALUES (?, 'claim', '7', '', ?, ?, 1)", row)
    nodes = []
    for _ in range(4):
        nodes += [each["node"] for message in scene.send(hook) for each in message["alarms"]]
    assert nodes == [f"n{number}" for number in range(120)]


def test_texts_for_people_about_alarms_and_dry_acts(scene: Scene) -> None:
    hook = replace(scene.hook, kind="slack", events=("alarms", "policies"))
    scene.send(hook)
    scene.now += 60
    scene.monitor.jobs.writer.execute(
        "INSERT INTO alarms VALUES ('n1', 'claim', '7', ?, ?, ?, 1)", (MENTIONS, scene.now, scene.now)
    )
    acts.record(scene.monitor.jobs, Act(scene.now, "idle", "f", "cancel", "42", user="bob"))
    alarm, act = (message["text"] for message in scene.send(hook))
    assert "<!channel>" not in alarm
    assert "cancel 42" in act
    assert "dry run, nothing was done" in act


def test_what_would_be_sent_can_be_seen_first(scene: Scene, tmp_path: Path) -> None:
    scene.idle(1, state="RUNNING", ended=None)
    file = tmp_path / "webhooks.toml"
    file.write_text(
        f'page = "{PAGE}"\n[[webhook]]\nname = "ops"\nkind = "slack"\nurl_file = "{scene.hook.url_file}"\n'
        'events = ["jobs"]\nleast_core_hours = 1\n'
    )
    shown = CliRunner().invoke(command, ["--webhooks", str(file), "--data", str(scene.monitor.folder)])
    assert shown.exit_code == 0, shown.output
    assert "To: ops" in shown.output
    assert "still running" in shown.output
    assert scene.sink.posts == []
    assert deliveries.covered(scene.monitor.jobs.reader, "ops", "jobs") is None
    neither = CliRunner().invoke(command, ["--data", str(scene.monitor.folder)])
    assert "--mail or --webhooks" in neither.output


GOOD: dict[str, Any] = {"name": "ops", "kind": "slack", "url_file": "", "events": ["jobs"]}


def settings_file(folder: Path, page: str = PAGE, **changes: Any) -> Path:
    url = folder / "url"
    if not url.exists():
        url.write_text("https://hooks.example.org/s3cr3t\n")
        url.chmod(0o600)
    table = {**GOOD, "url_file": str(url), **changes}
    file = folder / "webhooks.toml"
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items() if value is not None]
    file.write_text(f'page = "{page}"\n[[webhook]]\n' + "\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kind", "teams"), ("events", ["jobs", "weather"]), ("events", []), ("events", "jobs"),
        ("every", "1s"), ("every", "often"), ("language", "de"), ("least_gpu_hours", "many"),
        ("accounts", "phys"),
        ("secret_file", "/etc/hostname"), ("colour", "red"), ("url_file", "/no/such/file"), ("name", ""),
        ("accounts", [1]), ("least_gpu_hours", True),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(tmp_path: Path, name: str, value: object) -> None:
    assert read(settings_file(tmp_path)).hooks[0].every_s == DAY
    with pytest.raises(BadWebhooks, match=name if name != "url_file" else "No such file"):
        read(settings_file(tmp_path, **{name: value}))


@pytest.mark.parametrize(
    ("content", "mode", "why"),
    [
        ("https://hooks.example.org/s3cr3t", 0o644, "chmod 600"),
        ("http://hooks.example.org/s3cr3t", 0o600, "unencrypted"),
        ("hooks.example.org/s3cr3t", 0o600, "no address"),
        ("https://hooks.example.org/s3cr3t two", 0o600, "no address"),
        ("", 0o600, "empty"),
    ],
)
def test_a_file_of_an_address_must_be_private_and_hold_one(
    tmp_path: Path, content: str, mode: int, why: str
) -> None:
    file = tmp_path / "url"
    file.write_text(content)
    file.chmod(mode)
    with pytest.raises(BadWebhooks, match=why) as raised:
        read(settings_file(tmp_path))
    assert "s3cr3t" not in str(raised.value)


def test_two_webhooks_have_two_names_and_there_is_a_page(tmp_path: Path) -> None:
    file = settings_file(tmp_path)
    text = file.read_text()
    file.write_text(text + text[text.index("[[webhook]]") :])
    with pytest.raises(BadWebhooks, match="two webhooks have the name ops"):
        read(file)
    with pytest.raises(BadWebhooks, match="page"):
        read(settings_file(tmp_path, page="jobs"))


def test_a_server_sends_nothing_unless_it_is_given_settings(scene: Scene, tmp_path: Path) -> None:
    scene.idle(1)
    assert list(Outward().workers(scene.monitor, scene.log.append)) == []
    file = settings_file(tmp_path, url_file=scene.hook.url_file)
    outward = read_outward(None, file, None, False, False)
    assert len(list(outward.workers(scene.monitor, scene.log.append))) == 1


def test_a_service_that_never_answers_is_left(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    import httpx

    def late(*_: object, **__: object) -> None:
        raise httpx.ReadTimeout("timed out")

    monkeypatch.setattr(httpx.Client, "post", late)
    with pytest.raises(NotNow, match="no answer in time"):
        send(scene.hook, b"{}")
