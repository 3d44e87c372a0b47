"""Mails to owners, through a real SMTP server on loopback and a sendmail command: who gets what."""

from __future__ import annotations

import email
import smtplib
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from click.testing import CliRunner
from jobs_scene import GIB, START, Job, put
from jobs_server import EVIL
from ports import free_port

from peerway_jobs.cli.notices import command
from peerway_jobs.mail.notices import Notices
from peerway_jobs.mail.post import NotNow
from peerway_jobs.mail.settings import BadMail, Mail, read
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People

HOUR = 3600.0
CPU = "step_cpu_user_seconds_total"


class Sink:
    """Accepts mail, except to unknown users."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []

    async def handle_RCPT(  # noqa: N802
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if address.startswith("unknown@"):
            return "550 no such user"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(  # noqa: N802
        self, server: Any, session: Any, envelope: Any
    ) -> str:
        self.mails.append(email.message_from_bytes(envelope.content.replace(b"\r\n", b"\n"), policy=default))
        return "250 OK"


class Scene:
    """A monitor with a clock that the test sets, and a mail server."""

    def __init__(self, folder: Path) -> None:
        self.now = START + 3 * HOUR
        self.monitor = Monitor(folder / "jobs", clock=lambda: self.now)
        self.sink = Sink()
        port = free_port()
        self.controller = Controller(self.sink, hostname="127.0.0.1", port=port)
        self.controller.start()
        self.mail = Mail(
            f"smtp://127.0.0.1:{port}", "jobs@example.org", "{user}@example.org", "https://jobs.example.org"
        )
        self.messages: list[str] = []

    def idle(self, job: int, user: str = "alice", **slurm: Any) -> None:
        """Add a job of two hours whose 16 cores do nothing."""
        figures = {CPU: 0.01, "step_memory_bytes": 2 * GIB}
        put(self.monitor, Job(job, figures, cores=16, slurm={"user": user, **slurm}))
        assert self.monitor.judge_due() == 1

    def send(self, **changes: Any) -> list[EmailMessage]:
        """The mails of one round."""
        mail = replace(self.mail, **{"least_core_hours": 10, **changes})
        self.sink.mails.clear()
        Notices(self.monitor, mail, self.messages.append).send_due()
        return self.sink.mails


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    made = Scene(tmp_path)
    yield made
    made.controller.stop()
    made.monitor.close()


def test_each_owner_gets_one_mail_of_all_jobs_with_what_to_change(scene: Scene) -> None:
    scene.idle(1, name=EVIL)
    scene.idle(2)
    scene.idle(3, "bob")
    to_alice, to_bob = sorted(scene.send(), key=lambda mail: mail["To"])
    assert (to_alice["To"], to_bob["To"]) == ("alice@example.org", "bob@example.org")
    assert to_alice["From"] == "jobs@example.org"
    assert to_alice["Subject"].startswith("Inefficient jobs: 2; 0 GPU-hours and 6")
    assert to_alice["Auto-Submitted"] == "auto-generated"
    text = to_alice.get_content()
    assert "nothing computes: It held 16 cores" in text
    assert "https://jobs.example.org/jobs/1\n" in text
    assert "https://jobs.example.org/jobs/3" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert scene.messages == []


def test_no_more_often_than_the_settings_say_and_only_of_what_is_new(scene: Scene) -> None:
    scene.idle(1)
    assert len(scene.send()) == 1
    scene.now += 60
    scene.idle(2)
    assert scene.send() == []
    scene.now += 86_400
    (second,) = scene.send()
    assert "jobs/2" in second.get_content()
    assert "jobs/1\n" not in second.get_content()
    scene.now += 86_400 * 2
    assert scene.send() == []  # nothing new


def test_texts_are_kept_for_90_days_and_the_times_of_notices_for_ever(scene: Scene) -> None:
    """`peerway jobs usage --notices` needs the first notice of each person, however old."""
    scene.idle(1)
    scene.idle(2, "unknown")
    sent = scene.now
    assert len(scene.send()) == 1
    base = scene.monitor.jobs.reader
    for days, kept in ((89, True), (91, False)):
        scene.now = sent + days * 86_400
        scene.send()
        rows = {
            row["name"]: bool(row["body"])
            for row in base.execute("SELECT * FROM notices WHERE sent = ?", (sent,))
        }
        assert rows == ({"alice": True, "unknown": True} if kept else {"alice": False})


def test_what_is_wasted_must_be_worth_a_mail_and_a_person_may_want_none(scene: Scene) -> None:
    scene.idle(1)
    scene.idle(2, "bob")
    people = People(scene.monitor.jobs)
    people.set_mail("bob", False)
    assert people.viewer("bob").role == "user"
    assert scene.send(least_core_hours=1000) == []
    assert [mail["To"] for mail in scene.send()] == ["alice@example.org"]
    people.set_mail("bob", True)
    assert [mail["To"] for mail in scene.send()] == ["bob@example.org"]


def test_so_many_an_hour_and_the_others_later(scene: Scene) -> None:
    for number in range(5):
        scene.idle(number + 1, f"user{number}")
    first = [mail["To"] for mail in scene.send(most_an_hour=3)]
    assert len(first) == 3
    assert scene.send(most_an_hour=3) == []
    scene.now += HOUR
    second = [mail["To"] for mail in scene.send(most_an_hour=3)]
    assert len({*first, *second}) == 5


def test_a_mail_server_that_is_away_loses_no_mail(scene: Scene) -> None:
    scene.idle(1)
    with pytest.raises(NotNow, match="127"):
        scene.send(server="smtp://127.0.0.1:1")
    scene.now += HOUR
    assert len(scene.send()) == 1


def test_a_person_whom_the_mail_server_does_not_know_holds_up_no_other(scene: Scene) -> None:
    scene.idle(1, "unknown")
    scene.idle(2, "zoe")
    assert [mail["To"] for mail in scene.send()] == ["zoe@example.org"]
    assert "550" in scene.messages[0]
    assert scene.send() == []
    assert len(scene.messages) == 1


@pytest.mark.parametrize("user", ["a\nBcc: all@example.org", "-f", "a b", "x@elsewhere.org,", "ы"])
def test_a_name_that_is_no_users_gets_no_mail(scene: Scene, user: str) -> None:
    scene.idle(1, user)
    assert scene.send() == []


def test_no_password_goes_out_unencrypted(scene: Scene, tmp_path: Path) -> None:
    scene.idle(1)
    (tmp_path / "password").write_text("secret\n")
    with pytest.raises(NotNow, match="no TLS"):
        scene.send(user="jobs", password_file=str(tmp_path / "password"))


def test_a_password_that_is_no_text_is_told_with_its_file(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(smtplib.SMTP, "has_extn", lambda *_: True)
    monkeypatch.setattr(smtplib.SMTP, "starttls", lambda *_, **__: None)
    scene.idle(1)
    (tmp_path / "password").write_bytes(b"p\xff\n")
    with pytest.raises(NotNow, match=f"{tmp_path}/password:1: the byte 0xff is not UTF-8"):
        scene.send(user="jobs", password_file=str(tmp_path / "password"))


def test_through_a_sendmail_command(scene: Scene, tmp_path: Path) -> None:
    scene.idle(1)
    command = tmp_path / "sendmail"
    command.write_text('#!/bin/sh\ncd "$(dirname "$0")"\necho "$@" >words\ncat >mail\n')
    command.chmod(0o755)
    scene.send(server=f"sendmail:{command}", language="ru")
    assert (tmp_path / "words").read_text() == "-i -f jobs@example.org -- alice@example.org\n"
    mail = email.message_from_bytes((tmp_path / "mail").read_bytes(), policy=default)
    assert "вычислений нет" in mail.get_content()
    command.write_text("#!/bin/sh\necho full >&2\nexit 75\n")
    scene.idle(2, "bob")
    with pytest.raises(NotNow, match="75: full"):
        scene.send(server=f"sendmail:{command}")


def test_a_person_whom_the_sendmail_command_does_not_know_holds_up_no_other(
    scene: Scene, tmp_path: Path
) -> None:
    scene.idle(1, "alice")
    scene.idle(2, "zoe")
    command = tmp_path / "sendmail"
    refusal = 'case "$5" in alice@*) echo no such user >&2; exit 67;; esac'
    command.write_text(f'#!/bin/sh\n{refusal}\necho "$5" >>{tmp_path}/to\n')
    command.chmod(0o755)
    scene.send(server=f"sendmail:{command}")
    assert (tmp_path / "to").read_text() == "zoe@example.org\n"
    assert "alice@example.org" in scene.messages[0]
    assert "67: no such user" in scene.messages[0]


def test_what_would_be_sent_can_be_seen_first(scene: Scene, tmp_path: Path) -> None:
    scene.idle(1, state="RUNNING", ended=None)
    file = tmp_path / "mail.toml"
    file.write_text(
        'server = "smtp://127.0.0.1:1"\nsender = "jobs@example.org"\nto = "{user}@example.org"\n'
        'page = "https://jobs.example.org"\nleast_core_hours = 1\n'
    )
    data = str(scene.monitor.folder)
    shown = CliRunner().invoke(command, ["--mail", str(file), "--data", data])
    assert shown.exit_code == 0, shown.output
    assert "To: alice@example.org" in shown.output
    assert "still running" in shown.output
    assert scene.monitor.jobs.reader.execute("SELECT count(*) FROM notices").fetchone()[0] == 0


GOOD = {
    "server": "smtp://h", "sender": "a@b", "to": "{user}@b", "page": "https://p", "every": "7d",
    "language": "ru",
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server", "ftp://h"), ("server", "smtp://user:secret@h"), ("server", "sendmail:sendmail"),
        ("sender", "a"),
        ("to", "all@b"), ("to", "{user} <x>@b"), ("page", "jobs"), ("every", "often"), ("language", "de"),
        ("user", "u"), ("colour", "red"), ("every", "0s"),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(tmp_path: Path, name: str, value: str) -> None:
    file = tmp_path / "mail.toml"
    file.write_text("".join(f'{key} = "{each}"\n' for key, each in GOOD.items()))
    assert read(file).every_s == 7 * 86_400
    file.write_text("".join(f'{key} = "{each}"\n' for key, each in {**GOOD, name: value}.items()))
    with pytest.raises(BadMail, match=name):
        read(file)
