"""What notices freed: users before and after, less what changed among users without any."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from peerway_common.cli import command as peerway
from peerway_measure.worth.assumptions import parse
from peerway_measure.worth.notices import User, effect

HEAD = (
    "user,group,notice,days_before,days_after,gpu_hours_before,idle_gpu_hours_before,core_hours_before,"
    "idle_core_hours_before,gpu_hours_after,idle_gpu_hours_after,core_hours_after,idle_core_hours_after"
)
ROW = "ann,notified,2026-03-01,30,30,100,40,0,0,100,10,0,0"


def users(number: int, group: str, before: float, after: float, spread: float = 0.0) -> list[User]:
    """Users with 100 hours in 30 days on each side, and these idle shares."""
    random = np.random.default_rng(number)
    return [
        User(f"{group}{i}", group, 30, 100, 100 * before, 100, 100 * (after + spread * random.normal()))
        for i in range(number)
    ]  # type: ignore[misc]


YEAR_OF_ONE = 100 / 30 * 365.25


@pytest.mark.parametrize(
    ("several", "assumed", "freed"),
    [
        (users(10, "notified", 0.4, 0.1) + users(10, "control", 0.2, 0.2), (), 10 * 0.3 * YEAR_OF_ONE),
        (users(10, "notified", 0.4, 0.1) + users(10, "control", 0.2, 0.1), (), 10 * 0.2 * YEAR_OF_ONE),
        (
            users(10, "notified", 0.4, 0.1) + users(10, "control", 0.2, 0.1),
            ("control=ignored",),
            10 * 0.3 * YEAR_OF_ONE,
        ),
        (
            users(10, "notified", 0.4, 0.1) + users(10, "control", 0.2, 0.1),
            ("used=50%",),
            10 * 0.1 * YEAR_OF_ONE,
        ),
        (users(10, "notified", 0.1, 0.3) + users(10, "control", 0.2, 0.2), (), -10 * 0.2 * YEAR_OF_ONE),
    ],
)
def test_what_notices_freed(several: list[User], assumed: tuple[str, ...], freed: float) -> None:
    seen = effect(several, parse(assumed))
    assert seen.freed == pytest.approx(freed)
    assert seen.interval is not None
    assert seen.interval == pytest.approx((freed, freed))  # all users are alike


def test_the_interval_is_that_of_a_bootstrap_over_users() -> None:
    seen = effect(users(40, "notified", 0.4, 0.2, 0.1) + users(40, "control", 0.3, 0.3, 0.05), parse(()))
    assert seen.interval is not None
    width = 1.96 * 40 * YEAR_OF_ONE * ((0.1**2 + 0.05**2) / 40) ** 0.5
    assert (seen.interval[1] - seen.interval[0]) / 2 == pytest.approx(width, rel=0.3)


@pytest.mark.parametrize(
    ("several", "assumed", "problem", "note"),
    [
        ([], (), "no user has hours both before and after", ""),
        (users(9, "notified", 0.4, 0.1), (), "no user without a notice has hours on both sides", ""),
        (
            users(9, "notified", 0.4, 0.1) + users(4, "control", 0, 0),
            (),
            "",
            "4 users of a group are too few",
        ),
        (users(4, "notified", 0.4, 0.1), ("control=ignored",), "", "4 users of a group are too few"),
    ],
)
def test_what_cannot_be_known_is_unknown(
    several: list[User], assumed: tuple[str, ...], problem: str, note: str
) -> None:
    seen = effect(several, parse(assumed))
    assert problem in seen.problem
    assert note in seen.note
    assert (seen.freed is None) == bool(problem)
    assert seen.interval is None


def test_users_without_hours_on_a_side_are_left_out_and_counted() -> None:
    gone = User("gone", "notified", 30, 100, 40, 0, 0)
    seen = effect([*users(9, "notified", 0.4, 0.1), gone], parse(("control=ignored",)))
    assert (seen.users, seen.omitted) == (9, 1)


def invoke(folder: Path, *lines: str, words: tuple[str, ...] = ()) -> tuple[int, str]:
    path = folder / "notices.csv"
    path.write_text("\n".join((HEAD, *lines)) + "\n")
    done = CliRunner().invoke(peerway, ["worth", "--notices", str(path), *words])
    return done.exit_code, done.output


def test_the_command_says_what_was_freed_and_what_it_assumed(tmp_path: Path) -> None:
    lines = [
        f"{group}{i},{group},,30,30,100,{idle},0,0,100,10,0,0"
        for group, idle in (("notified", 40), ("control", 10))
        for i in range(6)
    ]
    code, text = invoke(tmp_path, *lines)
    assert code == 0, text
    assert "6 users with a notice: 40 % of their GPU-hours were idle before it, 10 % after it." in text
    assert "6 users without a notice: their idle share fell by 0 points meanwhile." in text
    assert "Freed a year, of 7,305 GPU-hours: 2,190 [2,190, 2,190]." in text
    assert "control=subtracted" in text
    assert "sizes=" not in text
    _, text = invoke(tmp_path, *lines, words=("--json",))
    assert json.loads(text)["notices"]["freed"] == pytest.approx(2191.5)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (ROW.replace("notified", "told"), "group is 'told', but must be notified or control"),
        (
            ROW.replace(",100,40,", ",100,140,"),
            "140 idle of 100 gpu-hours before the notice; idle hours are a part of",
        ),
        (ROW.replace(",30,30,", ",30,0,"), "days_after is 0, but there are 100 gpu-hours after it"),
        (f"{ROW}\n{ROW}", ":3: the user ann stands in an earlier line, too"),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(tmp_path: Path, line: str, message: str) -> None:
    code, text = invoke(tmp_path, line)
    assert code == 2
    assert message in text
