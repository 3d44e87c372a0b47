"""What the server puts into Slurm: comments of ended jobs, and the summary in Slurm's end mail."""

from __future__ import annotations

import email
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jobs_scene import START, Job, put
from jobs_server import EVIL, Server, served
from scripted_slurm import FakeSlurm

from peerway_jobs import mail_program
from peerway_jobs.admin_comment import Comments, comment
from peerway_jobs.cli import slurm_mail
from peerway_jobs.mail.post import Never, NotNow
from peerway_jobs.mail_program import BadMailSettings, MailSettings, job_of, read, recipient, sent_at_last
from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.outward import Outward, read_outward
from peerway_jobs.slurm_json import SlurmFailed
from peerway_jobs.store.runs import Run

MAIL_SH = Path(slurm_mail.__file__).parents[1] / "slurm" / "mail.sh"
ENDED = "Slurm Job_id={} Name=train Ended, Run time 02:00:00, COMPLETED, ExitCode 0"


# -- comments


class Scene:
    """A monitor with ended jobs, a clock, and a fake Slurm that has them in its accounts."""

    def __init__(self, folder: Path, slurm: FakeSlurm) -> None:
        self.slurm, self.now = slurm, START + 2 * 3600 + 900.0
        self.monitor = Monitor(folder / "jobs", clock=lambda: self.now)
        self.log: list[str] = []
        self.comments = Comments(self.monitor, self.log.append)

    def job(self, number: int, use: float = 0.0, **slurm: Any) -> None:
        figures = {"gpu_utilization_ratio": use, "step_cpu_user_seconds_total": 2.0}
        put(self.monitor, Job(number, figures, gpus=2, slurm=slurm))
        self.monitor.judge_due()

    def lists(self, *jobs: int, **comments: str) -> None:
        """Let sacct list these jobs, some with a comment: job7="text"."""
        self.slurm.answers(
            *({"job_id": job, "comment": {"administrator": comments.get(f"job{job}", "")}} for job in jobs)
        )


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path, FakeSlurm(tmp_path, monkeypatch))
    yield made
    made.monitor.close()


def test_an_ended_job_gets_its_verdict_as_comment_once(scene: Scene) -> None:
    scene.job(7, name=EVIL)
    scene.job(8, 0.9)
    scene.lists(7, 8)
    assert scene.comments.write_due() == 2
    idle, good = sorted(scene.slurm.changes())
    assert idle == (
        "sacctmgr --immediate modify job where jobid=7 set AdminComment=peerway: inefficient; gpu 0 %, "
        "cpu 25 %; 4 idle gpu-hours; gpu-idle"
    )
    assert good.partition("set ")[2].startswith("AdminComment=peerway: efficient; gpu 90 %, cpu 25 %")
    assert scene.comments.write_due() == 0
    assert scene.slurm.changes() == []


def test_a_comment_of_others_is_never_changed_and_ours_is_renewed(scene: Scene) -> None:
    for job in (7, 8, 9, 10):
        scene.job(job)
    scene.lists(7, 8, 9, job7="JS1:H4sIAAA", job8="peerway: efficient", job9="see ticket 12")
    assert scene.comments.write_due() == 1
    assert [line.split()[5] for line in scene.slurm.changes()] == ["jobid=8"]
    scene.lists(7, 8, 9, 10, job8="peerway: efficient")
    assert scene.comments.write_due() == 0
    scene.now += 61  # the accounts lagged behind
    assert scene.comments.write_due() == 1
    assert [line.split()[5] for line in scene.slurm.changes()] == ["jobid=10"]


def test_a_restart_of_the_server_writes_nothing_again(scene: Scene) -> None:
    scene.job(7)
    scene.lists(7)
    scene.comments.write_due()
    (line,) = scene.slurm.changes()
    scene.lists(7, job7=line.partition("AdminComment=")[2])
    assert Comments(scene.monitor, scene.log.append).write_due() == 0
    assert scene.slurm.changes() == []


def test_what_slurm_refuses_is_tried_again_later_and_holds_up_no_other(scene: Scene) -> None:
    scene.job(7)
    scene.job(8)
    scene.lists(7, 8)
    scene.slurm.refuse("sacctmgr: error: Access/permission denied")
    with pytest.raises(SlurmFailed, match="Access/permission denied"):
        scene.comments.write_due()
    assert len(scene.slurm.changes()) == 2
    assert scene.comments.write_due() == 0  # not at once
    scene.slurm.refuse("")
    scene.now += 61
    assert scene.comments.write_due() == 2


def test_while_slurm_does_not_answer_nothing_is_given_up(scene: Scene) -> None:
    scene.job(7)
    scene.lists(7)
    scene.slurm.set_down(True)
    with pytest.raises(SlurmFailed, match="Unable to contact"):
        scene.comments.write_due()
    scene.slurm.set_down(False)
    assert scene.comments.write_due() == 1


@pytest.mark.parametrize("job", ["running", "not confirmed", "long ago"])
def test_only_jobs_that_have_ended_and_are_judged_get_one(scene: Scene, job: str) -> None:
    if job == "running":
        scene.job(7, state="RUNNING", ended=None)
    else:
        scene.job(7)
    if job == "not confirmed":
        scene.monitor.jobs.write("UPDATE jobs SET provisional = 1")
    if job == "long ago":
        scene.now += 2 * 86_400
    scene.lists(7)
    assert scene.comments.write_due() == 0


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"verdict": "no data"}, "peerway: no data"),
        ({"verdict": "short"}, "peerway: too short to judge"),
        ({"verdict": "unremarkable", "cpu_efficiency": 0.256}, "peerway: no finding; cpu 26 %"),
        ({"verdict": "inefficient", "tag": "x; y=z"}, "peerway: inefficient"),
        ({"verdict": "efficient", "gpu_efficiency": 0.5}, "peerway: efficient"),  # it has no GPU
    ],
)
def test_the_line_of_a_comment(changes: dict[str, Any], text: str) -> None:
    assert comment(replace(Run("7"), **changes)) == text


def test_comments_are_off_by_default_and_need_slurm(scene: Scene) -> None:
    assert list(Outward().workers(scene.monitor, scene.log.append)) == []
    assert len(list(Outward(admin_comment=True).workers(scene.monitor, scene.log.append))) == 1
    with pytest.raises(ValueError, match="--no-slurm"):
        read_outward(None, None, None, True, False)


# -- Slurm's mails


@pytest.mark.parametrize(
    ("subject", "job"),
    [
        (ENDED.format(42), "42"),
        ("Slurm Job_id=42 Name=a b, Run time 1 Failed, Run time 1-02:00:00, FAILED, ExitCode 1", "42"),
        ("Slurm Array Task Job_id=42_7 (49) Name=x Ended, Run time 00:01:00, COMPLETED, ExitCode 0", "42_7"),
        ("hpc Slurm Job_id=42 Name=x Ended, Run time 00:01:00", "42"),
        ("Slurm Array Summary Job_id=42_* (42) Name=x Ended, COMPLETED", None),
        ("Slurm Job_id=42 Name=x Began, Queued time 00:00:01", None),
        ("Slurm Job_id=42 Name=x Reached time limit", None),
        ("Slurm Job_id=42 Name=Ended Began, Queued time 00:00:01", None),
        ("Re: Slurm Job_id=1; rm -rf Ended, Run time 00:00:01", None),
        ("", None),
    ],
)
def test_which_job_a_mail_of_slurm_is_about(subject: str, job: str | None) -> None:
    assert job_of(subject) == job


@pytest.mark.parametrize(
    ("text", "address"),
    [("alice", "alice@example.org"), ("a.b@c.org", "a.b@c.org"), ("-f", None), ("a b", None),
     ("a@b,c@d", None), ("a\nBcc: x@y", None), ("", None)],
)  # fmt: skip
def test_to_whom_a_mail_goes(text: str, address: str | None) -> None:
    if address:
        assert recipient(text, "example.org") == address
    else:
        with pytest.raises(ValueError, match="not an address"):
            recipient(text, "example.org")


class Post:
    """The settings of Slurm's mails, whose sendmail command keeps each mail in a file."""

    def __init__(self, folder: Path, server: str, token: str) -> None:
        self.folder = folder
        command = folder / "sendmail"
        command.write_text(f'#!/bin/sh\necho "$@" >{folder}/words\ncat >{folder}/mail.part\n'
                           f"mv {folder}/mail.part {folder}/mail\n")  # fmt: skip
        command.chmod(0o755)
        (folder / "token").write_text(token)
        (folder / "token").chmod(0o600)
        self.values = {
            "server": server, "token_file": f"{folder}/token", "mail": f"sendmail:{command}",
            "sender": "slurm@example.org", "domain": "example.org", "wait": "0s",
        }  # fmt: skip
        self.file = folder / "mail.toml"
        self.write()

    def write(self, **changes: str) -> None:
        values = {**self.values, **changes}
        self.file.write_text("".join(f'{name} = "{value}"\n' for name, value in values.items()))

    def send(self, subject: str, to: str = "alice") -> EmailMessage:
        """Let the command send a mail; returns it."""
        ran = CliRunner().invoke(slurm_mail.command, ["-s", subject, to, "--settings", str(self.file)])
        assert ran.exit_code == 0, ran.output
        return self.received()

    def received(self) -> EmailMessage:
        file = self.folder / "mail"
        mail: EmailMessage = email.message_from_bytes(file.read_bytes(), policy=default)  # type: ignore[assignment]
        file.unlink()
        return mail


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("jobs")) as found:
        yield found


@pytest.fixture
def post(server: Server, tmp_path: Path) -> Post:
    return Post(tmp_path, server.url, server.token("admin", "jobs:read", "admin"))


def test_a_mail_about_the_end_has_the_summary(post: Post) -> None:
    mail = post.send(ENDED.format(102))
    assert (mail["To"], mail["From"]) == ("alice@example.org", "slurm@example.org")
    assert mail["Subject"] == ENDED.format(102)
    text = mail.get_content()
    assert "INEFFICIENT" in text
    assert "To change:" in text
    assert "\x1b" not in text
    assert (post.folder / "words").read_text() == "-i -f slurm@example.org -- alice@example.org\n"
    post.write(language="ru")
    assert "НЕЭФФЕКТИВНО" in post.send(ENDED.format(102)).get_content()


def test_all_other_mails_are_passed_on_unchanged(post: Post) -> None:
    mail = post.send("Slurm Job_id=102 Name=x Began, Queued time 00:00:01", "bob@elsewhere.org")
    assert (mail["To"], mail.get_content().strip()) == ("bob@elsewhere.org", "")


@pytest.mark.parametrize(
    ("changes", "job", "why"),
    [
        ({}, 999, "does not know job 999"), ({"server": "http://127.0.0.1:1"}, 102, "127.0.0.1:1"),
        ({"token_file": "/no/such/token"}, 102, "No such file"),
    ],
)  # fmt: skip
def test_without_a_summary_the_mail_is_sent_all_the_same(
    post: Post, changes: dict[str, str], job: int, why: str
) -> None:
    post.write(**changes)
    mail = post.send(ENDED.format(job))
    assert mail["Subject"] == ENDED.format(job)
    assert "There is no summary of this job" in mail.get_content()
    assert why in mail.get_content()


def test_a_token_that_may_not_see_the_job_gives_no_summary(server: Server, tmp_path: Path) -> None:
    post = Post(tmp_path, server.url, server.token("bob", "jobs:read"))
    assert "does not know job 102" in post.send(ENDED.format(102)).get_content()
    (tmp_path / "token").chmod(0o644)
    assert "others may read" in post.send(ENDED.format(104)).get_content()


def test_it_waits_for_the_final_verdict(post: Post, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    post.write(wait="1h")
    base = server.monitor.jobs
    judged = base.reader.execute("SELECT judged FROM jobs WHERE job = '104'").fetchone()[0]
    base.write("UPDATE jobs SET judged = 0 WHERE job = '104'")
    waits: list[float] = []

    def wait(seconds: float) -> None:
        if seconds < 1:  # of the sendmail command's end
            return
        waits.append(seconds)
        assert len(waits) <= 3
        if len(waits) == 3:
            base.write("UPDATE jobs SET judged = ? WHERE job = '104'", (judged,))

    monkeypatch.setattr("time.sleep", wait)
    post.send(ENDED.format(104), "bob")
    assert waits == [5.0] * 3


def test_a_name_with_lines_makes_no_header(post: Post) -> None:
    mail = post.send(
        "Slurm Job_id=102 Name=x\nBcc: all@example.org\n\nhello Ended, Run time 00:00:01, COMPLETED"
    )
    assert mail["Bcc"] is None
    assert "hello" in mail["Subject"]


def test_a_mail_server_that_is_away_is_asked_again(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(post.file)
    tries: list[int] = []

    def away(*_: object) -> None:
        tries.append(1)
        if len(tries) < 4:
            raise NotNow("full")

    monkeypatch.setattr("peerway_jobs.mail.post.send", away)
    pauses: list[float] = []
    sent_at_last(settings, EmailMessage(), pauses.append)
    assert pauses == [*mail_program.AGAIN_S[:3]]
    for error, count in ((NotNow, 6), (Never, 1)):
        tries.clear()

        def fails(*_: object, error: type[Exception] = error) -> None:
            tries.append(1)
            raise error("no")

        monkeypatch.setattr("peerway_jobs.mail.post.send", fails)
        with pytest.raises(error):
            sent_at_last(settings, EmailMessage(), lambda _: None)
        assert len(tries) == count


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("server", "http://jobs.example.org"), ("server", "jobs"), ("mail", "mail"), ("mail", "smtp://u@h"),
        ("sender", "slurm"), ("domain", "a b"), ("wait", "long"), ("language", "de"), ("colour", "red"),
        ("token_file", ""),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(post: Post, name: str, value: str) -> None:
    assert isinstance(read(post.file), MailSettings)
    post.write(**{name: value})
    with pytest.raises(BadMailSettings, match=name):
        read(post.file)


def test_the_script_returns_at_once_and_sends_in_the_background(post: Post, tmp_path: Path) -> None:
    """slurmctld waits for its MailProg, so the script must not wait for the server or the mail."""
    program, gate = tmp_path / "peerway", tmp_path / "gate"
    subprocess.run(["mkfifo", gate, tmp_path / "done"], check=True)
    program.write_text(f'#!/bin/sh\ncat {gate} >/dev/null\necho "$@" >{tmp_path}/done\n')
    program.chmod(0o755)
    subprocess.run(
        [MAIL_SH, "-s", ENDED.format(7), "alice"],
        check=True,
        env={"PEERWAY_JOBS_PROGRAM": str(program), "PEERWAY_JOBS_MAIL_SETTINGS": str(post.file)},
    )
    gate.write_text("go")  # the program has waited for this, the script has not
    words = (tmp_path / "done").read_text()
    assert words == f"jobs slurm-mail --settings {post.file} -s {ENDED.format(7)} alice\n"
