"""What is reported of a machine before measuring, and how a time budget is divided."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from peerway_measure.bench import conditions, host_state, peers, runner, runs
from peerway_measure.bench.conditions import Conditions
from peerway_measure.bench.kinds import KINDS
from peerway_measure.bench.plan import Plan
from peerway_measure.bench.request import Request
from peerway_measure.bench.results import Results
from peerway_measure.bench.time_budget import LEAST_S, START_S, TimeBudget, parse_time, spread


@pytest.mark.parametrize(
    ("state", "ranks", "words"),
    [
        pytest.param(Conditions(8), 2, [], id="idle"),
        pytest.param(Conditions(8, busy=0.2), 2, [], id="hardly busy"),
        pytest.param(Conditions(8, busy=3.14), 2, ["others use 3.1 of 8 CPUs now"], id="busy"),
        pytest.param(Conditions(1), 2, ["oversubscribed: 2 ranks share 1 CPU and"], id="oversubscribed"),
        pytest.param(Conditions(8, quota=1.5), 4, ["may use 1.5 CPUs (cgroup), fewer than 4"], id="quota"),
        pytest.param(Conditions(8, quota=4), 4, [], id="a quota that suffices"),
        pytest.param(
            Conditions(2, 2.0, 1, frozenset({"powersave"})), 4,
            ["others", "oversubscribed", "cgroup", "powersave"], id="all",
        ),
    ],
)  # fmt: skip
def test_what_disturbs_is_said(state: Conditions, ranks: int, words: list[str]) -> None:
    warnings = conditions.warnings_for(state, ranks)
    assert len(warnings) == len(words)
    for line, word in zip(warnings, words, strict=True):
        assert word in line


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        pytest.param({"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
                      "sys/fs/cgroup/a/cpu.max": "150000 100000\n"}, 1.5, id="of the group around it"),
        pytest.param({"proc/self/cgroup": "0::/../other\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"},
                     0.5, id="in a container"),
        pytest.param({"proc/self/cgroup": "5:cpu,cpuacct:/job\n",
                      "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us": "200000\n",
                      "sys/fs/cgroup/cpu/job/cpu.cfs_period_us": "100000\n"}, 2.0, id="version 1"),
        pytest.param({"proc/self/cgroup": "5:cpu,cpuacct:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                      "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n"}, None, id="no quota"),
        pytest.param({}, None, id="nothing to read"),
    ],
)  # fmt: skip
def test_the_quota_of_a_container(files: dict[str, str], quota: float | None, tmp_path: Path) -> None:
    assert conditions.read(machine(tmp_path, files)).quota == quota


def test_a_busy_process_counts_as_others(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Half of a CPU's time in the window, from the kernel's counter."""
    cpu = min(os.sched_getaffinity(0))
    tick = os.sysconf("SC_CLK_TCK")
    line = "cpu {0} 0 0 0\ncpu%d {0} 0 0 0 0 0 0 0 0 0\n" % cpu  # noqa: UP031
    root = machine(tmp_path, {"proc/stat": line.format(1000)})
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds
        machine(tmp_path, {"proc/stat": line.format(1000 + round(seconds * tick / 2))})

    monkeypatch.setattr(conditions.time, "sleep", sleep)
    monkeypatch.setattr(conditions.time, "monotonic", lambda: passed[0])
    assert conditions.read(root).busy == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("0.5s", 0.5)]
)
def test_times_are_read(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize("text", ["", "5 m", "m", "-5m", "0", "5x", "100000h"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"time|between"):
        parse_time(text)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which only the test advances."""
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "time", lambda: now[0])
    return now


def test_the_cases_divide_the_time(now: list[float]) -> None:
    """Each takes three times its sampling time, so after the first one the rest of the time is divided by
    that.
    """
    shares = []
    for _, share in TimeBudget(ends=60.0).shares(range(10), lambda _: ""):
        shares.append(share)
        now[0] += 3 * share
    assert shares[0] == pytest.approx(3.0)
    assert all(share == pytest.approx(17 / 9) for share in shares[1:])
    assert now[0] == pytest.approx(60.0)


def test_a_time_that_is_too_short_is_shared_by_the_tests(now: list[float]) -> None:
    """Each case takes a second, whatever it may sample: half of each test is measured, even of the last
    test.
    """
    jobs = [(test, number) for test in ("put_latency", "get_latency", "put_bw") for number in range(10)]
    measured = []
    for job, share in TimeBudget(ends=15.0).shares(jobs, lambda job: job[0]):
        assert share == 0 or share >= LEAST_S
        if share:
            measured.append(job)
            now[0] += 1
    assert measured == [(test, number) for test, number in jobs if number < 5]


def test_one_case_of_each_test_is_measured_whatever_the_time(now: list[float]) -> None:
    """The ranks took longer to start than the whole budget. A case covers several variants."""
    jobs = [
        (test, size, variant)
        for test in ("put_latency", "get_latency")
        for size in (8, 64, 16)
        for variant in ("memcpy", "peer/shm", "staged")
    ]
    now[0] = 20.0
    shares = dict(TimeBudget(ends=15.0).shares(jobs, lambda job: job[0], lambda job: job[:2]))
    assert shares == {job: LEAST_S if job[1] == 8 else 0 for job in jobs}


def test_any_beginning_of_the_cases_is_spread_over_all_sizes() -> None:
    """A skipped size lies between two measured ones, and both ends come first."""
    jobs = [(test, 8 << power) for test in ("put_bw", "get_bw") for power in range(24)]
    ordered = list(spread(jobs, lambda job: job[0]))
    assert [test for test, _ in ordered] == [test for test, _ in jobs]
    sizes = [size for _, size in ordered[:24]]
    assert sorted(sizes) == [size for _, size in jobs[:24]]
    assert sizes[:3] == [8, 8 << 23, 8 << 11]
    for measured, widest in ((3, 12), (5, 6), (9, 3), (17, 2)):
        powers = sorted(size.bit_length() for size in sizes[:measured])
        gaps = [after - before for before, after in pairwise(powers)]
        assert max(gaps) <= widest, (measured, powers)
    assert list(spread([], lambda job: job)) == []
    variants = [("put_bw", size, variant) for size in (8, 16, 64) for variant in ("peer/shm", "staged")]
    ordered_variants = list(spread(variants, lambda job: job[0], lambda job: job[1]))
    assert [size for _, size, _ in ordered_variants] == [8, 8, 64, 64, 16, 16]
    assert [variant for _, _, variant in ordered_variants] == 3 * ["peer/shm", "staged"]


def test_a_run_that_finds_no_time_left_is_told_and_the_first_is_made(
    now: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    starts = []

    def run_paths(plan: Plan, *_: Any) -> None:
        starts.append((plan.run, plan.ends))
        now[0] += 7  # most of it for the start of the ranks

    monkeypatch.setattr(runner, "run_paths", run_paths)
    monkeypatch.setattr(host_state, "host_state", dict)
    results = Results()
    runs.measure(Plan(2, [], ends=12.0), 4, [], results, {}, lambda *_: nullcontext(lambda *_: None))
    assert starts == [(0, 3.0), (1, pytest.approx(7 + 5 / 3))]
    assert results.notes == ["no time was left for runs 3 to 4 of 4"]


def test_the_least_time_is_that_of_all_starts_of_ranks() -> None:
    """async_pingpong starts ranks for each way of waiting, other tests once."""
    plan = Request(tests=("put_latency", "async_pingpong"), memories=[("host", "host")], sizes=[8]).plan(
        Results()
    )
    starts = len(list(runner.starts_of(plan)))
    assert starts == 1 + len(KINDS["async_pingpong"].policies)
    assert runs.needed_s(plan, 3, []) == 3 * starts * START_S
    every = peers.choose("all")  # of which those that are about GPUs alone start nothing here
    able = sum("host" in choice.peer.devices for choice in every)
    assert 0 < able < len(every)
    assert runs.needed_s(plan, 3, every) == 3 * (starts + able) * START_S
