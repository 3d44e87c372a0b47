"""What notices to users freed: their idle share after a notice, compared with that before it and with how it
changed among users without any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.csv_file import MOST_HOURS, BadFile, Column, day, number, optional, rows, text
from peerway_measure.worth.usage import RESOURCES, YEAR_DAYS

WRITER = "`peerway jobs usage --notices -o FILE`"
LEAST_USERS = 5  # of a group, for an interval
_RESAMPLES = 10_000
_SEED = 20261128
_HOURS = Column(number(0, MOST_HOURS))
_GROUPS = ("notified", "control")


def _group(cell: str) -> str:
    if cell.strip() not in _GROUPS:
        raise ValueError(" or ".join(_GROUPS))
    return cell.strip()


_COLUMNS = {
    "user": Column(text), "group": Column(_group), "notice": Column(optional(day), necessary=False),
    "days_before": Column(number(0, 3660)), "days_after": Column(number(0, 3660)),
    **{f"{idle}{resource}_hours_{side}": _HOURS
       for side in ("before", "after") for resource in RESOURCES for idle in ("", "idle_")},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class User:
    """The hours of one person before and after a notice, and how many of them were idle."""

    name: str
    group: Literal["notified", "control"]
    days_after: float
    before: float
    idle_before: float
    after: float
    idle_after: float


@dataclass(frozen=True, slots=True)
class Effect:
    """What notices freed. `hours` are those a year that the notified users have after their notices. Shares
    are of allocated hours. `control` is None without users in that group. `freed` is None where it is
    unknown, as `problem` says.
    """

    users: int
    controls: int
    omitted: int
    hours: float = 0.0
    before: float | None = None
    after: float | None = None
    control: float | None = None
    freed: float | None = None
    interval: tuple[float, float] | None = None
    problem: str = ""
    note: str = ""


def read(path: Path, resource: str) -> list[User]:
    """The users in a file. Raises BadFile and OSError."""
    users: dict[str, User] = {}
    for line, row in rows(path, _COLUMNS, WRITER):
        where = f"{path}:{line}"
        sides: list[float] = []
        for side in ("before", "after"):
            allocated, idle = (row[f"{part}{resource}_hours_{side}"] for part in ("", "idle_"))
            if idle > allocated * (1 + 1e-6):
                raise BadFile(
                    f"{where}: {idle:g} idle of {allocated:g} {resource}-hours {side} the notice; idle hours "
                    "are a part of the allocated ones"
                )
            sides += [allocated, idle]
        name, days = row["user"], row["days_after"]
        if name in users:
            raise BadFile(f"{where}: the user {name} stands in an earlier line, too; give each user once")
        if sides[2] and not days:
            raise BadFile(f"{where}: days_after is 0, but there are {sides[2]:g} {resource}-hours after it")
        users[name] = User(name, row["group"], days, *sides)
    return list(users.values())


def effect(users: Sequence[User], assumed: Assumptions) -> Effect:
    """Compare before and after. Users without hours on one of the two sides cannot be compared."""
    compared = [user for user in users if user.before and user.after]
    notified, control = ([u for u in compared if u.group == group] for group in _GROUPS)
    subtracted = assumed.control == "subtracted"
    omitted = len(users) - len(compared)
    known = Effect(len(notified), len(control), omitted)
    if not notified:
        return replace(known, problem="no user has hours both before and after a notice")
    hours = np.array([u.after / u.days_after * YEAR_DAYS for u in notified])
    fell = np.array([u.idle_before / u.before - u.idle_after / u.after for u in notified])
    of_control = np.array([[u.before, u.idle_before, u.after, u.idle_after] for u in control])
    change = float(_fell(of_control, np.arange(len(control)))) if control else None
    known = replace(
        known, hours=float(hours.sum()), control=change,
        before=sum(u.idle_before for u in notified) / sum(u.before for u in notified),
        after=sum(u.idle_after for u in notified) / sum(u.after for u in notified),
    )  # fmt: skip
    if subtracted and change is None:
        return replace(
            known,
            problem="no user without a notice has hours on both sides to compare with; add such users, or "
            "switch with --assume control=ignored",
        )
    used = assumed.used / 100
    freed = used * float((hours * (fell - (change if subtracted and change is not None else 0.0))).sum())
    few = min(len(notified), len(control) if subtracted else LEAST_USERS)
    if few < LEAST_USERS:
        note = f"{few} users of a group are too few, {LEAST_USERS} are needed"
        return replace(known, freed=freed, note=note)
    low, high = _interval(hours, fell, of_control if subtracted else None)
    return replace(known, freed=freed, interval=(low * used, high * used))


def _fell(control: NDArray[Any], chosen: NDArray[Any]) -> NDArray[Any]:
    """By how much the idle share of the chosen users of the control fell; the last axis has users."""
    before, idle_before, after, idle_after = (control[chosen, i].sum(axis=-1) for i in range(4))
    return np.asarray(idle_before / before - idle_after / after)


def _interval(hours: NDArray[Any], fell: NDArray[Any], control: NDArray[Any] | None) -> tuple[float, float]:
    """The 95 % interval: a bootstrap that draws users of each group anew."""
    from scipy import stats

    def freed(notified: NDArray[Any], chosen: NDArray[Any] | None = None, *, axis: int = -1) -> NDArray[Any]:
        change = 0.0 if control is None or chosen is None else _fell(control, chosen.astype(int))[..., None]
        at = notified.astype(int)
        return np.asarray((hours[at] * (fell[at] - change)).sum(axis=axis))

    groups = [np.arange(len(hours)), *([np.arange(len(control))] if control is not None else [])]
    bounds = stats.bootstrap(
        groups, freed, n_resamples=_RESAMPLES, vectorized=True, method="percentile",
        rng=np.random.default_rng(_SEED), batch=1000,
    ).confidence_interval  # fmt: skip
    return float(bounds.low), float(bounds.high)
