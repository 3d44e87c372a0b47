"""Each shipped rule on a job that it must find and on one that it must not; what the language refuses."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from jobs_scene import GIB, START, Job, put

from peerway_jobs.batch import Note
from peerway_jobs.measured import SETS, SUMS
from peerway_jobs.monitor import Monitor
from peerway_jobs.rules.expression import BadExpression, Expression
from peerway_jobs.rules.functions import FUNCTIONS, TAKES_NONE
from peerway_jobs.rules.job_fields import FIELDS, job_fields
from peerway_jobs.rules.judging import judge
from peerway_jobs.rules.load import DEFAULTS, BadRules, read_rules, rules_of
from peerway_jobs.rules.template import duration, filled, hours, last_days, size, wrong
from peerway_jobs.series import Series
from peerway_jobs.serve import checks
from peerway_jobs.summary import summary
from peerway_jobs.sync import node_of
from peerway_jobs.verdicts import keep, verdict_of

if TYPE_CHECKING:
    from collections.abc import Iterator

CPU = "step_cpu_user_seconds_total"
GPU = "gpu_utilization_ratio"
MEM = "step_memory_bytes"
SHORT: dict[str, Any] = {"minutes": 1}


def good(job: int, gpus: int = 0, **changes: Any) -> Job:
    """A job in which no rule finds anything."""
    figures = {CPU: 7.6, MEM: 50 * GIB, "step_running_processes": 8, "core_iowait_seconds_total": 0.0}
    if gpus:
        figures |= {
            GPU: 0.93,
            "gpu_sm_activity_ratio": 0.6,
            "gpu_memory_used_bytes": 60 * GIB,
            "gpu_memory_total_bytes": 80 * GIB,
            "gpu_throttled_thermal_ratio": 0.0,
            "gpu_throttled_hardware_ratio": 0.0,
            "gpu_temperature_celsius": 60.0,
        }
    figures |= {
        "node_memory_total_bytes": 512e9,
        "nic_received_bytes_total": 1e6,
        "nic_sent_bytes_total": 1e6,
        "filesystem_metadata_operations_total": 3.0,
        "filesystem_data_operations_total": 300.0,
    }
    figures |= changes.pop("figures", {})
    settings: dict[str, Any] = {"node_cores": 8 if not gpus else 8 * gpus, "node_gpus": gpus * gpus and gpus}
    if gpus:
        settings |= {"cores": 8, "node_cores": 8, "memory": 64 * GIB, "node_memory": 64 * GIB}
    return Job(job, figures, gpus=gpus, **{**settings, **changes})


def until(minute: int, before: float, then: float) -> Any:
    return lambda device, now: before if now <= minute else then


# The rule, a job in which it must find something, and one in which it must not.
CASES: list[tuple[str, Job, Job]] = [
    ("gpu-idle", good(1, 2, figures={GPU: 0.0}), good(2, 2, figures={GPU: until(60, 0.0, 0.9)})),
    (
        "gpu-idle-after-activity",
        good(3, 2, figures={GPU: until(40, 0.9, 0.0)}),
        good(4, 2, figures={GPU: until(80, 0.9, 0.0)}),
    ),
    (
        "gpu-one-used",
        good(5, 4, figures={GPU: [0.9, 0.0, 0.0, 0.0]}),
        good(6, 4, figures={GPU: [0.9, 0.1, 0.2, 0.3]}),
    ),
    (  # whoever uses most of them wastes the rest
        "gpu-one-used",
        good(80, 4, figures={GPU: [0.9, 0.9, 0.9, 0.0]}),
        good(81, 4, figures={GPU: [0.9, 0.9, 0.9, 0.8]}),
    ),
    (
        "gpu-memory-only",
        good(7, 1, figures={GPU: 0.005}),
        good(8, 1, figures={GPU: 0.005, "gpu_memory_used_bytes": 1e6}),
    ),
    ("gpu-low", good(9, 1, figures={GPU: 0.1}), good(10, 1, figures={GPU: 0.3})),
    ("gpu-busy-looking", good(11, 1, figures={"gpu_sm_activity_ratio": 0.02}), good(12, 1)),
    (
        "gpu-unbalanced",
        good(13, 4, figures={GPU: [0.95, 0.3, 0.3, 0.2]}),
        good(14, 4, figures={GPU: [0.95, 0.7, 0.8, 0.6]}),
    ),
    (
        "gpu-too-big",
        good(15, 1, figures={GPU: 0.1, "gpu_memory_used_bytes": 4 * GIB}),
        good(16, 1, figures={GPU: 0.1, "gpu_memory_used_bytes": 30 * GIB}),
    ),
    ("cpu-low", good(17, figures={CPU: 3.0}), good(18, figures={CPU: 4.5})),
    ("serial", good(19, figures={CPU: 1.0}), good(20, figures={CPU: 1.0}, cores=1)),
    ("nothing-computes", good(21, figures={CPU: 0.01}), good(22, figures={CPU: 1.0})),
    (
        "oversubscribed",
        good(23, figures={"step_running_processes": 40}),
        good(24, figures={"step_running_processes": 9}),
    ),
    ("memory-over-requested", good(25, figures={MEM: 2 * GIB}), good(26, figures={MEM: 20 * GIB})),
    ("memory-near-limit", good(27, figures={MEM: 63 * GIB}), good(28, figures={MEM: 58 * GIB})),
    ("out-of-memory", good(29, slurm={"state": "OUT_OF_MEMORY"}), good(30, slurm={"state": "FAILED"})),
    (
        "time-over-requested",
        good(31, slurm={"time_limit": 86400.0}),
        good(32, slurm={"time_limit": 86400.0, "state": "FAILED"}),
    ),
    ("short-swarm", good(33, **SHORT, slurm={"user": "swarm"}), good(34, **SHORT, slurm={"user": "calm"})),
    (
        "spread",
        good(35, nodes=4, memory=40 * GIB, figures={CPU: lambda d, m: 7.0 * 60 * m if d == 0 else 0.0}),
        good(36, nodes=4, memory=250 * GIB),
    ),
    (
        "strands-gpus",
        good(37, 1, cores=64, node_cores=64, node_gpus=8),
        good(38, 1, node_cores=64, node_gpus=8, node_memory=1024 * GIB),
    ),
    (
        "io-wait",
        good(39, figures={"core_iowait_seconds_total": 0.5}),
        good(40, figures={"core_iowait_seconds_total": 0.1}),
    ),
    (  # waiting for a network file system does not count as a core's I/O wait
        "io-wait",
        good(57, figures={"step_blocked_processes": 3}),
        good(58, figures={"step_blocked_processes": 1}),
    ),
    (
        "metadata-storm",
        good(41, figures={"filesystem_metadata_operations_total": 9000.0}),
        good(
            42,
            figures={
                "filesystem_metadata_operations_total": 9000.0,
                "filesystem_data_operations_total": 8000.0,
            },
        ),
    ),
    (
        "communication-bound",
        good(43, nodes=2, figures={CPU: 2.0, "nic_sent_bytes_total": 9e9}),
        good(44, nodes=2, figures={"nic_sent_bytes_total": 9e9}),
    ),
    (
        "cpu-starved-gpu",
        good(45, 1, figures={GPU: lambda d, m: float(m // 2 % 2)}),
        good(46, 1, figures={GPU: 0.5}),
    ),
    ("throttled", good(47, 1, figures={"gpu_throttled_thermal_ratio": 0.3}), good(48, 1)),
    (
        "foreign-process",
        good(49, notes=[Note("foreign_process", (START + 60) * 1000, job=49, owner=1)]),
        good(50, notes=[Note("foreign_process", (START + 60) * 1000, job=1, owner=50)]),
    ),
    (
        "leftover-processes",
        good(51, notes=[Note("leftover", (START + 9000) * 1000, job=51, pids=[5])]),
        good(52),
    ),
    ("wrong-node-type", good(53, node_gpus=4), good(54)),
    ("no-data", good(55, measured=0.2), good(56, measured=0.7)),
]


@pytest.fixture(scope="module")
def monitor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitor]:
    monitor = Monitor(tmp_path_factory.mktemp("jobs"))
    put(monitor, *[job for _, one, other in CASES for job in (one, other)])
    swarm = [good(1000 + n, **SHORT, slurm={"user": "swarm"}) for n in range(220)]
    monitor.jobs.update(job.run() for job in swarm)
    yield monitor
    monitor.close()


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "jobs" / "rules.md").read_text()


def rows_of(title: str) -> dict[str, tuple[str, ...]]:
    """The rows of the tables in a section of the page on rules: first cell, without quotes -> other cells."""
    section = PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines()
             if line.startswith("| ")]  # fmt: skip
    return {first.strip("`"): tuple(others) for first, *others in cells}


def test_the_page_on_rules_has_each_set_with_its_unit_and_meaning() -> None:
    page = rows_of("The sets")
    for name, metric in SETS.items():
        if name.startswith("fabric."):
            continue  # the page says that they are those of nic
        meaning = " + ".join(f"`{part}`" for part in SUMS[name]) if name in SUMS else metric.help
        unit = f"{metric.unit} per second" if metric.type == "counter" else metric.unit
        assert page.pop(name, None) == (unit, meaning), f"| `{name}` | {unit} | {meaning} |"
    assert page.keys() == {"set", "---"}


def test_the_page_on_rules_has_each_field_function_and_default_rule() -> None:
    page = rows_of("The language")
    fields = {name: meaning for name, (meaning, *_) in page.items() if name.startswith("job.")}
    assert fields == FIELDS
    assert {name for name in FUNCTIONS if not re.search(rf"`{name}[`(]", PAGE)} == set()
    rules = rows_of("The default rules").keys() - {"rule", "---"}
    assert rules == {rule.name for rule in read_rules().rules}


def test_every_rule_has_a_case() -> None:
    assert {name for name, _, _ in CASES} == {rule.name for rule in read_rules().rules}


@pytest.mark.parametrize(("name", "first", "other"), CASES, ids=[case[0] for case in CASES])
def test_a_rule_speaks_where_it_should_and_nowhere_else(
    monitor: Monitor, name: str, first: Job, other: Job
) -> None:
    for job, expected in ((first, True), (other, False)):
        run = monitor.jobs.run(str(job.job))
        assert run is not None
        verdict = monitor.judge(run)
        assert not verdict.broken
        assert name not in verdict.undecided
        found = {finding.rule: finding for finding in verdict.findings}
        assert (name in found) is expected, (verdict.state, list(found))
        if expected:
            finding = found[name]
            for text in (*finding.conclusion.values(), *finding.advice.values()):
                assert "{" not in text
                assert not re.search(r"\b1\s(GPUs|cores|nodes|ядер|ядрах)\b", text)
            assert "no data" not in finding.conclusion["en"] or name == "no-data"
            assert finding.rule_hash


@pytest.mark.parametrize(
    ("gpus", "figures", "cores", "state"),
    [
        (
            0,
            {CPU: 0.23, "step_running_processes": 1},
            1,
            "unremarkable",
        ),  # one core that idles 77 % of its time
        (0, {CPU: 0.6, "step_running_processes": 1}, 1, "efficient"),
        (1, {GPU: 0.3}, 8, "unremarkable"),
        (1, {GPU: 0.6, CPU: 0.1}, 8, "efficient"),  # its cores only feed the GPU
    ],
)
def test_a_job_is_called_efficient_only_where_its_figures_show_it(
    tmp_path: Path, gpus: int, figures: dict[str, Any], cores: int, state: str
) -> None:
    monitor = Monitor(tmp_path)
    put(monitor, good(1, gpus, figures=figures, cores=cores))
    run = monitor.jobs.run("1")
    assert run is not None
    keep(monitor.jobs, run, monitor.judge(run), START + 9000)
    run = monitor.jobs.run("1")
    assert run is not None
    assert run.verdict == state
    for language in ("en", "ru"):
        text = summary(run, verdict_of(monitor.jobs, run), START + 9000, language)
        said = {"en": "No rule found anything to improve.", "ru": "По правилам улучшать нечего."}[language]
        assert (said in text) == (state == "efficient")
    monitor.close()


def test_lines_for_the_script_hold_no_words_of_a_language() -> None:
    for rule in read_rules().rules:
        assert "#" not in rule.script.removeprefix("#SBATCH"), rule.name


def test_a_rule_needs_its_texts_in_english_alone(tmp_path: Path) -> None:
    rule = """[[rule]]
name = "any"
applies = "True"
parameters = {{ share = 0.125 }}
condition = "True"
{}"""
    monitor = Monitor(tmp_path)
    put(monitor, good(1))
    run = monitor.jobs.run("1")
    assert run is not None
    texts = 'tag.en = "any"\nconclusion.en = "It is {share:percent}."\nadvice.en = "Do."\n'
    (finding,) = monitor.judge(run, rules_of(rule.format(texts))).findings
    assert finding.conclusion == {"en": "It is 12\u00a0%.", "ru": "It is 12\u00a0%."}
    assert (finding.tag["ru"], finding.advice["ru"]) == ("any", "Do.")
    (finding,) = monitor.judge(run, rules_of(rule.format(texts + 'advice.ru = "Да."\n'))).findings
    assert (finding.tag["ru"], finding.advice["ru"]) == ("any", "Да.")
    for bad, why in (
        (texts.replace("tag.en", "tag.ru"), "tag has no text in en"),
        (f"{texts}advice.ru = 1", "advice.ru must be a string"),
        (f'{texts}advice.de = "Tu."', "not de"),
    ):
        with pytest.raises(BadRules, match=why):
            rules_of(rule.format(bad))
    monitor.close()


def test_reading_what_the_rules_need_at_once_changes_no_verdict(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [str(job.job) for _, one, other in CASES for job in (one, other)]
    runs = [run for job in jobs if (run := monitor.jobs.run(job))]
    every = [monitor.measured(run) for run in runs]
    verdicts = [judge(monitor.rules, each, job_fields(each, monitor.jobs)) for each in every]
    assert [monitor.judge(run) for run in runs] == verdicts
    read_node, nodes = monitor.samples.read_node, []
    monkeypatch.setattr(type(monitor.samples), "reads_together", True)
    monkeypatch.setattr(
        monitor.samples, "read_node", lambda node, *times: nodes.append(node) or read_node(node, *times)
    )
    assert [monitor.judge(run) for run in runs] == verdicts
    assert len(nodes) == len({*nodes}) > len(CASES)  # each node once


def test_a_set_that_nobody_named_is_read_when_it_is_used(monitor: Monitor) -> None:
    run = monitor.jobs.run("48")
    assert run is not None
    every, some = monitor.measured(run), monitor.measured(run, ["step.cpu"])
    for name in ("step.cpu", "step.memory", "gpu.utilization", "step.cpu_user"):
        here, there = some[name], every[name]
        assert (here is None) == (there is None)
        for one, other in zip(here or (), there or (), strict=True):
            np.testing.assert_array_equal(one.values, other.values)


def test_a_good_job_is_efficient_and_one_without_data_never_is(monitor: Monitor) -> None:
    run, dark = monitor.jobs.run("48"), monitor.jobs.run("55")
    assert run is not None
    assert dark is not None
    assert monitor.judge(run).state == "efficient"
    assert monitor.judge(dark).state == "no data"


@pytest.mark.parametrize("kind", ["foreign_process", "leftover"])
def test_processes_where_they_should_not_be_are_counted_each_once(tmp_path: Path, kind: str) -> None:
    at, gpus = (START + 9000) * 1000, ("GPU-a", "GPU-b")
    # Agents note processes one by one, and again for each GPU that they use.
    notes = [Note(kind, at, job=1, gpu=gpu, pids=[pid]) for pid in (7, 8, 9) for gpu in gpus]
    monitor = Monitor(tmp_path)
    job = good(1, nodes=2, minutes=200, notes=[*notes, Note(kind, at, job=2, pids=[10])])
    put(monitor, job)
    run = monitor.jobs.run("1")
    assert run is not None
    (finding,) = [
        each for each in monitor.judge(run).findings if each.rule.startswith(kind.partition("_")[0])
    ]
    assert finding.figures["processes"] == 6  # three on each of its nodes
    monitor.close()


def test_a_node_without_a_step_is_one_on_which_nothing_computes(monitor: Monitor) -> None:
    """A script without srun uses only the first of its nodes; the others do not even have a step."""
    job = good(64, nodes=4, memory=4 * 250 * GIB, stepless=3)
    put(monitor, job)
    run = monitor.jobs.run("64")
    assert run is not None
    (spread,) = [each for each in monitor.judge(run).findings if each.rule == "spread"]
    assert spread.figures["idle_nodes"] == 3
    assert spread.figures["hours"] == pytest.approx(3 * 8 * 2)
    assert "4 nodes; 1 would be enough. Nodes on which nothing computed: 3" in spread.conclusion["en"]
    spent = monitor.judge(run).hours
    assert spent.cpu_coverage > 0.95
    assert spent.idle_core_hours == pytest.approx(2 * (4 * 8 - 7.6), rel=0.02)


def test_the_nodes_that_a_job_needs_are_those_that_computed_where_its_memory_is_unknown(
    monitor: Monitor,
) -> None:
    put(monitor, good(166, nodes=4, memory=0, stepless=3))
    run = monitor.jobs.run("166")
    assert run is not None
    (spread,) = [each for each in monitor.judge(run).findings if each.rule == "spread"]
    assert "over 4 nodes; 1 would be enough" in spread.conclusion["en"]
    assert "--nodes=1." in spread.advice["en"]


def test_a_node_whose_agent_was_dead_is_not_one_on_which_nothing_computes(monitor: Monitor) -> None:
    job = good(65, nodes=2, memory=2 * 250 * GIB, stepless=1)
    job.figures = {name: figure for name, figure in job.figures.items() if not name.startswith("node_")}
    put(monitor, job)
    run = monitor.jobs.run("65")
    assert run is not None
    assert "spread" not in {each.rule for each in monitor.judge(run).findings}
    assert monitor.judge(run).hours.cpu_coverage < 0.55


def test_an_allocation_without_any_step_computes_nothing(monitor: Monitor) -> None:
    """As salloc leaves an allocation while nobody types."""
    put(monitor, good(66, stepless=1))
    run = monitor.jobs.run("66")
    assert run is not None
    verdict = monitor.judge(run)
    assert "nothing-computes" in {each.rule for each in verdict.findings}
    assert verdict.hours.cpu_efficiency == 0


@pytest.mark.parametrize(("iowait", "blocked"), [(0.9, 0.0), (0.0, 4.0)])
def test_cores_that_slurm_did_not_bind_a_job_to_say_nothing_of_it(
    monitor: Monitor, iowait: float, blocked: float
) -> None:
    """Others compute or wait there; the job's own processes show what it does."""
    figures = {"core_iowait_seconds_total": iowait, "step_blocked_processes": blocked}
    put(monitor, good(68, figures=figures, slurm={"cores": 4}))  # its processes may run on 8
    run = monitor.jobs.run("68")
    assert run is not None
    assert ("io-wait" in {each.rule for each in monitor.judge(run).findings}) == (blocked > 0)


def suspended(worked: float, stopped: float) -> Any:
    """A counter of a job of two hours that is suspended from minute 40 to minute 80."""
    return lambda _, now: (
        60 * (worked * (min(now, 40) + max(0, now - 80)) + stopped * (min(max(now - 40, 0), 40)))
    )


@pytest.mark.parametrize("by_slurm", [True, False], ids=["by Slurm", "by its user"])
def test_time_in_which_slurm_suspended_a_job_is_not_charged(monitor: Monitor, by_slurm: bool) -> None:
    figures = {
        CPU: suspended(7.6, 0.0),
        GPU: lambda _, now: 0.0 if 40 < now <= 80 else 0.93,
        "step_suspended_ratio": lambda _, now: float(40 < now < 80),
        "core_iowait_seconds_total": suspended(0.0, 0.9),  # meanwhile another job has the cores
    }
    number = 170 + by_slurm
    put(monitor, good(number, 1, figures=figures, slurm={"suspended": 2400.0 * by_slurm}))
    run = monitor.jobs.run(str(number))
    assert run is not None
    verdict = monitor.judge(run)
    spent = verdict.hours
    if by_slurm:
        assert verdict.state == "efficient", verdict.findings
        assert run.elapsed(0) == 80 * 60
        assert spent.core_hours == pytest.approx(8 * 80 / 60)
        assert spent.gpu_hours == pytest.approx(80 / 60)
        assert spent.idle_gpu_hours == 0
        assert spent.cpu_efficiency == pytest.approx(0.95, abs=0.01)
        assert spent.gpu_efficiency == pytest.approx(0.93, abs=0.01)
        assert spent.cpu_coverage > 0.9
    else:  # it holds cores that it does not use
        assert verdict.state == "inefficient"
        assert spent.idle_gpu_hours == pytest.approx(40 / 60, abs=0.05)
        assert spent.cpu_efficiency == pytest.approx(0.95 * 2 / 3, abs=0.02)


@pytest.mark.parametrize(
    ("figures", "slurm", "share"),
    [
        ({MEM: 0.4 * GIB, "step_memory_peak_bytes": 63 * GIB}, {}, 1.0),  # the limit was reached
        ({MEM: 0.4 * GIB, "step_memory_limit_bytes": 16 * GIB}, {}, 0.25),  # the limit of its step
        ({MEM: None}, {}, 1.0),
        ({MEM: 0.4 * GIB}, {"state": "COMPLETED", "max_rss": 32.0 * GIB}, 0.5),
        ({MEM: 0.4 * GIB}, {"state": "COMPLETED"}, 0.00625),
    ],
)
def test_a_job_that_was_killed_for_its_memory_had_much_of_it(
    tmp_path: Path, figures: dict[str, Any], slurm: dict[str, Any], share: float
) -> None:
    monitor = Monitor(tmp_path)
    slurm = {"state": "OUT_OF_MEMORY", **slurm}
    job = good(1, slurm=slurm, figures={name: value for name, value in figures.items() if value})
    if figures[MEM] is None:
        job.figures = {name: value for name, value in job.figures.items() if name != MEM}
    put(monitor, job)
    run = monitor.jobs.run("1")
    assert run is not None
    assert monitor.judge(run).hours.memory_efficiency == pytest.approx(share)
    monitor.close()


def jumps(rate: float) -> Any:
    """A counter that jumps to a garbage value at minute 60."""
    return lambda _, now: rate * 60 * now + (1e12 if now >= 60 else 0)


def test_no_figure_is_larger_than_its_node(monitor: Monitor) -> None:
    figures = {
        CPU: jumps(7.6),
        MEM: lambda _, now: 50 * GIB if now != 60 else 3000 * GIB,
        "core_iowait_seconds_total": jumps(0.1),
    }
    put(monitor, good(180, figures=figures))
    run = monitor.jobs.run("180")
    assert run is not None
    verdict = monitor.judge(run)
    assert verdict.state == "efficient", verdict.findings
    assert verdict.hours.cpu_efficiency == pytest.approx(0.95, abs=0.01)
    assert verdict.hours.memory_efficiency == pytest.approx(50 / 64)
    assert verdict.hours.cpu_coverage > 0.9


def test_a_node_is_as_large_as_slurm_says(tmp_path: Path) -> None:
    """The kernel counts hardware threads, Slurm what it allocates: here 32 cores, of which the job has
    one.
    """
    monitor = Monitor(tmp_path)
    job = good(63, 1, cores=1, node_cores=2, node_gpus=8, memory=8 * GIB, node_memory=16 * GIB)
    put(monitor, job)
    run = monitor.jobs.run("63")
    assert run is not None
    assert "strands-gpus" in {each.rule for each in monitor.judge(run).findings}
    slurm = {"name": job.node(0), "cpus": 32, "real_memory": 512 << 10, "gres": "gpu:h100:8", "state": "IDLE"}
    node = node_of(slurm)
    monitor.jobs.write("INSERT INTO cluster VALUES (1, ?, ?)", (START, json.dumps({"nodes": [node]})))
    assert "strands-gpus" not in {each.rule for each in monitor.judge(run).findings}
    monitor.close()


def test_nodes_that_slurm_took_back_count_as_long_as_the_run_had_them(monitor: Monitor) -> None:
    """Two hours on one node of 8 cores and one hour on another; half of the cores compute."""
    put(monitor, Job(7064, {"step_cpu_user_seconds_total": 4.0}, nodes=2, memory=32 * GIB))
    jobs = monitor.jobs
    jobs.write("UPDATE intervals SET end = ? WHERE node = 'n7064-1'", ((START + 3600) * 1000,))
    jobs.write(
        "UPDATE jobs SET nodes = 1, cores = 8, memory = ?, node_list = 'n7064-0', former_nodes = 'n7064-1' "
        "WHERE job = '7064'",
        (16 * GIB,),
    )
    run = jobs.run("7064")
    assert run is not None
    spent = monitor.judge(run).hours
    assert spent.core_hours == pytest.approx(24)
    assert spent.cpu_efficiency == pytest.approx(0.5, abs=0.01)
    assert spent.idle_core_hours == pytest.approx(12, abs=0.3)
    assert spent.cpu_coverage == pytest.approx(1, abs=0.05)


def test_a_rule_says_no_data_where_its_metric_was_not_collected(monitor: Monitor) -> None:
    job = good(60, 1)
    job.figures = {key: value for key, value in job.figures.items() if key != "gpu_sm_activity_ratio"}
    put(monitor, job)
    run = monitor.jobs.run("60")
    assert run is not None
    assert "gpu-busy-looking" in monitor.judge(run).undecided


def test_gpus_that_nobody_measured_are_not_ones_that_were_never_used(monitor: Monitor) -> None:
    """One that its agent could not read, and those of a node without an agent."""

    def without(missing: int, rest: float) -> Any:
        return lambda device, minute: {0: 0.9, missing: None}.get(device, rest)

    def of_two_nodes(job: int) -> dict[str, Any]:  # the second of which has no agent
        return {"nodes": 2, "gpus": 8, "cores": 16, "node_list": f"n{job}-0,n{job}-1"}

    jobs = [
        good(82, 4, figures={GPU: without(3, 0.9)}),
        good(83, 4, slurm=of_two_nodes(83)),
        good(84, 4, figures={GPU: without(3, 0.0)}),
        good(85, 4, slurm=of_two_nodes(85), figures={GPU: without(4, 0.0)}),
    ]
    put(monitor, *jobs)
    found = []
    for job in jobs:
        run = monitor.jobs.run(str(job.job))
        assert run is not None
        found.append([each for each in monitor.judge(run).findings if each.rule == "gpu-one-used"])
    assert found[:2] == [[], []]
    (unread,), (without_agent,) = found[2:]
    # Asking for fewer GPUs keeps those of which nothing is known.
    assert unread.conclusion["en"] == "2 of 4\u00a0GPUs never computed: 4 GPU-hours."
    assert unread.conclusion["ru"] == "Из 4 GPU ни разу не использовано 2: 4 GPU-часов."
    assert unread.script == "#SBATCH --gpus=2"
    assert without_agent.conclusion["en"] == "3 of 8\u00a0GPUs never computed: 6 GPU-hours."
    assert without_agent.script == "#SBATCH --gpus=5"


def test_a_job_is_not_told_to_ask_for_the_gpus_that_it_has(monitor: Monitor) -> None:
    """One GPU of two nodes with four each is idle; four per node is what the job has already."""
    put(monitor, good(86, 4, nodes=2, figures={GPU: [0.9] * 7 + [0.0]}))
    run = monitor.jobs.run("86")
    assert run is not None
    (found,) = [each for each in monitor.judge(run).findings if each.rule == "gpu-one-used"]
    assert found.script == "#SBATCH --gpus=7"
    assert "--gpus=7 " in found.advice["en"]
    assert found.frees_gpu_hours == pytest.approx(2)


def test_idle_gpus_are_those_that_were_measured(monitor: Monitor) -> None:
    """Nothing is known of GPUs on a node without an agent, or of one that its agent could not read."""

    def without_last(device: int, minute: int) -> float | None:
        return None if device == 3 else 0.0

    whole, without_agent, unread = (
        good(87, 4, figures={GPU: 0.0}),
        good(88, 4, figures={GPU: 0.0}, slurm={"nodes": 2, "gpus": 8, "node_list": "n88-0,n88-1"}),
        good(89, 4, figures={GPU: without_last}),
    )
    put(monitor, whole, without_agent, unread)
    for job, held, idle in ((whole, 4, 8), (without_agent, 4, 8), (unread, 3, 6)):
        run = monitor.jobs.run(str(job.job))
        assert run is not None
        (found,) = [each for each in monitor.judge(run).findings if each.rule == "gpu-idle"]
        assert found.conclusion["en"] == (
            f"The job held {held}\u00a0GPUs on which nothing computed from its start on: "
            f"{idle} idle GPU-hours."
        )
        assert found.frees_gpu_hours == pytest.approx(idle)


@pytest.mark.parametrize(
    ("rule", "figures"),
    [
        ("gpu-low", {GPU: 0.05}),
        ("gpu-busy-looking", {"gpu_sm_activity_ratio": 0.02}),
        ("gpu-unbalanced", {GPU: [0.95, 0.3, 0.3, 0.2]}),
    ],
)
def test_what_a_job_could_free_is_of_the_gpus_that_were_measured(
    tmp_path: Path, rule: str, figures: dict[str, Any]
) -> None:
    monitor = Monitor(tmp_path)
    put(
        monitor,
        good(1, 4, figures=figures),
        good(2, 4, figures=figures, slurm={"nodes": 2, "gpus": 8, "node_list": "n2-0,n2-1"}),
    )
    freed = []
    for job in ("1", "2"):
        run = monitor.jobs.run(job)
        assert run is not None
        freed += [each.frees_gpu_hours for each in monitor.judge(run).findings if each.rule == rule]
    assert len(freed) == 2
    assert freed[0] == pytest.approx(freed[1])
    monitor.close()


def test_what_a_neighbour_does_with_the_network_is_charged_to_nobody(monitor: Monitor) -> None:
    job = good(61, figures={"filesystem_metadata_operations_total": 9000.0})
    put(monitor, job)
    neighbour = good(62)
    neighbour.node = lambda number: "n61-0"  # type: ignore[method-assign]
    put(monitor, neighbour)
    run = monitor.jobs.run("61")
    assert run is not None
    verdict = monitor.judge(run)
    assert "metadata-storm" in verdict.undecided


@pytest.mark.parametrize(
    ("text", "names", "value"),
    [
        ("1 + 2 * 3", {}, 7),
        ("a / b", {"a": 1, "b": 0}, None),
        ("a > 1 and b", {"a": 0, "b": None}, False),
        ("a > 1 and b", {"a": 2, "b": None}, None),
        ("a > 1 or b", {"a": 2, "b": None}, True),
        ("not a", {"a": None}, None),
        ("known(a, 3)", {"a": None}, 3),
        ("x in ('p', 'q')", {"x": "q"}, True),
        ("1 if job.gpus == 0 else a", {"job.gpus": 0, "a": None}, 1),
        ("-a < 0", {"a": math.nan}, None),
    ],
)
def test_values_of_expressions(text: str, names: dict[str, Any], value: object) -> None:
    assert Expression(text, FUNCTIONS, TAKES_NONE).value(names) == value


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("__import__('os')", 1),
        ("a.b.c", 1),
        ("().__class__", 1),
        ("[x for x in y]", 1),
        ("a ** 9", 1),
        ("f'{a}'", 1),
        ("1 + lambda: 0", 5),
        ("a[0]", 1),
        ("mean(*a)", 1),
        ("a := 1", None),
        ("1 +", None),
        ("(" * 300, None),
        ("x" * 3000, 1),
        ("a and b.c.d", 7),
        ("'a'.upper()", 1),
        ("open('f')", 1),
        ("None", 1),
    ],
)
def test_nothing_else_is_in_the_language(text: str, column: int | None) -> None:
    with pytest.raises(BadExpression) as told:
        Expression(text, FUNCTIONS, TAKES_NONE)
    assert column is None or told.value.column == column


RULE = """
[[rule]]
name = "one"
tag = { en = "a", ru = "б" }
applies = "True"
values.used = "total(mean(step.cpu))"
condition = "CONDITION"
conclusion = { en = "TEXT", ru = "х" }
advice = { en = "x", ru = "х" }
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("low", "min_over_time"),
        ("amount", "integral"),
        ("smaller", "min"),
        ("larger", "max"),
        ("size", "abs"),
    ],
)
def test_a_function_that_was_renamed_works_by_its_old_name_with_a_note(
    tmp_path: Path, old: str, new: str
) -> None:
    text = f"""[[rule]]
name = "any"
tag.en = "x"
conclusion.en = "x"
advice.en = "x"
applies = "True"
condition = "{CALLS[new].format(old)} > 1"
"""
    rules, renamed = rules_of(text), rules_of(text.replace(old, new))
    note = f"rule any, condition: {old} is now {new}; the old name works for one release"
    assert (rules.notes, renamed.notes) == ((note,), ())
    names = {"job.cores": -4.0, "step.cpu": (Series(0, 2, 1, np.array([1.0, 2.0]), np.array([3.0, 5.0])),)}
    values = [each.rules[0].condition.value(names) for each in (rules, renamed)]
    assert values[0] is not None
    assert values[0] == values[1]
    (tmp_path / "rules.toml").write_text(text)
    finding = checks.rules(tmp_path / "rules.toml")
    assert (finding.state, finding.observed) == ("warning", note)


CALLS = {
    "min_over_time": "total({}(step.cpu))",
    "integral": "total({}(step.cpu))",
    "min": "{}(job.cores, 2)",
    "max": "{}(job.cores, 2)",
    "abs": "{}(job.cores)",
}


FAULTS = {
    'values.Used = "1"': "values: a figure's name has only a-z, 0-9 and _, unlike 'Used'",
    "parameters.used = 1": "values: used is a parameter already: give the figure another name",
    'frees.node_hours = "1"': "frees: there is no node_hours; there are gpu_hours and core_hours",
    "parameters = 3": "parameters must be a table, not 3",
    "severity = 3": "the severity is one of none, note, warning, serious, not 3",
    'for = [{ partition = "debug", lower = 1 }]': "for: there is no parameter lower; there are efficient, ",
    "for = [{ low = 1 }]": "[[for]] must name the jobs by partition, node_type, gpu_type",
}


@pytest.mark.parametrize("line", FAULTS)
def test_an_error_says_what_was_written_and_what_may_be(line: str) -> None:
    text = RULE.replace("CONDITION", "used > 1").replace("TEXT", "x")
    with pytest.raises(BadRules, match=f"rule one: {re.escape(FAULTS[line])}"):
        rules_of(f"{text}{line}\n")


def test_what_is_wrong_with_a_rule_that_has_no_name_is_told_with_its_line() -> None:
    text = RULE.replace("CONDITION", "used > 1").replace("TEXT", "x")
    lines = text.count("\n")
    with pytest.raises(BadRules, match=f"^line {lines + 2}, rule \\?: name = 7; a rule's name has "):
        rules_of(f"{text}\n[[rule]]\nname = 7\n")


@pytest.mark.parametrize(
    ("count", "english", "russian"),
    [
        (1, "last day", "последний день"), (2, "last 2\u00a0days", "последние 2\u00a0дня"),
        (7, "last 7\u00a0days", "последние 7\u00a0дней"), (11, "last 11\u00a0days", "последние 11\u00a0дней"),
    ],
)  # fmt: skip
def test_the_last_days_are_counted_as_the_language_does(count: int, english: str, russian: str) -> None:
    assert (last_days(count, "en"), last_days(count, "ru")) == (english, russian)


@pytest.mark.parametrize(
    ("condition", "text", "message"),
    [
        (
            "used < joob.cores",
            "x",
            "line 7, column 21, rule one: condition: there is no joob.cores; did you mean job.cores?",
        ),
        ("used <", "x", "line 7, column"),
        ("used < 1", "{usd:hours}", "line 8, rule one: conclusion.en: there is no figure usd"),
        ("used < 1", "{used:furlongs}", "there is no format furlongs"),
        ("used < 1", "{used!r}", "a place is {name} or {name:format}"),
    ],
)
def test_an_error_says_where(condition: str, text: str, message: str) -> None:
    with pytest.raises(BadRules) as error:
        rules_of(RULE.replace("CONDITION", condition).replace("TEXT", text))
    assert message in str(error.value)


def test_a_changed_file_of_rules_is_taken_and_a_broken_one_is_not(monitor: Monitor) -> None:
    before = monitor.rules.hash
    monitor.rules_file.write_text(RULE.replace("CONDITION", "used < 1").replace("TEXT", "{used:figure}"))
    assert monitor.reload()
    assert [rule.name for rule in monitor.rules.rules] == ["one"]
    monitor.rules_file.write_text("[[rule]]\nname = 7")
    assert not monitor.reload()
    assert "line 1" in monitor.rules_error
    assert [rule.name for rule in monitor.rules.rules] == ["one"]
    assert monitor.jobs.reader.execute("SELECT count(*) FROM rulesets").fetchone()[0] == 2
    monitor.rules, monitor.rules_error = read_rules(), ""
    assert monitor.rules.hash == before


def test_parameters_of_a_partition() -> None:
    text = RULE.replace("CONDITION", "used < least").replace("TEXT", "x") + "parameters = { least = 1 }\n"
    rules = rules_of(text + '[[rule.for]]\npartition = "debug"\nleast = 5\n').rules
    assert rules[0].parameters_of({"job.partition": "debug"}) == DEFAULTS | {"least": 5}
    assert rules[0].parameters_of({"job.partition": "gpu"}) == DEFAULTS | {"least": 1}


@pytest.mark.parametrize(
    ("text", "language", "written"),
    [
        ("{a:percent}", "en", "12\u00a0%"),
        ("{a:percent}", "ru", "12\u00a0%"),
        ("{b:bytes}", "en", "1.5\u00a0GiB"),
        ("{b:bytes}", "ru", "1,5\u00a0ГиБ"),
        ("{c:duration}", "en", "1\u00a0d 1\u00a0h"),
        ("{d:number}", "ru", "нет данных"),
        ("{one:gpus}, {one:cores}", "en", "1\u00a0GPU, 1\u00a0core"),
        ("{one:nodes}, {four:nodes}", "en", "1\u00a0node, 4\u00a0nodes"),
        ("{one:nodes}, {four:nodes}, {eleven:nodes}", "ru", "1\u00a0узел, 4\u00a0узла, 11\u00a0узлов"),
        ("{four:gpus}, {four:cores}", "en", "4\u00a0GPUs, 4\u00a0cores"),
        ("{one:gpus}, {one:cores}, {four:cores}", "ru", "1\u00a0GPU, 1\u00a0ядро, 4\u00a0ядра"),
        ("{eleven:cores}, {many:cores}, {none:cores}", "ru", "11\u00a0ядер, 121\u00a0ядро, 0\u00a0ядер"),
    ],
)
def test_texts_are_filled(text: str, language: str, written: str) -> None:
    figures = {"a": 0.123, "b": 1.5 * GIB, "c": 90_000.0, "d": None}
    figures |= {"none": 0, "one": 1, "four": 4, "eleven": 11, "many": 121}
    assert wrong(text, figures) is None
    assert filled(text, figures, language) == written
    assert duration(59, "en") == "59\u00a0s"
    assert size(0, "en") == "0\u00a0B"


@pytest.mark.parametrize(
    ("defaults", "idle_hours"), [("", 1), ('idle_window = "40m"', 0), ("idle = 0.95", 2)]
)
def test_the_rules_say_what_idle_hours_are(tmp_path: Path, defaults: str, idle_hours: float) -> None:
    monitor = Monitor(tmp_path, clock=lambda: START + 90_000.0)
    put(monitor, Job(1, {GPU: lambda _, minute: 0.0 if minute % 60 < 30 else 0.9}, gpus=1, node_gpus=4))
    run = monitor.jobs.run("1")
    assert run is not None
    spent = monitor.judge(run, rules_of(f"[defaults]\n{defaults}")).hours
    assert spent.idle_gpu_hours == pytest.approx(idle_hours, abs=0.1)
    monitor.close()


RULE_ALONE = """
[[rule]]
name = "cpu-low"
tag = { en = "low CPU use" }
severity = "warning"
applies = "job.gpus == 0 and job.cores > 1"
values.used = "total(mean(step.cpu))"
values.share = "used / job.cores"
condition = "share < 0.5"
conclusion.en = "It kept {used:figure} cores busy ({share:percent})."
advice.en = "Ask for fewer cores."
"""


def test_a_file_needs_no_defaults(monitor: Monitor) -> None:
    """A rule that names no parameter of them, and one that does."""
    put(monitor, good(61, 0, figures={CPU: 0.1}))
    run = monitor.jobs.run("61")
    assert run is not None
    for text in (RULE_ALONE, RULE_ALONE.replace("job.cores > 1", "job.elapsed >= least_elapsed")):
        verdict = monitor.judge(run, rules_of(text))
        assert (verdict.state, [each.rule for each in verdict.findings]) == ("inefficient", ["cpu-low"])


def test_what_idle_is_must_be_a_figure() -> None:
    with pytest.raises(BadRules, match="line 2: defaults: idle_window must be a number or a duration, not "):
        rules_of('[defaults]\nidle_window = "long"')
    for text in ("1.5", "-1"):
        with pytest.raises(BadRules, match=f"line 2: defaults: idle = {text}; it may be from 0 to below 1"):
            rules_of(f"[defaults]\nidle = {text}")
    with pytest.raises(BadRules, match="line 2: defaults: idle must be a number or a duration, not True"):
        rules_of("[defaults]\nidle = true")


@pytest.mark.parametrize("text", ["30min", "10 m", "2 hours", "39GB", "39 GiB", "100MB", "1K", "5sec"])
def test_a_quantity_with_a_wrong_unit_is_refused(text: str) -> None:
    rule = RULE.replace("CONDITION", "used < least").replace("TEXT", "x")
    with pytest.raises(
        BadRules, match=rf"line 10, rule one: parameters: least = '{text}' is no duration or size"
    ):
        rules_of(f'{rule}parameters = {{ least = "{text}" }}\n')


def test_a_text_that_is_no_quantity_stays_one() -> None:
    rule = RULE.replace("CONDITION", "job.partition == which").replace("TEXT", "x")
    for text in ("2080ti", "1g.10gb", "gpu", "24 nodes"):
        assert rules_of(f'{rule}parameters = {{ which = "{text}" }}\n').rules[0].parameters["which"] == text


@pytest.mark.parametrize(
    ("value", "english", "russian"),
    [
        (0, "0", "0"),
        (0.001, "<\u00a00.01", "<\u00a00,01"),
        (0.014, "0.01", "0,01"),
        (0.06, "0.1", "0,1"),
        (1234.56, "1,234.6", "1\u00a0234,6"),
    ],
)
def test_hours_are_never_nothing_where_there_were_some(value: float, english: str, russian: str) -> None:
    assert (hours(value, "en"), hours(value, "ru")) == (english, russian)
