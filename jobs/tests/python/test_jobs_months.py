"""The sums of each month: the same as those of all jobs, and right again after history has changed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from peerway_jobs.serve.people import Viewer
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.lists import SUMMED, SumOrder, sums
from peerway_jobs.store.months import growth, month_of, months, sum_months, sums_of_months
from peerway_jobs.store.runs import Run

ALL = ("TRUE", [])


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


NOW = at("2026-04-20")


def run(job: int, user: str, ended: str, hours: float = 1, **changes: object) -> Run:
    end = at(ended)
    values = {"account": "phys", "cores": 16.0, "gpus": 0.0, "state": "COMPLETED", **changes}
    return Run(str(job), user=user, started=end - hours * 3600, ended=end, **values)  # type: ignore[arg-type]


RUNS = [
    run(1, "ann", "2026-01-31T23:59:59"),
    run(2, "ann", "2026-02-01T00:00:00", 2),
    run(3, "bob", "2026-02-10", 3, account="chem", gpus=4.0),
    run(4, "ann", "2026-04-01", 5, project="p1", partition="gpu", gpus=1.0),
    run(5, "cem", "2026-04-02", 7, cores=64.0),
]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[JobStore]:
    made = JobStore(tmp_path / "jobs.db")
    made.update(RUNS)
    yield made
    made.close()


def test_users_of_each_month_and_those_who_are_new(store: JobStore) -> None:
    assert sum_months(store, NOW) == 3  # nobody computed in March
    rows = growth(store.reader, ALL, month_of(at("2026-01-01")))
    assert [(each.users, each.new_users, each.jobs) for each in rows] == [
        (1, 1, 1), (2, 1, 2), (0, 0, 0), (2, 1, 2),
    ]  # fmt: skip
    assert [each.gpu_hours for each in rows] == [0, 12, 0, 5]
    # ann is not new in February, although January is not shown
    assert [each.new_users for each in growth(store.reader, ALL, month_of(at("2026-02-01")))] == [1, 0, 1]
    assert growth(store.reader, ALL, month_of(at("2027-01-01"))) == []


@pytest.mark.parametrize("by", SUMMED)
@pytest.mark.parametrize("order", ["wasted", "used"])
def test_the_sums_of_months_are_those_of_their_jobs(store: JobStore, by: str, order: SumOrder) -> None:
    store.write(
        "UPDATE jobs SET verdict = 'inefficient', tag = 'idle', "
        "idle_core_hours = CAST(job AS REAL), freed_gpu_hours = 2"
    )
    sum_months(store, NOW)
    first = month_of(at("2026-02-01"))
    for seen in (ALL, Viewer("bob").clause(), Viewer("bob", accounts=frozenset(["phys"])).clause()):
        whole = {row["name"]: row for row in sums(store.reader, seen, by, first, order=order)}
        several = sums_of_months(store.reader, seen, by, first, 100, order)
        assert {row["name"]: pytest.approx(row) for row in several} == whole
        used = [row["gpu_hours"] * 16 + row["core_hours"] for row in several]
        assert order == "wasted" or used == sorted(used, reverse=True)


def test_the_largest_users_come_first(store: JobStore) -> None:
    assert [row["name"] for row in sums(store.reader, ALL, "user", 0, order="used")] == ["cem", "bob", "ann"]
    assert [row["name"] for row in sums(store.reader, ALL, "user", 0, 1, order="used")] == ["cem"]


def test_a_month_is_summed_again_when_its_jobs_have_changed(store: JobStore) -> None:
    sum_months(store, NOW)
    assert sum_months(store, NOW) == 1  # the present month
    store.update([run(9, "dan", "2026-01-15"), run(8, "dan", "2025-11-15")])  # imported history
    assert sum_months(store, NOW, past=False) == 1
    assert sum_months(store, NOW) == 3
    assert [each.users for each in growth(store.reader, ALL, 0)] == [1, 0, 2, 2, 0, 2]
    store.write("DELETE FROM jobs WHERE job = '9'")
    assert sum_months(store, NOW) == 2
    assert growth(store.reader, ALL, 0)[2].users == 1


def test_a_month_that_has_just_ended_is_still_summed_again(store: JobStore) -> None:
    sum_months(store, at("2026-05-03"))
    store.write("UPDATE jobs SET idle_core_hours = 40 WHERE job = '4'")  # judged after the end of the month
    sum_months(store, at("2026-05-03"))
    (row,) = sums_of_months(
        store.reader, Viewer("ann").clause(), "user", month_of(at("2026-04-01")), 9, "used"
    )
    assert row["idle_core_hours"] == 40


def test_runs_that_run_or_are_not_confirmed_count_nowhere(store: JobStore) -> None:
    store.update([Run("20", user="eve", started=NOW - 3600)])
    store.write("UPDATE jobs SET provisional = TRUE WHERE job = '5'")
    sum_months(store, NOW)
    assert sum(each.jobs for each in growth(store.reader, ALL, 0)) == 4


@pytest.mark.sqlite
def test_damaged_rows_neither_stop_the_sums_nor_count(store: JobStore) -> None:
    store.write("UPDATE jobs SET user = x'00', cores = 'x' WHERE job = '1'")
    store.write("UPDATE jobs SET started = 'x' WHERE job = '2'")
    sum_months(store, NOW)
    assert [each.jobs for each in growth(store.reader, ALL, 0)] == [1, 1, 0, 2]
    store.write("UPDATE months SET jobs = 'x' WHERE user = 'bob'")
    assert [each.jobs for each in growth(store.reader, ALL, 0)] == [1, 0, 0, 2]
    assert sum_months(store, NOW) == 2  # the month with the damaged row, and the present one
    assert [each.jobs for each in growth(store.reader, ALL, 0)] == [1, 1, 0, 2]


def test_it_stops_between_two_months(store: JobStore) -> None:
    assert sum_months(store, NOW, lambda: True) == 0
    assert growth(store.reader, ALL, 0) == []
    assert [*months(month_of(at("2026-11-30")), month_of(at("2027-02-01")))] == [
        int(at(f"{month}-01")) for month in ("2026-11", "2026-12", "2027-01", "2027-02")
    ]
