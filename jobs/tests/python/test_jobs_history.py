"""The import of past jobs: sacct's text and JSON, totals of Jobstats, and exporters in a real Prometheus."""

from __future__ import annotations

import base64
import gzip
import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from jobs_scene import GIB, START
from test_jobs_store import free_port

from peerway_jobs.cli.history import command
from peerway_jobs.history import sacct
from peerway_jobs.history.exporters import NodeHistory, gpus_of, steps_of
from peerway_jobs.history.importing import Imported, import_past, judge_all
from peerway_jobs.history.jobstats import BadJobstats, totals_of
from peerway_jobs.history.prometheus import Prometheus, PrometheusFailed
from peerway_jobs.history.sacct import BadSacct
from peerway_jobs.lock_file import locked
from peerway_jobs.monitor import Monitor
from peerway_jobs.replay import replayed
from peerway_jobs.rules.load import read_rules
from peerway_jobs.store.runs import Run

HOUR = 3600
COLUMNS = (
    "JobIDRaw|JobID|User|Account|JobName|Partition|QOS|WCKey|State|ExitCode|Submit|Start|End|Suspended|"
    "TimelimitRaw|NNodes|NodeList|AllocTRES|TotalCPU|MaxRSS|AdminComment"
)
LINE = (
    "{job}|{job}|alice|phys|train|gpu|normal|*wc|COMPLETED|0:0|{submit}|{start}|{end}|00:00:00|240|1|g1|"
    "billing=8,cpu=8,gres/gpu:h100=2,gres/gpu=2,mem=64G,node=1|02:00:00||{comment}"
)
JS1 = {
    "nodes": {
        "g1": {
            "total_memory": 64 * GIB, "used_memory": 16 * GIB, "total_time": 8 * 2 * HOUR * 0.5, "cpus": 8,
            "gpu_total_memory": {"0": 80 * GIB, "3": 80 * GIB}, "gpu_used_memory": {"0": 40 * GIB, "3": GIB},
            "gpu_utilization": {"0": 90.0, "3": 0},
        }
    },
    "total_time": 2 * HOUR, "gpus": 2,
}  # fmt: skip


def js1(content: Any) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps(content).encode(), mtime=0)).decode()


def line(job: int = 7, start: float = START, hours: float = 2, comment: str = "", **changes: str) -> str:
    text = LINE.format(
        job=job, submit=int(start) - 60, start=int(start), end=int(start + hours * HOUR), comment=comment
    )
    columns = COLUMNS.split("|")
    values = text.split("|")
    for name, value in changes.items():
        values[columns.index(name)] = value
    return "|".join(values)


def text(*lines: str) -> str:
    return "\n".join([COLUMNS, *lines]) + "\n"


@pytest.fixture
def monitor(tmp_path: Path) -> Iterator[Monitor]:
    made = Monitor(tmp_path / "jobs", clock=lambda: START + 100 * 86_400.0)
    yield made
    made.close()


def imported(monitor: Monitor, content: str) -> Imported:
    outcome = import_past(monitor, sacct.read(content))
    judge_all(monitor, outcome.runs)
    return outcome


# -- sacct


def test_a_job_of_sacct_has_all_that_slurm_knows(monitor: Monitor) -> None:
    steps = line(MaxRSS="1024K", JobIDRaw="7.batch", User=""), line(MaxRSS="2048K", JobIDRaw="7.0", User="")
    outcome = imported(monitor, text(line(State="CANCELLED by 1000", ExitCode="1:15"), *steps))
    assert (len(outcome.runs), outcome.unreadable) == (1, [])
    run = monitor.jobs.run("7")
    assert run is not None
    assert (run.user, run.account, run.name, run.partition, run.project) == (
        "alice",
        "phys",
        "train",
        "gpu",
        "wc",
    )
    assert (run.state, run.exit_code, run.signal, run.time_limit) == ("CANCELLED", 1, 15, 240 * 60)
    assert (run.started, run.ended) == (START, START + 2 * HOUR)
    assert (run.nodes, run.cores, run.gpus, run.gpu_type, run.memory) == (1, 8, 2, "h100", 64 * GIB)
    assert (run.node_list, run.max_rss) == ("g1", 2048 * 1024)


def test_times_may_be_dates_and_a_name_may_hold_the_separator() -> None:
    begun = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(START))
    ended = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(START + HOUR))
    past = sacct.read(text(line(Start=begun, End=ended, JobName="a|b|c")))
    (job,) = past.jobs
    assert (job.run.started, job.run.ended, job.run.name) == (START, START + HOUR, "a|b|c")


@pytest.mark.parametrize(
    ("total", "seconds"),
    [("02:00:00", 7200), ("1-02:03:04", 93_784), ("03:04.500", 184.5), ("00:00:00", 0), ("", None)],
)
def test_durations_of_sacct(total: str, seconds: float | None) -> None:
    assert sacct.read(text(line(TotalCPU=total))).jobs[0].cpu_seconds == seconds


def test_without_jobstats_a_job_on_one_node_has_the_cpu_time_of_sacct(monitor: Monitor) -> None:
    one, two = line(7, TotalCPU="08:00:00"), line(8, NNodes="2", NodeList="g[1-2]", TotalCPU="08:00:00")
    assert imported(monitor, text(one, two)).with_cpu_time == 1
    first, second = monitor.jobs.run("7"), monitor.jobs.run("8")
    assert first and second  # noqa: PT018
    assert first.cpu_efficiency == pytest.approx(0.5)  # 8 of 16 core-hours
    assert second.cpu_efficiency is None
    assert second.verdict == "no data"


def test_jobs_that_run_and_lines_that_cannot_be_read_are_left_out_and_counted() -> None:
    past = sacct.read(text(
        line(1, State="RUNNING", End="Unknown"),
        line(2, State="PENDING", Start="Unknown", End="Unknown"),
        line(3, Start="yesterday"), "4|short", line(5, JobIDRaw="five"), line(6, TotalCPU="long"),
        line(7), "",
        line(8, State="CANCELLED", Start="None", End=str(START)),
    ))  # fmt: skip
    assert [job.run.job for job in past.jobs] == ["7"]
    assert past.unfinished == 3
    assert [why.partition(":")[0] for why in past.unreadable] == ["line 4", "line 5", "line 6", "line 7"]
    assert "'yesterday' is no time" in past.unreadable[0]


@pytest.mark.parametrize(
    ("content", "why"),
    [("", "empty"), ("JobID|State\n1|x\n", "JobIDRaw"), ("{", "no JSON"), ('{"jobs": 1}', "no list of jobs")],
)
def test_what_is_no_output_of_sacct_is_refused(content: str, why: str) -> None:
    with pytest.raises(BadSacct, match=why):
        sacct.read(content)


def test_an_import_changes_no_job_that_is_known_and_may_be_repeated(monitor: Monitor) -> None:
    known = Run("7", 0, "bob", started=START + 3.0, ended=START + 99.0, state="COMPLETED")
    monitor.jobs.update([known])
    for count, known_count in ((1, 1), (0, 2)):
        outcome = imported(monitor, text(line(7), line(8)))
        assert (len(outcome.runs), outcome.known) == (count, known_count)
    kept = monitor.jobs.run("7")
    assert kept is not None
    assert kept.user == "bob"


def test_a_requeued_job_has_several_runs_in_their_order(monitor: Monitor) -> None:
    later = line(7, START + 3 * HOUR)
    imported(monitor, text(later, line(7, State="REQUEUED", hours=1)))
    assert monitor.jobs.restarts("7") == [0, 1]
    runs = [monitor.jobs.run("7", restart) for restart in (0, 1)]
    assert [run.started for run in runs if run] == [START, START + 3 * HOUR]


def test_sacct_as_json_is_the_same(monitor: Monitor) -> None:
    entry = {
        "job_id": 7, "user": "alice", "account": "phys", "name": "train", "partition": "gpu", "qos": "normal",
        "state": {"current": "COMPLETED", "reason": "None"}, "nodes": "g1", "allocation_nodes": 1,
        "exit_code": {"return_code": 0, "status": "SUCCESS"}, "wckey": {"wckey": "*wc"}, "steps": [],
        "time": {"submission": START - 60, "start": START, "end": START + 2 * HOUR, "suspended": 0,
                 "limit": {"set": True, "number": 240}, "total": {"seconds": 7200, "microseconds": 0}},
        "tres": {"allocated": [
            {"type": "cpu", "name": None, "count": 8}, {"type": "mem", "name": None, "count": 65_536},
            {"type": "gres", "name": "gpu", "count": 2}, {"type": "gres", "name": "gpu:h100", "count": 2},
        ]},
        "array": {"job_id": 0, "task_id": None}, "comment": {"administrator": js1(JS1), "job": None},
    }  # fmt: skip
    (of_json,) = sacct.read(json.dumps({"jobs": [entry, {"job_id": None}]})).jobs
    (of_text,) = sacct.read(text(line(comment=js1(JS1)))).jobs
    of_text.run.reason = of_json.run.reason
    assert of_json == of_text


# -- Jobstats


def test_totals_of_jobstats_become_measurements_and_findings(monitor: Monitor) -> None:
    outcome = imported(monitor, text(line(comment=js1(JS1))))
    assert (outcome.with_totals, outcome.with_cpu_time) == (1, 0)
    run = monitor.jobs.run("7")
    assert run is not None
    assert run.cpu_efficiency == pytest.approx(0.5)
    assert run.gpu_efficiency == pytest.approx(0.45)
    assert run.memory_efficiency == pytest.approx(0.25)
    assert run.idle_gpu_hours == pytest.approx(2, rel=0.01)
    assert run.verdict == "inefficient"
    comparison = replayed(monitor, read_rules(), START, 10)
    assert comparison["judged"] == 1
    assert comparison["findings"]["gpu-one-used"] == [1, 1]


def test_measurements_of_totals_survive_sealing_and_thinning(monitor: Monitor) -> None:
    outcome = imported(monitor, text(line(comment=js1(JS1))))
    before = monitor.jobs.run("7")
    monitor.tidy()
    judge_all(monitor, outcome.runs)
    after = monitor.jobs.run("7")
    assert before and after  # noqa: PT018
    assert after.gpu_efficiency == pytest.approx(before.gpu_efficiency)
    assert after.idle_gpu_hours == pytest.approx(before.idle_gpu_hours, rel=0.05)


def bomb() -> str:
    return "JS1:" + base64.b64encode(gzip.compress(b" " * (64 << 20), mtime=0)).decode()


@pytest.mark.parametrize(
    ("comment", "why"),
    [
        ("JS1:!!!", "base64"), ("JS1:AAAA", "header"), (js1({"nodes": 7}), "names no nodes"),
        (js1([]), "no nodes"),
        (js1({"nodes": {"g1": 7}}), "no object"), (js1({"nodes": {"g1": {"total_time": "x"}}}), "no figure"),
        (js1({"nodes": {"g1": {"gpu_utilization": [1]}}}), "no object"), (js1(JS1)[:-8], "cut off"),
        (bomb(), "more than"),
        (js1({"nodes": {"g1": {"used_memory": -1}}}), "no figure"),
    ],
)  # fmt: skip
def test_damaged_totals_are_named_and_the_job_is_imported(monitor: Monitor, comment: str, why: str) -> None:
    with pytest.raises(BadJobstats, match=why):
        totals_of(comment)
    outcome = imported(monitor, text(line(comment=comment)))
    assert len(outcome.runs) == 1
    assert outcome.unreadable[0].startswith("job 7: its totals of Jobstats")


@pytest.mark.parametrize("comment", ["JS1:Short", "JS1:None", "", "see ticket 12"])
def test_a_comment_without_totals_is_none_of_jobstats(comment: str) -> None:
    assert totals_of(comment) == {}


def test_totals_of_nodes_that_slurm_did_not_give_the_job_do_not_count(monitor: Monitor) -> None:
    elsewhere = {"nodes": {"other": JS1["nodes"]["g1"], "../g1": JS1["nodes"]["g1"]}}  # type: ignore[index]
    imported(monitor, text(line(comment=js1(elsewhere))))
    run = monitor.jobs.run("7")
    assert run is not None
    assert run.verdict == "no data"


# -- Prometheus

NOW = int(time.time()) // 60 * 60
BEGUN = NOW - 6 * HOUR
STEP = 60
Value = Callable[[int], float]  # of the seconds since BEGUN


def exported(minutes: int = 240) -> str:
    """What four hours of exporters leave in a Prometheus, in the format of promtool."""
    series: list[tuple[str, str, Value]] = []

    def add(name: str, labels: str, value: Value) -> None:
        series.append((name, labels, value))

    for node, jobs in (("g1", (7,)), ("g2", (8, 9)), ("g3", ())):
        at = f'instance="{node}.cluster:9100"'
        for mode, rate in (("user", 3.0), ("system", 0.5), ("idle", 60.0)):
            add("node_cpu_seconds_total", f'{at},mode="{mode}"', lambda s, r=rate: r * s)  # type: ignore[misc]
        add("node_memory_MemTotal_bytes", at, lambda _: 256 * GIB)
        add("node_memory_MemAvailable_bytes", at, lambda _: 224 * GIB)
        for job in jobs:
            cgroup = f'instance="{node}:9306",jobid="{job}",step="",task=""'
            add("cgroup_cpu_total_seconds", cgroup, lambda s, j=job: (j - 6) * s)  # type: ignore[misc]
            add("cgroup_memory_rss_bytes", cgroup, lambda _: 8 * GIB)
            add("cgroup_memory_rss_bytes", cgroup.replace('step=""', 'step="0"'), lambda _: GIB)
        for gpu in range(2):
            job_label = f',hpc_job="{8 + gpu}"' if node == "g2" else ""
            of = f'Hostname="{node}",UUID="GPU-{node}-{gpu}",gpu="{gpu}"{job_label}'
            add("DCGM_FI_DEV_GPU_UTIL", of, lambda _, g=gpu: 80.0 * g)  # type: ignore[misc]
            add("DCGM_FI_DEV_FB_USED", of, lambda _: 1024.0)
            add("DCGM_FI_DEV_FB_FREE", of, lambda _: 3072.0)
            add("DCGM_FI_DEV_GPU_TEMP", of, lambda _: 9.223372036854776e18)  # how DCGM says "unknown"
    for gpu, form in enumerate(("spx", "cpx")):  # a GPU of AMD, and a part of another
        of = f'hostname="g5",gpu_uuid="amd-{gpu}",gpu_compute_partition_type="{form}",job_id="13"'
        for name, figure in (
            ("gpu_gfx_activity", 60.0),
            ("gpu_used_vram", 1024.0),
            ("gpu_total_vram", 4096.0),
        ):
            add(name, of, lambda _, value=figure: value)  # type: ignore[misc]
    lines = []
    for name in dict.fromkeys(name for name, _, _ in series):
        lines.append(f"# TYPE {name} unknown")
        for other, labels, value in series:
            if other == name:
                lines += [f"{name}{{{labels}}} {value(m * 60)} {BEGUN + m * 60}" for m in range(minutes + 1)]
    return "\n".join([*lines, "# EOF\n"])


@contextmanager
def serving(folder: Path, content: str) -> Iterator[str]:
    """A real Prometheus with these series in its database."""
    (folder / "metrics").write_text(content)
    subprocess.run(
        ["promtool", "tsdb", "create-blocks-from", "openmetrics", str(folder / "metrics"), str(folder / "d")],
        check=True, capture_output=True,
    )  # fmt: skip
    (folder / "p.yml").write_text("{}\n")
    port = free_port()
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(
            ["prometheus", f"--config.file={folder}/p.yml", f"--storage.tsdb.path={folder}/d",
             f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"], stdout=log, stderr=log,
        )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    try:
        while True:
            try:
                Prometheus(url).series("vector(1)", NOW - 60, NOW, 60)
                break
            except PrometheusFailed:
                assert server.poll() is None, (folder / "log").read_text()
                time.sleep(0.1)
        yield url
    finally:
        server.kill()
        server.wait()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not shutil.which("promtool"):
        pytest.skip("there is no prometheus; on Debian: apt-get install prometheus")
    with serving(tmp_path_factory.mktemp("prometheus"), exported()) as address:
        yield address


def run_history(*words: str, data: Path) -> str:
    outcome = CliRunner().invoke(command, [*words, "--data", str(data)])
    assert outcome.exit_code == 0, outcome.output
    return outcome.output


def test_what_exporters_measured_becomes_verdicts_of_past_jobs(url: str, tmp_path: Path) -> None:
    """Job 7 had g1 alone with both GPUs; 8 and 9 shared g2, where a label says who had which GPU; 10 and 11
    shared g3, where nothing does; 13 had a GPU of AMD on g5, of which the exporter says so.
    """
    jobs = [
        line(7, BEGUN, 4, NodeList="g1"),
        *(line(n, BEGUN, 4, NodeList=node, AllocTRES="cpu=8,gres/gpu=1,mem=64G,node=1", TotalCPU="")
          for n, node in ((8, "g2"), (9, "g2"), (10, "g3"), (11, "g3"), (13, "g5"))),
        line(12, BEGUN, 4, NodeList="g4", TotalCPU=""),
    ]  # fmt: skip
    jobs[0] = jobs[0].replace("|02:00:00|", "||")
    (tmp_path / "past.txt").write_text(text(*jobs))
    data = tmp_path / "jobs"
    shown = run_history("sacct", str(tmp_path / "past.txt"), "--no-judge", data=data)
    assert "7 jobs imported, 0 known already" in shown
    shown = run_history("prometheus", url, "--since", "1d", data=data)
    assert "7 jobs had no measurements; 4 have some now" in shown
    monitor = Monitor(data)
    runs = {job: monitor.jobs.run(str(job)) for job in range(7, 14)}
    monitor.close()
    cpu = {job: run.cpu_efficiency for job, run in runs.items() if run}
    gpu = {job: run.gpu_efficiency for job, run in runs.items() if run}
    assert cpu[7] == pytest.approx(1 / 8, rel=0.02)  # its cgroup, not the 3.5 of the node
    assert gpu[7] == pytest.approx(0.4, rel=0.02)
    assert cpu[8] == pytest.approx(2 / 8, rel=0.02)
    assert cpu[9] == pytest.approx(3 / 8, rel=0.02)
    assert (gpu[8], gpu[9]) == (pytest.approx(0.0), pytest.approx(0.8, rel=0.02))
    assert gpu[13] == pytest.approx(0.6, rel=0.02)
    for job in (10, 11, 12):
        assert (cpu[job], gpu[job]) == (None, None)
        assert runs[job] is not None
        assert runs[job].verdict == "no data"  # type: ignore[union-attr]
    assert runs[8] is not None
    assert runs[8].verdict == "inefficient"
    assert runs[7] is not None
    assert runs[7].memory_efficiency == pytest.approx(8 / 64)
    again = run_history("prometheus", url, "--since", "1d", data=data)
    assert "3 jobs had no measurements; 0 have some now" in again


def test_a_job_alone_on_its_node_needs_no_cgroup_exporter(url: str, tmp_path: Path) -> None:
    (tmp_path / "past.txt").write_text(text(line(30, BEGUN, 4, NodeList="g3", TotalCPU="")))
    data = tmp_path / "jobs"
    run_history("sacct", str(tmp_path / "past.txt"), "--no-judge", data=data)
    run_history("prometheus", url, "--since", "1d", data=data)
    monitor = Monitor(data)
    run = monitor.jobs.run("30")
    monitor.close()
    assert run is not None
    assert run.cpu_efficiency == pytest.approx(3.5 / 8, rel=0.02)  # user and system of the node
    assert run.memory_efficiency == pytest.approx(32 / 64)
    assert run.gpu_efficiency == pytest.approx(0.4, rel=0.02)  # it had all GPUs of the node


def test_a_server_that_is_no_prometheus_is_named(url: str, tmp_path: Path) -> None:
    (tmp_path / "past.txt").write_text(text(line(7, BEGUN, 4, TotalCPU="")))
    data = tmp_path / "jobs"
    run_history("sacct", str(tmp_path / "past.txt"), "--no-judge", data=data)
    for address, why in (
        ("http://127.0.0.1:1", "cannot ask"),
        ("prometheus:9090", "such as"),
        (f"{url}/no", "answered 404"),
    ):
        outcome = CliRunner().invoke(command, ["prometheus", address, "--since", "1d", "--data", str(data)])
        assert outcome.exit_code == 1
        assert why in outcome.output
    with pytest.raises(PrometheusFailed, match="answered 400"):
        Prometheus(url).series("sum(", 0, 60, 60)
    with pytest.raises(ValueError, match="https"):
        Prometheus("http://prometheus:9090", "secret")


def history(jobs: dict[str, dict[int, str]], count: int = 2) -> NodeHistory:
    figures = {f"GPU-{n}": {"gpu_utilization_ratio": {100: 0.5}} for n in range(count)}
    return NodeHistory({"busy": {100: 1.0}}, figures, jobs)


@pytest.mark.parametrize(
    ("jobs", "gpus", "known"),
    [
        ({}, 2, ["GPU-0", "GPU-1"]), ({}, 1, []), ({}, 3, []), ({}, 0, []),
        ({"GPU-1": {100: "7"}}, 1, ["GPU-1"]), ({"GPU-1": {100: "8"}}, 2, []),
        ({"GPU-1": {50: "7"}}, 1, []),  # before the job began
    ],
)  # fmt: skip
def test_which_gpus_a_job_had(jobs: dict[str, dict[int, str]], gpus: float, known: list[str]) -> None:
    run = Run("7", started=60.0, ended=200.0, nodes=1, gpus=gpus)
    assert gpus_of(history(jobs), run) == known


def test_figures_of_a_node_count_for_no_job_that_shared_it() -> None:
    run, other = Run("7", started=60.0, ended=200.0), Run("8", started=150.0, ended=300.0)
    later = Run("9", started=200.0, ended=300.0)
    assert steps_of(history({}), run, [later])["step_cpu_user_seconds_total"] == {100: 1.0}
    assert steps_of(history({}), run, [other, later]) == {}


# -- the command


def test_nothing_is_imported_beside_a_server(tmp_path: Path) -> None:
    (tmp_path / "past.txt").write_text(text(line()))
    with locked(tmp_path / "jobs", "server", 0o700):
        outcome = CliRunner().invoke(
            command, ["sacct", str(tmp_path / "past.txt"), "--data", str(tmp_path / "jobs")]
        )
    assert outcome.exit_code == 1
    assert "server" in outcome.output


def test_the_command_judges_and_names_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "past.txt").write_text(text(line(comment=js1(JS1)), *(["short"] * 12)))
    shown = run_history("sacct", str(tmp_path / "past.txt"), data=tmp_path / "jobs")
    assert "1 with totals of Jobstats" in shown
    assert "left out: line 3: it has 1 columns" in shown
    assert "and 2 more" in shown
    assert "1 jobs judged" in shown
    monitor = Monitor(tmp_path / "jobs")
    run = monitor.jobs.run("7")
    monitor.close()
    assert run is not None
    assert run.verdict == "inefficient"
