"""Policies: on which jobs they act, what they do, and above all when they must not act."""

from __future__ import annotations

import dataclasses
import email
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from email.policy import default
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jobs_scene import START, Job
from jobs_server import EVIL
from scripted_slurm import FakeSlurm

from peerway_jobs.batch import Interval
from peerway_jobs.cli.acts import command as acts_command
from peerway_jobs.cli.policy import command as policy_command
from peerway_jobs.cli.serve import command as serve_command
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor
from peerway_jobs.policies.decide import decide
from peerway_jobs.policies.enforce import Enforcer
from peerway_jobs.policies.evidence import Idleness
from peerway_jobs.policies.settings import BadPolicies, Policies, Policy, read
from peerway_jobs.serve.outward import Outward, read_outward
from peerway_jobs.store import acts, audit
from peerway_jobs.store.acts import Act
from peerway_jobs.store.sample_damage import SampleDamage
from peerway_jobs.store.samples import Filed

MINUTE = 60.0
HOUR = 3600.0
DAY = 24 * HOUR
USE = "gpu_utilization_ratio"
PAGE = "https://jobs.example.org"
LONG = 12 * 60  # minutes for which samples are there
Use = Callable[[int, int], float | None]


class Open(Job):
    """A running job: its intervals have no end."""

    def _intervals(self, node: int) -> list[Interval]:
        return [dataclasses.replace(each, end_ms=None) for each in super()._intervals(node)]


def idle_from(minute: int, until: int = 1 << 30) -> Use:
    """A GPU that computes, except from one minute on until another."""
    return lambda _, at: 0.0 if minute <= at < until else 0.9


class Scene:
    """A monitor with a clock, a fake Slurm and a sendmail command. Samples of a job are there up to now."""

    def __init__(self, folder: Path, slurm: FakeSlurm) -> None:
        self.folder, self.slurm = folder, slurm
        self.now = float(START)
        self.monitor = Monitor(folder / "jobs", clock=lambda: self.now)
        self.log: list[str] = []
        command = folder / "sendmail"
        command.write_text(f'#!/bin/sh\n[ -e {folder}/full ] && exit 75\n[ -e {folder}/nobody ] && exit 67\n'
                           f'cat > "$(mktemp {folder}/mail-XXXXXX)"\n')  # fmt: skip
        command.chmod(0o755)
        self.mail = Mail(f"sendmail:{command}", "jobs@example.org", "{user}@example.org", PAGE)
        self.policy = Policy("idle-gpus", "2h", "cancel", dry_run="1h")
        self._enforcer: Enforcer | None = None
        self._jobs: dict[int, Open] = {}
        self._unsent: dict[int, list[Filed]] = {}

    def job(self, number: int, use: Use | float, gpus: int = 2, **changes: Any) -> None:
        slurm = {"state": "RUNNING", "ended": None, "gpus": gpus, **changes.pop("slurm", {})}
        job = Open(number, {USE: use}, minutes=LONG, gpus=gpus, node_gpus=8, slurm=slurm, **changes)
        self._jobs[number], self._unsent[number] = job, job.batches()
        self.at(0)

    def at(self, minute: float) -> None:
        """Set the clock; agents have sent everything up to then, and Slurm answered a moment ago."""
        self.now = START + minute * MINUTE
        self.monitor.jobs.slurm_answered = self.now - 20
        for number, job in self._jobs.items():
            until = min(self.now, START + LONG * MINUTE * job.measured) * 1000
            several = [each for each in self._unsent[number] if each.batch.wall_ms <= until]
            self._unsent[number] = self._unsent[number][len(several) :]
            self.monitor.samples.put(several)
            self.monitor.jobs.update([job.run()])
            self.monitor.jobs.file(several)
        self.slurm.answers(*(self.entry(job) for job in self._jobs.values()))

    def entry(self, job: Job, **changes: Any) -> dict[str, Any]:
        """The job as squeue lists it."""
        run = job.run()
        return {
            "job_id": int(run.job),
            "job_state": "RUNNING",
            "start_time": int(run.started or 0),
            **changes,
        }

    def round(self) -> list[Act]:
        """One round of the policy; returns the acts in it."""
        if self._enforcer is None:
            self.restart()
        assert self._enforcer is not None
        before = len(acts.newest(self.monitor.jobs.reader, 10_000))
        self._enforcer.round()
        after = acts.newest(self.monitor.jobs.reader, 10_000)
        return after[: len(after) - before][::-1]

    def restart(self) -> None:
        """Start the server again."""
        policies = Policies(PAGE, (self.policy,))
        self._enforcer = Enforcer(self.monitor, policies, self.mail, self.log.append)

    def begin(self) -> None:
        """Let the dry run pass before any job is there."""
        self.at(-120)
        assert self.round() == []

    def mails(self) -> list[Any]:
        """The mails that were sent, which are taken out."""
        files = sorted(self.folder.glob("mail-*"), key=lambda file: file.stat().st_mtime_ns)
        mails = [email.message_from_bytes(file.read_bytes(), policy=default) for file in files]
        for file in files:
            file.unlink()
        return mails


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    made = Scene(tmp_path, FakeSlurm(tmp_path, monkeypatch))
    yield made
    made.monitor.close()


def names(several: Sequence[Act]) -> list[tuple[str, str, bool]]:
    return [(act.act, act.job, act.dry) for act in several]


# -- what it does


def test_an_idle_job_is_warned_about_and_then_cancelled_with_the_evidence(scene: Scene) -> None:
    scene.begin()
    scene.job(7, idle_from(60), slurm={"name": EVIL})
    scene.at(176)
    assert scene.round() == []  # 118 minutes: the sample at minute 60 stands for the time since minute 58
    scene.at(184)
    (warning,) = scene.round()
    assert (warning.act, warning.dry, warning.outcome) == ("warn", False, "done")
    (mail,) = scene.mails()
    assert mail["To"] == "alice@example.org"
    assert "idle for 2 h" in mail["Subject"]
    assert "scancel 7" in mail.get_content()
    assert "\x1b" not in mail.get_content()
    assert scene.slurm.changes() == []
    scene.at(240)
    assert scene.round() == []  # the owner has an hour
    scene.at(246)
    (cancelled,) = scene.round()
    assert scene.slurm.changes() == ["scancel 7"]
    assert (cancelled.act, cancelled.user, cancelled.account) == ("cancel", "alice", "phys")
    evidence = cancelled.evidence
    assert evidence["warned"] == warning.at
    assert evidence["idle_s"] >= 2 * HOUR
    assert [(gpu["node"], gpu["highest_use"]) for gpu in evidence["gpus"]] == [("n7-0", 0.0)] * 2
    assert evidence["settings"]["idle"] == "2h"
    assert min(gpu["samples"] for gpu in evidence["gpus"]) >= 60
    (told,) = scene.mails()
    assert "was cancelled" in told["Subject"]
    assert scene.round() == []  # Slurm's list is still the old one
    assert scene.slurm.changes() == []
    assert {entry["action"] for entry in audit.entries(scene.monitor.jobs)} == {"policy acted"}


def test_a_dry_run_comes_first_and_does_nothing(scene: Scene) -> None:
    scene.policy = replace(scene.policy, dry_run="6h")
    scene.at(-120)
    scene.round()
    scene.job(7, idle_from(0))
    done = []
    for minute in range(120, 240, 10):
        scene.at(minute)
        done += scene.round()
    assert names(done) == [("warn", "7", True), ("cancel", "7", True)]
    assert scene.slurm.changes() == []
    assert scene.mails() == []
    scene.at(242)  # the dry run is over: the dry warning does not count
    assert names(scene.round()) == [("warn", "7", False)]
    assert len(scene.mails()) == 1
    assert scene.slurm.changes() == []


@pytest.mark.parametrize(
    ("changes", "dry"),
    [
        ({"idle": "3h"}, True), ({"use": 0.05}, True), ({"after_warning": "2h"}, True),
        ({"partitions": ("gpu",)}, True), ({"exempt_users": ("bob",)}, False), ({"most_an_hour": 1}, False),
    ],
)  # fmt: skip
def test_a_changed_policy_begins_dry_again(scene: Scene, changes: dict[str, Any], dry: bool) -> None:
    scene.begin()
    scene.job(7, 0.0)
    scene.policy = replace(scene.policy, **changes)
    scene.restart()
    scene.at(200)
    assert names(scene.round()) == [("warn", "7", dry)]


def test_a_job_that_computes_again_is_warned_anew(scene: Scene) -> None:
    scene.begin()
    scene.job(7, lambda _, at: 0.9 if 130 <= at < 135 else 0.0)
    scene.at(122)
    assert names(scene.round()) == [("warn", "7", False)]
    for minute in (140, 190, 250):
        scene.at(minute)
        assert scene.round() == []
    scene.at(258)
    assert names(scene.round()) == [("warn", "7", False)]
    assert scene.slurm.changes() == []


def test_a_policy_that_only_warns_does_so_once_in_an_idle_period_of_any_length(scene: Scene) -> None:
    scene.policy = replace(scene.policy, action="warn")
    scene.begin()
    scene.job(7, 0.0)
    done = []
    for minute in range(100, LONG, 20):
        scene.at(minute)
        done += scene.round()
    assert names(done) == [("warn", "7", False)]


def test_a_restart_of_the_server_forgets_nothing(scene: Scene) -> None:
    scene.begin()
    scene.job(7, 0.0)
    done = []
    for minute in (122, 150, 184):
        scene.at(minute)
        scene.restart()
        done += scene.round()
    assert names(done) == [("warn", "7", False), ("cancel", "7", False)]


# -- when it must not act


def gap(_: int, at: int) -> float | None:
    return None if 100 <= at < 110 else 0.0


def one_busy(device: int, _: int) -> float:
    return 0.5 if device == 1 else 0.0


def one_unknown(device: int, _: int) -> float | None:
    return None if device == 1 else 0.0


@pytest.mark.parametrize(
    ("use", "changes"),
    [
        (one_busy, {}), (one_unknown, {}), (gap, {}), (0.02, {}),
        (0.0, {"measured": 0.1}),  # the agent is away
        (0.0, {"slurm": {"gpus": 4}}),  # agents know of two
        (0.0, {"slurm": {"suspended": 600.0}}),
        (0.0, {"slurm": {"state": "SUSPENDED"}}),
        (0.0, {"slurm": {"state": "COMPLETING"}}), (0.0, {"slurm": {"component": "7+1"}}),
        (0.0, {"slurm": {"ended": START + 100 * MINUTE, "state": "COMPLETED"}}),
        (0.0, {"slurm": {"node_list": "elsewhere"}}),  # Slurm contradicts the agent
        (0.0, {"slurm": {"reason": "agent"}}),  # only an agent knows the job
    ],
)  # fmt: skip
def test_it_never_acts_on_no_data_or_a_job_that_computes(
    scene: Scene, use: Use | float, changes: dict[str, Any]
) -> None:
    scene.begin()
    scene.job(7, use, **changes)
    for minute in (125, 190, 205):
        scene.at(minute)
        assert scene.round() == []
    assert scene.slurm.changes() == []
    assert scene.mails() == []


def test_a_gap_only_delays(scene: Scene) -> None:
    """The counterpart of the test above: the job is acted on when the idle time after the gap is long."""
    scene.begin()
    scene.job(7, gap)
    scene.at(225)
    assert scene.round() == []
    scene.at(234)
    assert names(scene.round()) == [("warn", "7", False)]


def test_it_never_acts_while_slurm_does_not_answer(scene: Scene) -> None:
    scene.begin()
    scene.job(7, 0.0)
    scene.at(200)
    for answered in (None, 0.0, scene.now - 301):
        scene.monitor.jobs.slurm_answered = answered
        assert scene.round() == []
    assert len(scene.log) == 1  # said once
    scene.monitor.jobs.slurm_answered = scene.now - 299
    assert names(scene.round()) == [("warn", "7", False)]


def test_it_never_acts_on_samples_that_cannot_all_be_read(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.begin()
    scene.job(7, 0.0)
    scene.at(200)
    damage = SampleDamage("day-x.db", "torn", 1, "n7-0", int(START * 1000), int(scene.now * 1000))
    monkeypatch.setattr(scene.monitor.samples, "damage", lambda: [damage])
    assert scene.round() == []


@pytest.mark.parametrize(
    ("changes", "job"),
    [
        ({"exempt_users": ("alice",)}, {}), ({"exempt_projects": ("phys",)}, {}),
        ({"exempt_projects": ("wc",)}, {"project": "wc"}), ({"partitions": ("big",)}, {}),
    ],
)  # fmt: skip
def test_exempt_users_projects_and_other_partitions(
    scene: Scene, changes: dict[str, Any], job: dict[str, Any]
) -> None:
    scene.policy = replace(scene.policy, **changes)
    scene.begin()
    scene.job(7, 0.0, slurm=job)
    scene.job(8, 0.0, slurm={"user": "bob", "account": "chem", "partition": "big"})
    scene.at(200)
    assert {act.job for act in scene.round()} == {"8"}


def test_a_warning_that_was_not_delivered_is_followed_by_nothing(scene: Scene) -> None:
    scene.begin()
    scene.job(7, 0.0)
    (scene.folder / "full").touch()
    for minute in (125, 190, 255):
        scene.at(minute)
        assert scene.round() == []
    assert "cannot be sent now" in scene.log[0]
    (scene.folder / "full").unlink()
    scene.at(262)
    assert names(scene.round()) == [("warn", "7", False)]
    assert scene.slurm.changes() == []


def test_a_warning_that_the_mail_server_refused_is_recorded_and_followed_by_nothing(scene: Scene) -> None:
    scene.begin()
    scene.job(7, 0.0)
    (scene.folder / "nobody").touch()
    done = []
    for minute in range(125, 500, 15):
        scene.at(minute)
        done += scene.round()
    assert [(act.act, act.outcome[:8]) for act in done] == [("warn", "refused:")]
    assert scene.slurm.changes() == []


def test_only_so_many_jobs_an_hour(scene: Scene) -> None:
    scene.policy = replace(scene.policy, most_an_hour=2)
    scene.begin()
    for number in range(5):
        scene.job(number + 1, 0.0)
    scene.at(125)
    assert len(scene.round()) == 5  # warnings are not limited
    scene.at(190)
    assert len(scene.round()) == 2
    scene.at(200)
    assert scene.round() == []
    scene.at(252)
    assert len(scene.round()) == 2
    assert len(scene.slurm.changes()) == 4


def test_a_job_that_began_anew_a_moment_ago_is_not_cancelled(scene: Scene) -> None:
    """The database's list of jobs may be 30 s old, so Slurm is asked once more before a job is cancelled."""
    scene.begin()
    scene.job(7, 0.0)
    scene.at(125)
    scene.round()
    for entry in ({"start_time": START + 9000}, {"job_state": "COMPLETING"}, {"job_id": 8}):
        scene.at(190)
        scene.slurm.answers(scene.entry(scene._jobs[7], **entry))
        assert scene.round() == []
    assert scene.slurm.changes() == []


def test_a_number_that_slurm_uses_again_inherits_no_warning(scene: Scene) -> None:
    scene.begin()
    scene.job(7, 0.0)
    begun = START - 100 * DAY
    acts.record(scene.monitor.jobs, Act(begun, "idle-gpus", scene.policy.form, "warn", "7", dry=False))
    scene.at(200)
    assert names(scene.round()) == [("warn", "7", False)]


def test_a_cancel_that_slurm_refuses_is_recorded_and_tried_again(scene: Scene) -> None:
    scene.begin()
    scene.job(7, 0.0)
    scene.at(125)
    scene.round()
    scene.slurm.refuse("scancel: error: Kill job error on job id 7: Access/permission denied")
    scene.at(190)
    (refused,) = scene.round()
    assert "Access/permission denied" in refused.outcome
    scene.at(195)
    assert scene.round() == []
    scene.slurm.refuse("")
    scene.at(202)
    (done,) = scene.round()
    assert (done.act, done.outcome) == ("cancel", "done")


# -- holding


def waiting(number: int, minute: float, **changes: Any) -> dict[str, Any]:
    """A job that waits since then, as squeue lists it."""
    return {
        "job_id": number, "job_state": "PENDING", "account": "phys", "user_name": "alice",
        "submit_time": int(START + minute * MINUTE), "state_reason": "Priority", **changes,
    }  # fmt: skip


@pytest.fixture
def holding(scene: Scene) -> Scene:
    """Half an hour before the jobs of an account with an idle job may be held."""
    scene.policy = replace(scene.policy, action="hold", exempt_users=("vip",))
    scene.begin()
    scene.job(7, lambda _, at: 0.9 if at >= 300 else 0.0)
    scene.at(122)
    assert names(scene.round()) == [("warn", "7", False)]
    return scene


def test_new_jobs_of_the_account_are_held_until_the_idle_job_computes(holding: Scene) -> None:
    listed = [
        waiting(20, 130), waiting(21, 100), waiting(22, 130, account="chem"),
        waiting(23, 130, user_name="vip"), waiting(24, 130, state_reason="JobHeldUser"),
        waiting(25, 130, user_name="bob"),
    ]  # fmt: skip
    holding.at(150)
    holding.slurm.answers(*listed)
    assert holding.round() == []
    holding.at(190)
    holding.slurm.answers(*listed)
    held = holding.round()
    assert names(held) == [("hold", "20", False), ("hold", "25", False)]
    assert holding.slurm.changes() == ["scontrol hold 20", "scontrol hold 25"]
    assert held[0].evidence["because"]["job"] == "7"
    assert holding.round() == []
    assert {act.job for act in acts.held(holding.monitor.jobs.reader)} == {"20", "25"}
    holding.restart()  # a restart releases nothing
    holding.at(195)
    holding.slurm.answers(waiting(20, 130, state_reason="JobHeldAdmin"))
    assert holding.round() == []
    holding.at(310)
    assert names(holding.round()) == [("release", "20", False), ("release", "25", False)]
    assert holding.slurm.changes() == ["scontrol release 20", "scontrol release 25"]
    assert acts.held(holding.monitor.jobs.reader) == []
    assert holding.round() == []


def test_a_job_that_a_person_released_stays_released(holding: Scene) -> None:
    holding.at(190)
    holding.slurm.answers(waiting(20, 130))
    assert len(holding.round()) == 1
    holding.at(195)
    holding.slurm.answers(waiting(20, 130))  # no longer held
    assert holding.round() == []


@pytest.mark.parametrize("how", ["ended", "exempt", "another action"])
def test_held_jobs_are_released_when_their_cause_is_gone(holding: Scene, how: str) -> None:
    holding.at(190)
    holding.slurm.answers(waiting(20, 130))
    assert len(holding.round()) == 1
    if how == "ended":
        job = holding._jobs[7]
        job.slurm = {**job.slurm, "state": "CANCELLED", "ended": START + 192 * MINUTE}
    elif how == "exempt":
        holding.policy = replace(holding.policy, exempt_projects=("phys",))
    else:
        holding.policy = replace(holding.policy, action="warn")
    holding.restart()
    holding.at(195)
    released = [act for act in holding.round() if act.act == "release"]
    assert [act.job for act in released] == ["20"]


def test_no_data_neither_holds_nor_releases(holding: Scene) -> None:
    holding.at(190)
    holding.slurm.answers(waiting(20, 130))
    assert len(holding.round()) == 1
    holding._jobs[7].measured = 190 / LONG
    holding.at(205)
    holding.slurm.answers(waiting(20, 130, state_reason="JobHeldAdmin"), waiting(26, 200))
    assert holding.round() == []
    assert holding.slurm.changes() == ["scontrol hold 20"]


def test_a_dry_run_of_holding_asks_slurm_and_changes_nothing(scene: Scene) -> None:
    scene.policy = replace(scene.policy, action="hold", dry_run="7d")
    scene.begin()
    scene.job(7, 0.0)
    scene.at(122)
    scene.round()
    scene.at(190)
    scene.slurm.answers(waiting(20, 130))
    assert names(scene.round()) == [("hold", "20", True)]
    assert scene.round() == []
    assert scene.slurm.changes() == []
    assert acts.held(scene.monitor.jobs.reader) == []


def test_a_slurm_that_does_not_say_who_waits_is_reported_once(holding: Scene) -> None:
    holding.at(190)
    holding.slurm.set_down(True)
    holding.round()
    holding.round()
    assert sum("Unable to contact" in line for line in holding.log) == 1


# -- the decision by itself


@pytest.mark.parametrize(
    ("idle_s", "acts_before", "decision"),
    [
        (None, [], ""), (7199.0, [], ""), (7200.0, [], "warn"),
        (7300.0, [("warn", 50.0)], ""), (11_000.0, [("warn", 3700.0)], "cancel"),
        (7300.0, [("warn", 7400.0)], "warn"),  # of an earlier idle period
        (11_000.0, [("warn", 3700.0), ("cancel", 30.0)], ""),
    ],
)  # fmt: skip
def test_what_is_decided(idle_s: float | None, acts_before: list[tuple[str, float]], decision: str) -> None:
    policy = Policy("p", "2h", "cancel")
    before = [Act(START - ago, "p", policy.form, act, "7", dry=False) for act, ago in acts_before]
    assert decide(policy, Idleness(idle_s, "away"), before, START, dry=False).act == decision
    of_dry = [replace(act, dry=True) for act in before]
    if decision == "cancel":
        assert decide(policy, Idleness(idle_s), of_dry, START, dry=False).act == "warn"


# -- settings and commands


def settings_file(folder: Path, **changes: Any) -> Path:
    table = {"name": "idle-gpus", "idle": "2h", **changes}
    lines = [f"{key} = {json.dumps(value)}" for key, value in table.items()]
    file = folder / "policies.toml"
    file.write_text(f'page = "{PAGE}"\n[[policy]]\n' + "\n".join(lines) + "\n")
    return file


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("action", "kill"), ("idle", "5m"), ("idle", "long"), ("dry_run", "0s"), ("dry_run", "59m"),
        ("after_warning", "soon"), ("use", 0.9), ("use", "low"), ("partitions", "gpu"), ("most_an_hour", 0),
        ("most_an_hour", 1.5), ("name", "a b"), ("colour", "red"), ("exempt_users", [1]),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused(tmp_path: Path, name: str, value: object) -> None:
    assert read(settings_file(tmp_path)).policies == (Policy("idle-gpus", "2h"),)
    with pytest.raises(BadPolicies, match=name if value != "a b" else "only letters"):
        read(settings_file(tmp_path, **{name: value}))


def test_by_default_a_policy_warns_and_is_dry_for_a_week() -> None:
    policy = Policy("p", "2h")
    assert (policy.action, policy.dry_run_s) == ("warn", 7 * DAY)


def test_a_server_acts_on_nothing_unless_it_is_given_policies(scene: Scene) -> None:
    assert list(Outward(mail=None).workers(scene.monitor, scene.log.append)) == []


@pytest.mark.parametrize(
    ("action", "slurm", "mail", "why"),
    [
        ("cancel", True, False, "only after a warning by mail"), ("hold", True, False, "idle-gpus"),
        ("warn", True, False, "warn nobody"), ("warn", False, True, "--no-slurm"),
    ],
)  # fmt: skip
def test_a_policy_that_could_not_do_its_work_is_refused(
    tmp_path: Path, action: str, slurm: bool, mail: bool, why: str
) -> None:
    file = settings_file(tmp_path, action=action)
    mails = tmp_path / "mail.toml"
    mails.write_text(f'server = "smtp://h"\nsender = "a@b"\nto = "{{user}}@b"\npage = "{PAGE}"\n')
    with pytest.raises(ValueError, match=why):
        read_outward(mails if mail else None, None, file, False, slurm)
    assert read_outward(mails, None, file, False, True).policies is not None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--policies", "policies.toml"], "acts only after a warning by mail"),
        (["--policies", "policies.toml", "--no-slurm"], "--policies acts through Slurm"),
        (["--admin-comment", "--no-slurm"], "--admin-comment acts through Slurm"),
        (["--policies", "none.toml"], "there is no file"), (["--webhooks", "none.toml"], "there is no file"),
        (["--webhooks", "policies.toml"], "there is no policy"),
    ],
)  # fmt: skip
def test_serve_refuses_at_its_start_what_it_could_not_do(tmp_path: Path, words: list[str], why: str) -> None:
    settings_file(tmp_path, action="cancel")
    words = [str(tmp_path / word) if word.endswith(".toml") else word for word in words]
    refused = CliRunner().invoke(serve_command, ["--data", str(tmp_path / "jobs"), *words])
    assert refused.exit_code == 1
    assert why in refused.output


def test_what_a_policy_would_do_can_be_seen_and_changes_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.job(7, 0.0)
    scene.job(8, 0.9, slurm={"user": "bob"})
    scene.job(9, 0.0, measured=0.1, slurm={"user": "carol"})
    scene.job(10, 0.0, slurm={"user": "vip"})
    scene.at(200)
    file = settings_file(scene.folder, exempt_users=["vip"])
    monkeypatch.setattr("time.time", lambda: scene.now)
    shown = CliRunner().invoke(policy_command, [str(file), "--data", str(scene.monitor.folder), "--json"])
    assert shown.exit_code == 0, shown.output
    rows = {row["job"]: row for row in json.loads(shown.output)}
    assert [rows[job]["act"] for job in ("7", "8", "9", "10")] == ["warn", "", "", ""]
    assert "no data" in rows["9"]["why"]
    assert "exempt" in rows["10"]["why"]
    assert len(rows["7"]["evidence"]["gpus"]) == 2
    text = CliRunner().invoke(policy_command, [str(file), "--data", str(scene.monitor.folder)])
    assert "1 of 4 would be acted on now" in text.output
    assert acts.newest(scene.monitor.jobs.reader, 10) == []
    assert scene.slurm.changes() == []


def test_acts_are_listed_with_their_evidence(scene: Scene) -> None:
    store = scene.monitor.jobs
    acts.record(store, Act(START, "p", "f", "hold", "20", user=EVIL, dry=False, evidence={"a": 1}))
    acts.record(store, Act(START + 1, "p", "f", "hold", "21", dry=False))
    acts.record(store, Act(START + 2, "p", "f", "release", "21", dry=False))
    data = ["--data", str(scene.monitor.folder)]
    listed = json.loads(CliRunner().invoke(acts_command, [*data, "--json"]).output)
    assert [(each["act"], each["job"]) for each in listed] == [
        ("release", "21"),
        ("hold", "21"),
        ("hold", "20"),
    ]
    assert listed[-1]["evidence"] == {"a": 1}
    held = CliRunner().invoke(acts_command, [*data, "--held"])
    assert "scontrol release 20" in held.output
    assert "\x1b[31m" not in held.output
