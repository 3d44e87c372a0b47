"""Allocated hours for `peerway worth`: by application and node type, and before and after notices."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from peerway_common.cli import command as peerway
from peerway_jobs.monitor import Monitor
from peerway_jobs.store.runs import Run, put_run
from peerway_jobs.usage import around_notices, usage, usage_csv

DAY, HOUR = 86_400.0, 3600.0
TODAY = time.time() // DAY * DAY
BEGIN = TODAY - 100 * DAY


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    opened = Monitor(tmp_path / "jobs")
    yield opened
    opened.close()


def add(monitor: Monitor, number: int, start: float, hours: float | None, **more: object) -> None:
    """A job that began `start` hours after BEGIN. `idle`: idle GPU-hours of its verdict."""
    ended = None if hours is None else BEGIN + (start + hours) * HOUR
    slurm = {
        "user": "ann",
        "account": "phys",
        "name": "heat",
        "node_type": "a100",
        "gpus": 4.0,
        "cores": 32.0,
    }
    run = Run(str(number), started=BEGIN + start * HOUR, ended=ended,
              **{k: v for k, v in {**slurm, **more}.items() if k not in ("idle", "verdict")})  # type: ignore[arg-type]  # fmt: skip
    base = monitor.jobs.writer
    put_run(base, run)
    base.execute("UPDATE jobs SET verdict = ?, idle_gpu_hours = ? WHERE job = ?",
                 (more.get("verdict", "efficient"), more.get("idle", 0.0), str(number)))  # fmt: skip


def summed(monitor: Monitor, days: int = 100, *patterns: tuple[str, str]) -> dict[str, tuple[int, float]]:
    """Jobs and GPU-hours by application of the first days."""
    hours, _ = usage(monitor.jobs.reader, BEGIN, BEGIN + days * DAY, patterns)
    return {names[0]: (each.jobs, pytest.approx(each.gpu_hours)) for names, each in hours.items()}


def test_hours_count_for_the_time_in_which_a_job_had_them(monitor: Monitor) -> None:
    add(monitor, 1, 0, 10)
    add(monitor, 2, 20, 10, suspended=5 * HOUR)  # which is not allocated
    add(monitor, 3, -10, 20)  # half of it before the time
    add(monitor, 4, 14, 20)  # half of it after the first day
    add(monitor, 5, 23, None)  # still runs
    assert summed(monitor, 1) == {"heat": (5, 4 * (10 + 2 + 10 + 10 + 1))}
    assert summed(monitor, 2) == {"heat": (5, 4 * (10 + 5 + 10 + 20 + 25))}


def test_jobs_are_of_the_first_application_whose_pattern_fits(monitor: Monitor) -> None:
    for number, name in enumerate(("lqcd-a", "lqcd-b", "heat", "other")):
        add(monitor, number + 1, 0, 1, name=name)
    patterns = (("qcd", "lqcd-a"), ("lqcd", "lqcd*"), ("heat", "h?at"))
    assert summed(monitor, 100, *patterns) == {"qcd": (1, 4), "lqcd": (1, 4), "heat": (1, 4), "": (1, 4)}
    assert summed(monitor).keys() == {"lqcd-a", "lqcd-b", "heat", "other"}


def test_a_damaged_row_is_left_out_and_counted(monitor: Monitor) -> None:
    add(monitor, 1, 0, 1)
    add(monitor, 2, 0, 1)
    monitor.jobs.writer.execute("UPDATE jobs SET gpus = 'four' WHERE job = '2'")
    hours, damaged = usage(monitor.jobs.reader, BEGIN, TODAY, ())
    assert (len(hours), sum(each.jobs for each in hours.values()), damaged) == (1, 1, 1)


def test_a_name_cannot_be_a_formula_of_a_spreadsheet(monitor: Monitor) -> None:
    add(monitor, 1, 0, 1, name="=1+1\x1b", account='a,"b"')
    hours, _ = usage(monitor.jobs.reader, BEGIN, TODAY, ())
    assert "'=1+1" in usage_csv(hours, BEGIN, TODAY)
    assert "\x1b" not in usage_csv(hours, BEGIN, TODAY)


def notice(monitor: Monitor, user: str, day: float, body: str = "text") -> None:
    monitor.jobs.write("INSERT INTO notices VALUES (?, ?, ?)", (user, BEGIN + day * DAY, body))


def test_users_before_and_after_their_first_notice(monitor: Monitor) -> None:
    add(monitor, 1, 0, 10, idle=20.0, verdict="inefficient")  # long before
    add(monitor, 2, 25 * 24, 10, idle=20.0, verdict="inefficient")
    add(monitor, 3, 39 * 24, 48, idle=9.0)  # it runs when the notice comes: neither
    add(monitor, 4, 45 * 24, 20, idle=4.0)
    add(monitor, 5, 46 * 24, 20, verdict="no data")
    add(monitor, 6, 90 * 24, 10)  # long after
    add(monitor, 7, 45 * 24, 5, user="bob", idle=1.0)
    add(monitor, 8, 45 * 24, 5, user="eve")
    add(monitor, 9, 30 * 24, 5, user="dan")
    notice(monitor, "ann", 40)
    notice(monitor, "ann", 60)
    notice(monitor, "dan", 20, "refused: no such user")
    notice(monitor, "eve", 99.9)  # too late to tell
    now = BEGIN + 100 * DAY
    ann, bob, dan = around_notices(monitor.jobs.reader, 30 * DAY, now)
    assert (ann.user, bob.user, dan.user) == ("ann", "bob", "dan")
    assert (ann.notice, bob.notice, dan.notice) == (BEGIN + 40 * DAY, None, None)
    figures = {name: value for name, value in ann.hours.items() if "gpu" in name}
    assert figures == {"gpu_hours_before": 40, "idle_gpu_hours_before": 20, "gpu_hours_after": 80,
                       "idle_gpu_hours_after": 4}  # fmt: skip
    assert (ann.days_before, ann.days_after) == (30, 30)
    assert (bob.hours["gpu_hours_before"], bob.hours["gpu_hours_after"]) == (0, 20)
    (soon, *_) = around_notices(monitor.jobs.reader, 30 * DAY, BEGIN + 50 * DAY)
    assert soon.days_after == 10


def invoke(*words: object) -> tuple[int, str, str]:
    done = CliRunner().invoke(peerway, [str(word) for word in words])
    return done.exit_code, done.stdout, done.stderr


def test_peerway_worth_reads_both_files(monitor: Monitor, tmp_path: Path) -> None:
    for i in range(6):
        for side in (0, 40):
            add(monitor, 10 * i + side // 40 + 1, (10 + side) * 24, 10, user=f"u{i}", idle=20.0 - side / 4)
            add(monitor, 10 * i + side // 40 + 3, (10 + side) * 24, 10, user=f"v{i}", idle=10.0)
        notice(monitor, f"u{i}", 30)
    (data, out, stated) = monitor.folder, tmp_path / "usage.csv", tmp_path / "stated.csv"
    code, _, said = invoke("jobs", "usage", "--data", data, "--since", "365d", "-o", out)
    assert code == 0, said
    first = time.strftime("%Y-%m-%d", time.gmtime(BEGIN + 10 * DAY))
    assert f"the first job here began on {first}; the hours are since then" in said
    stated.write_text("application,node_type,less_time\nheat,a100,10\n")
    code, text, said = invoke("worth", "--usage", out, "--stated", stated)
    assert code == 0, said
    assert f"{24 * 40 * 365.25 / 90:,.0f}" in text
    code, _, said = invoke("jobs", "usage", "--data", data, "--notices", "-o", out)
    assert code == 0, said
    code, text, said = invoke("worth", "--notices", out)
    assert code == 0, said
    assert "6 users with a notice: 50 % of their GPU-hours were idle before it, 25 % after it." in text
    assert "6 users without a notice: their idle share fell by 0 points meanwhile." in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--application", "lqcd"), "'lqcd' has no name or no pattern; write NAME=PATTERN"),
        (("--notices", "--application", "a=b"), "--application is not for --notices"),
        (("--window", "30d"), "--window needs --notices"),
        (("--since", "12h"), "--since and --window are at least one day"),
        (("--since", "30d"), "no job ran in the 30 days up to last midnight; name a longer --since"),
        (("--notices",), "no notice was sent a day ago or earlier, so there is nothing to compare"),
    ],
)
def test_what_cannot_be_written_is_said(monitor: Monitor, words: tuple[str, ...], message: str) -> None:
    code, _, said = invoke("jobs", "usage", "--data", monitor.folder, *words)
    assert code != 0
    assert message in " ".join(said.split())
