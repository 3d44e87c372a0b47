"""Agents and server together on a real Slurm: real jobs come to verdicts that are read over the API.

One virtual cluster runs all scenarios; a minute of the rules lasts 0.3 s there. Times are never judged.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pytest
from jobs_served import MONITOR, ServedSite
from jobs_site import INTERVAL_S

from peerway.jobs.store.chunks import ChunkStore
from peerway.jobs.store.samples import Filed, columns
from peerway.rehearse.cluster import accounting, read, why_not
from peerway.rehearse.cluster.configuration import HEAD
from peerway.rehearse.cluster.gpus import PROGRAM, gpu_uuid

MINUTE_S = 0.3

pytestmark = pytest.mark.alone  # a minute in which agents get no CPU is a minute without data


@pytest.fixture(scope="module")
def site() -> Iterator[ServedSite]:
    small = read()
    kinds = {each.name: each for each in small.nodes}
    description = dataclasses.replace(
        small, nodes=(dataclasses.replace(kinds["cpu"], count=1), kinds["h100"]),
        partitions=tuple(
            dataclasses.replace(each, nodes=tuple(set(each.nodes) & {"cpu", "h100"}))
            for each in small.partitions
        ),
        users=(*small.users, MONITOR), accounting=True,
    )  # fmt: skip
    if why := why_not(description):
        pytest.skip(why)
    made = ServedSite(description, MINUTE_S)
    try:
        made.start()
        made.cluster.run("sacctmgr", "-i", "modify", "user", MONITOR, "set", "AdminLevel=Operator")
        yield made
    finally:
        made.cluster.stop()


@dataclass
class Jobs:
    """One of each kind; all have ended and are judged."""

    good: int
    idle: int
    one_of_two: int
    foreign: int
    memory_only: int
    busy_looking: int
    hot: int
    serial: int
    nothing: int
    killed: int


@pytest.fixture(scope="module")
def jobs(site: ServedSite) -> Jobs:
    """They run while the server is killed three times; the third time it is away for some rounds."""
    cluster = site.cluster

    def gpu(more: str) -> str:
        return f"exec python3 {cluster.folder / PROGRAM} {cluster.gpu_folder('h100-1')} --seconds 300 {more}"

    loop = "while :; do :; done"
    kinds = {
        "good": ("ann", ["--gres=gpu:1"], gpu("--utilization 0.9 --sm 0.7 --memory-mb 60000 --power 350")),
        "idle": ("ann", ["--gres=gpu:1"], "exec sleep 300"),
        "one_of_two": ("ben", ["--gres=gpu:2"], gpu("--only 1 --utilization 0.9 --sm 0.7 --memory-mb 60000")),
        "foreign": ("ben", ["--gres=gpu:1"], gpu(f"--foreign {gpu_uuid('h100-1', 0)} --utilization 0.01")),
        "memory_only": ("ben", ["--gres=gpu:1"], gpu("--memory-mb 8000")),
        "busy_looking": ("ann", ["--gres=gpu:1"], gpu("--utilization 0.95 --sm 0.03")),
        "hot": ("ben", ["--gres=gpu:1"], gpu("--throttle thermal --utilization 0.9 --sm 0.7")),
        "serial": ("ann", ["-w", "cpu-1", "-c8"], loop),
        "nothing": ("ben", ["-w", "cpu-1", "-c2"], "exec sleep 300"),
        "killed": (
            "ben", ["-w", "cpu-1", "--mem=100"],
            "sleep 1; python3 -c \"import time; data = b'x' * (300 << 20); time.sleep(300)\"",
        ),
    }  # fmt: skip
    numbers: dict[str, int] = {}
    for name, (user, options, script) in kinds.items():
        where = [] if "-w" in options else ["-p", "gpu", "-w", "h100-1"]
        numbers[name] = cluster.sbatch(user, *where, *options, script=script)
        site.wait(f"the start of {name}", lambda name=name: cluster.state(numbers[name]) != "PENDING")  # type: ignore[misc]
    began = time.monotonic()
    for pause in (0.0, 0.0, 6 * INTERVAL_S):
        time.sleep(0.7)
        site.kill_receiver()
        time.sleep(pause)
        site.start_receiver()
        site.wait("the server's return", site.answers)
    time.sleep(max(0.0, 40 * MINUTE_S - (time.monotonic() - began)))  # the longest that a rule looks at
    cluster.run("scancel", *(str(number) for name, number in numbers.items() if name != "killed"))
    for number in numbers.values():
        site.wait(f"the verdict on job {number}", lambda number=number: site.finally_judged(number))  # type: ignore[misc]
    return Jobs(**numbers)


def test_each_job_gets_the_conclusion_that_it_should(site: ServedSite, jobs: Jobs) -> None:
    assert "gpu-idle" in site.found(jobs.idle)
    assert "gpu-one-used" in site.found(jobs.one_of_two)
    assert "foreign-process" in site.found(jobs.foreign)
    assert "gpu-memory-only" in site.found(jobs.memory_only)
    assert "gpu-busy-looking" in site.found(jobs.busy_looking)
    assert "throttled" in site.found(jobs.hot)
    assert "serial" in site.found(jobs.serial)
    assert "nothing-computes" in site.found(jobs.nothing)
    if site.cluster.cgroups:
        assert "out-of-memory" in site.found(jobs.killed)
    assert not site.found(jobs.good) & {
        "gpu-idle", "gpu-low", "gpu-one-used", "gpu-busy-looking", "gpu-memory-only", "throttled", "no-data",
    }  # fmt: skip


def test_a_verdict_has_its_evidence(site: ServedSite, jobs: Jobs) -> None:
    said = site.job(jobs.idle)
    (idle,) = [each for each in said["verdict"]["findings"] if each["rule"] == "gpu-idle"]
    assert idle["figures"]["idle_gpus"] == 1
    assert idle["coverage"] > 0.5
    assert said["verdict"]["rules_hash"] == site.get("root", "rules")["hash"]
    assert said["verdict"]["hours"]["idle_gpu_hours"] > 0
    assert site.job(jobs.good)["gpu_efficiency"] > 0.7


def test_what_slurm_and_the_agents_know_is_joined(site: ServedSite, jobs: Jobs) -> None:
    said = site.job(jobs.serial)
    assert (said["user"], said["account"], said["partition"], said["cores"]) == (
        "ann",
        "project-ann",
        "cpu",
        8,
    )
    assert (said["node_list"], said["node_type"], said["state"]) == ("cpu-1", "milan", "CANCELLED")
    gpu = site.job(jobs.one_of_two)
    assert (gpu["gpus"], gpu["gpu_type"], gpu["node_type"]) == (2, "h100", "h100")
    series = site.get("root", f"jobs/{jobs.one_of_two}/series")
    assert json.dumps(series).count("GPU-") >= 2


def test_a_script_is_for_its_owner_and_administrators(site: ServedSite, jobs: Jobs) -> None:
    for who in ("ann", "root"):
        assert "while :; do :; done" in site.job(jobs.serial, who)["script"]
    assert site.job(jobs.serial, "ben") == {}  # as a job that there is not


def test_what_was_acknowledged_outlives_every_kill(site: ServedSite, jobs: Jobs) -> None:
    """Compared with what the agents took, however late they did. Times are not: the server may date anew a
    batch that was long on its way.
    """
    taken = {node: site.batches(node) for node in site.nodes}
    for node, batches in taken.items():
        site.wait(f"the last of {node}", partial(site.acknowledges, node, batches[-1].seq))
    site.kill_receiver()
    store = ChunkStore(site.data / "samples")
    for node, batches in taken.items():
        (one,) = site.acknowledged(node)  # from the first batch on, none is missing
        assert one[0] == 1, node
        assert [each.seq for each in batches] == [*range(1, batches[-1].seq + 1)]
        expected: defaultdict[tuple[str, str, str], Counter[float]] = defaultdict(Counter)
        for batch in batches:
            for kind, device, metric, value in columns(Filed(batch, 0, b"", 0)):
                expected[kind, device, metric][value] += 1
        end = batches[-1].wall_ms + 3_600_000
        kept = {kind: store.read(node, kind, 0, end) for kind in {kind for kind, *_ in expected}}
        for (kind, device, metric), values in expected.items():
            lost = values - Counter(kept[kind][device, metric].values.tolist())
            assert not lost, f"{node} {device} {metric}"
    store.close()
    site.start_receiver()
    site.wait("the server's return", site.answers)


def test_the_cluster_page_tells_what_slurm_tells(site: ServedSite, jobs: Jobs) -> None:
    waiting = site.cluster.sbatch(
        "ann", "-p", "gpu", "--gres=gpu:8", "-c", "32", "--begin=now+3600", script="true"
    )
    site.wait("the job that waits", lambda: site.get("ann", "cluster").get("waiting") == 1)
    told = site.get("ann", "cluster")
    assert {node["name"]: node["gpus"] for node in told["nodes"]} == {"cpu-1": 0, "h100-1": 8}
    assert told["waiting_gpus"] == 8
    assert all("now" in node for node in told["nodes"])
    site.cluster.run("scancel", str(waiting))


def test_runs_of_a_requeued_job_are_told_apart(site: ServedSite, jobs: Jobs) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-1", "--requeue", script="exec sleep 300")
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    assert site.cluster.run("scontrol", "requeue", str(job)).returncode == 0
    site.wait("its return to the queue", lambda: site.cluster.state(job) == "PENDING")
    time.sleep(1.05 - time.time() % 1)  # slurmd launches nothing in the second of a kill
    site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    site.wait("its second run", lambda: site.job(job, restart=1).get("state") == "RUNNING")
    # An agent may tell of the end first, and only Slurm that it was a requeue.
    site.wait("the end of the first", lambda: site.job(job, restart=0).get("state") == "REQUEUED")
    site.cluster.run("scancel", str(job))
    first, second = site.job(job, restart=0), site.job(job, restart=1)
    # Slurm tells whole seconds, the agent of the first run when it saw the end.
    assert first["started"] < first["ended"] < second["started"] + 1


def test_a_job_that_ended_while_the_server_was_away(site: ServedSite, jobs: Jobs) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-1", script="exec sleep 300")
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    site.kill_receiver()
    site.cluster.run("scancel", str(job))
    site.wait("its end", lambda: site.cluster.state(job) == "CANCELLED")
    site.start_receiver()
    site.wait("the server's return", site.answers)
    site.wait("the end", lambda: bool(site.job(job).get("ended")))


def test_jobs_are_judged_while_slurms_database_is_dead(site: ServedSite, jobs: Jobs) -> None:
    for program in ("slurmdbd", "mariadbd"):
        assert site.cluster.run("pkill", "-KILL", "-x", program).returncode == 0
    job = site.cluster.sbatch("ann", "-w", "cpu-1", "-c2", script="while :; do :; done")
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    site.cluster.run("scancel", str(job))
    site.wait("its verdict", lambda: site.finally_judged(job))
    said = site.job(job)
    assert (said["user"], said["state"], said["cores"]) == ("ann", "CANCELLED", 2)
    assert "while :; do :; done" in said["script"]

    (site.cluster.folder / "private" / "mysql.sock").unlink()

    def daemon(*command: str, environment: dict[str, str] | None = None) -> None:
        log = site.cluster.folder / "log" / f"{command[0]}-again.out"
        site.cluster.popen(HEAD, *command, log=log, **(environment or {}))

    accounting.start(site.cluster.folder, daemon, site.cluster.run)
    site.wait(
        "the job in Slurm's database",
        lambda: "CANCELLED" in site.cluster.run("sacct", "-nPX", "-j", str(job), "-o", "State").stdout,
    )
    assert site.job(job)["state"] == "CANCELLED"
