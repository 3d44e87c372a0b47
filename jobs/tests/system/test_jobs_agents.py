"""Agents on the nodes of a real Slurm, with real jobs: they report which job had what, and what it did.

One virtual cluster runs all scenarios. Times are never judged; limits only guard against hangs.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from jobs_site import ROOT, Site

from peerway_measure.rehearse.cluster import read, why_not
from peerway_measure.rehearse.cluster.gpus import PROGRAM, gpu_uuid

MIB = 1 << 20
BURN = "while True: pass"
HOLD = "import time; data = b'x' * (300 << 20); time.sleep(300)"

pytestmark = pytest.mark.cluster


def python(program: str) -> str:
    return f'python3 -c "{program}"'


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    description = read()
    if why := why_not(description):
        pytest.skip(why)
    made = Site(description)
    try:
        made.start()
        yield made
    finally:
        made.cluster.stop()


@dataclass
class Jobs:
    """The jobs of the first tests."""

    busy: int
    idle: int
    large: int
    killed: int
    a100: int
    h100: int
    foreign: int


@pytest.fixture(scope="module")
def jobs(site: Site) -> Jobs:
    """Run one job of each kind, all at once, until the receiver knows their ends."""
    cluster = site.cluster

    def gpu(node: str, more: str) -> str:
        return f"exec python3 {cluster.folder / PROGRAM} {cluster.gpu_folder(node)} --seconds 300 {more}"

    kinds = {
        "busy": ("cpu-1", "ann", ["-c8"], "exec " + python(BURN)),
        "idle": ("cpu-1", "ann", [], "exec sleep 300"),
        "large": ("cpu-1", "ben", ["--mem=400"], "exec " + python(HOLD)),
        "killed": ("cpu-2", "ben", ["--mem=100"], "sleep 2; " + python(HOLD)),
        "a100": (
            "a100-1", "ann", ["-p", "gpu", "--gres=gpu:2"],
            gpu("a100-1", "--utilization 0.9 --power 300"),
        ),
        "h100": (
            "h100-1", "ann", ["-p", "gpu", "--gres=gpu:3"],
            gpu("h100-1", "--only 1 --utilization 1 --sm 0.04 --memory-mb 3000 --throttle thermal"),
        ),
        "foreign": (
            "h100-1", "ben", ["-p", "gpu", "--gres=gpu:1"],
            gpu("h100-1", f"--foreign {gpu_uuid('h100-1', 1)}"),
        ),
    }  # fmt: skip
    numbers = {}
    for name, (node, user, options, script) in kinds.items():
        numbers[name] = cluster.sbatch(user, "-w", node, *options, script=script)
        if name == "h100":  # GPUs are allocated in the order of the starts
            site.wait("the start of h100", lambda: cluster.state(numbers["h100"]) == "RUNNING")
    lasting = [name for name in kinds if name != "killed"]
    site.wait(
        "six samples of each", lambda: all(enough(site, kinds[name][0], numbers[name]) for name in lasting)
    )
    site.wait(
        "all the memory of large",
        lambda: site.step_series("cpu-1", numbers["large"], "batch", "step_memory_bytes")[-1] > 300 * MIB,
    )
    cluster.run("scancel", *(str(numbers[name]) for name in lasting))
    site.wait_ended(*((kinds[name][0], job) for name, job in numbers.items()))
    return Jobs(**numbers)


def enough(site: Site, node: str, job: int) -> bool:
    steps = site.intervals(node, job, steps=True)
    return bool(steps) and len(site.step_series(node, job, "batch", "step_memory_bytes")) >= 6


def grown(values: list[float]) -> float:
    return values[-1] - values[0]


def test_intervals_say_whose_the_node_was(site: Site, jobs: Jobs) -> None:
    users = {"ann": 7001, "ben": 7002}
    for node, job, user in (
        ("cpu-1", jobs.busy, "ann"),
        ("cpu-1", jobs.large, "ben"),
        ("a100-1", jobs.a100, "ann"),
    ):
        (found,) = site.intervals(node, job)
        assert (found.user, found.uid, found.source) == (user, users[user], "prolog")
        assert found.cores  # those that its processes may run on
        assert found.end_ms is not None
        assert found.end_ms > found.start_ms
        (step,) = site.intervals(node, job, steps=True)
        assert step.step == "batch"
        assert step.start_ms >= found.start_ms - 20  # two clocks: the wall's milliseconds, ticks since boot


def test_no_two_steps_have_a_slot_at_once(site: Site, jobs: Jobs) -> None:
    for node in site.nodes:
        newest = {each.id: each for batch in site.batches(node) for each in batch.intervals if each.step}
        by_slot: dict[int | None, list[tuple[int, int]]] = {}
        for each in newest.values():
            by_slot.setdefault(each.slot, []).append((each.start_ms, each.end_ms or 1 << 60))
        for spans in by_slot.values():
            spans.sort()
            assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_cpu_time_is_the_jobs_own(site: Site, jobs: Jobs) -> None:
    used = {}
    for name in ("busy", "idle"):
        job = getattr(jobs, name)
        used[name] = grown(site.step_series("cpu-1", job, "batch", "step_cpu_user_seconds_total"))
    assert used["busy"] > 0.05 + 10 * used["idle"]  # the amount depends on what else this machine does
    running = site.step_series("cpu-1", jobs.busy, "batch", "step_running_processes")
    assert sorted(running)[len(running) // 2] == 1  # of the eight cores that it was given


def test_memory_is_told_with_its_limit(site: Site, jobs: Jobs) -> None:
    held = site.step_series("cpu-1", jobs.large, "batch", "step_memory_bytes")
    assert 300 * MIB < max(held) < 400 * MIB
    if site.cluster.cgroups:
        assert set(site.step_series("cpu-1", jobs.large, "batch", "step_memory_limit_bytes")) == {400 * MIB}
    small = site.step_series("cpu-1", jobs.idle, "batch", "step_memory_bytes")
    assert max(small) < 50 * MIB


def test_a_job_that_was_killed_for_its_memory_is_noted(site: Site, jobs: Jobs) -> None:
    if not site.cluster.cgroups:
        pytest.skip("without cgroups of version 1 Slurm limits no memory here")
    assert jobs.killed in {note.job for note in site.notes("cpu-2", "oom_kill")}


def test_gpus_are_told_by_uuid_and_not_by_ordinal(site: Site, jobs: Jobs) -> None:
    for node, job, count in (("a100-1", jobs.a100, 2), ("h100-1", jobs.h100, 3)):
        (found,) = site.intervals(node, job)
        assert found.gpus == [gpu_uuid(node, minor) for minor in range(count)]
    (found,) = site.intervals("h100-1", jobs.foreign)
    assert found.gpus == [gpu_uuid("h100-1", 3)]


def test_gpu_figures(site: Site, jobs: Jobs) -> None:
    (found,) = site.intervals("a100-1", jobs.a100)
    for uuid in found.gpus:
        assert max(site.series("a100-1", "gpu", uuid, "gpu_utilization_ratio", found)) == 0.9
        assert max(site.series("a100-1", "gpu", uuid, "gpu_power_watts", found)) == 300
        assert set(site.series("a100-1", "gpu", uuid, "gpu_foreign_processes", found)) == {0}
        assert (
            site.series("a100-1", "gpu", uuid, "gpu_sm_activity_ratio", found) == []
        )  # an A100 cannot report it
    other = gpu_uuid("a100-1", 3)
    assert max(site.series("a100-1", "gpu", other, "gpu_utilization_ratio", found)) == 0


def test_gpus_whose_minor_numbers_are_reversed(site: Site, jobs: Jobs) -> None:
    if not site.cluster.cgroups:
        pytest.skip("without the cgroup of devices a program sees all GPUs, and takes others than Slurm gave")
    (found,) = site.intervals("h100-1", jobs.h100)
    busy = [
        uuid
        for uuid in found.gpus
        if max(site.series("h100-1", "gpu", uuid, "gpu_utilization_ratio", found)) == 1
    ]
    # CUDA numbers the devices that the job may open in NVML's order: from the last minor to the first.
    assert busy == [gpu_uuid("h100-1", 2)]
    assert 0 < max(site.series("h100-1", "gpu", busy[0], "gpu_sm_activity_ratio", found)) <= 0.04
    assert max(site.series("h100-1", "gpu", busy[0], "gpu_memory_used_bytes", found)) == 3000 * MIB
    assert max(site.series("h100-1", "gpu", busy[0], "gpu_throttled_thermal_ratio", found)) == 1


def test_a_process_on_the_gpu_of_another_job_is_noted(site: Site, jobs: Jobs) -> None:
    notes = [note for note in site.notes("h100-1", "foreign_process") if note.job == jobs.foreign]
    assert len(notes) == 1
    assert (notes[0].gpu, notes[0].owner, notes[0].uid) == (gpu_uuid("h100-1", 1), jobs.h100, 7002)
    (victim,) = site.intervals("h100-1", jobs.h100)
    assert max(site.series("h100-1", "gpu", gpu_uuid("h100-1", 1), "gpu_foreign_processes", victim)) == 1


def test_no_name_of_a_job_is_in_what_is_stored_as_series(site: Site, jobs: Jobs) -> None:
    for node in site.nodes:
        for batch in site.batches(node):
            assert set(batch.samples.get("step", batch.samples["core"]).devices) <= {
                str(n) for n in range(40)
            }


def test_a_job_that_is_requeued_has_two_intervals(site: Site) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-2", "--requeue", script="exec sleep 300")
    site.wait("its start", lambda: len(site.intervals("cpu-2", job, steps=True)) == 1)
    assert site.cluster.run("scontrol", "requeue", str(job)).returncode == 0
    site.wait("its return to the queue", lambda: site.cluster.state(job) == "PENDING")
    # Slurm would wait two minutes. For a run that follows at once it may not run the prolog: then the agent
    # finds the job by its processes and asks Slurm about it. In the second of the kill, slurmd refuses to
    # launch the job ("already killed"), because its credentials have whole seconds.
    time.sleep(1.05 - time.time() % 1)
    site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    site.wait("its second run", lambda: len(site.intervals("cpu-2", job, steps=True)) == 2)
    site.wait("whose it is", lambda: [each.uid for each in site.intervals("cpu-2", job)] == [7001, 7001])
    site.cluster.run("scancel", str(job))
    site.wait("its end", lambda: all(each.end_ms for each in site.intervals("cpu-2", job)))
    first, second = site.intervals("cpu-2", job)
    assert first.end_ms is not None
    assert first.start_ms < first.end_ms <= second.start_ms
    assert first.source == "prolog"
    if second.source == "slurm":
        assert (second.restart, second.cpus, second.memory_bytes) == (1, 1, 1000 * MIB)
    steps = site.intervals("cpu-2", job, steps=True)
    assert len({each.slot for each in steps}) == 2


def numbers(site: Site, node: str) -> list[int]:
    return [batch.seq for batch in site.batches(node)]


def wait_for_more(site: Site, node: str, count: int = 3) -> None:
    before = max(numbers(site, node), default=0)
    site.wait(
        f"{count} more batches of {node}", lambda: max(numbers(site, node), default=0) >= before + count
    )


def test_an_agent_that_is_killed_loses_nothing_and_knows_its_steps(site: Site) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-1", script="exec sleep 60")
    site.wait("the start", lambda: len(site.intervals("cpu-1", job, steps=True)) == 1)
    (before,) = site.intervals("cpu-1", job, steps=True)
    site.kill_receiver()
    spooled = site.folder / "state" / "cpu-1" / "spool"
    size = sum(path.stat().st_size for path in spooled.glob("*.frames"))
    site.wait(
        "more in the spool",
        lambda: sum(path.stat().st_size for path in spooled.glob("*.frames")) > size + 2000,
    )
    site.kill_agent("cpu-1")
    last = max(numbers(site, "cpu-1"))
    site.start_agent("cpu-1")
    site.start_receiver()
    wait_for_more(site, "cpu-1", 6)
    got = numbers(site, "cpu-1")
    assert sorted(set(got)) == list(range(1, max(got) + 1))  # none is missing
    assert max(got) > last + 2
    assert len({batch.stream for batch in site.batches("cpu-1")}) == 1
    assert [note.kind for note in site.notes("cpu-1", "agent_started")] == ["agent_started"] * 2
    (after,) = site.intervals("cpu-1", job, steps=True)
    assert (after.id, after.slot, after.start_ms) == (before.id, before.slot, before.start_ms)
    site.cluster.run("scancel", str(job))
    site.wait_ended(("cpu-1", job))


def test_while_the_server_answers_with_errors_all_is_kept(site: Site) -> None:
    told = site.folder / "answer"
    before = max(numbers(site, "a100-1"))
    told.write_text("503")
    time.sleep(1)  # some rounds pass
    told.unlink()
    wait_for_more(site, "a100-1", 5)
    got = sorted(set(numbers(site, "a100-1")))
    assert got == list(range(1, max(got) + 1))
    assert max(got) > before


def test_a_process_that_outlives_its_job_is_noted(site: Site) -> None:
    job = site.cluster.sbatch("ben", "-w", "cpu-2", script="sleep 1")
    # Slurm's cgroups would kill a child; this imitates a daemon that cron, ssh or another site's setup left
    # alive.
    left = site.cluster.popen(
        "cpu-2", "sleep", "100", user="ben", log=site.folder / "left.log", SLURM_JOB_ID=str(job)
    )  # fmt: skip
    other = site.cluster.popen(
        "cpu-2", "sleep", "100", user="ann", log=site.folder / "left.log", SLURM_JOB_ID=str(job)
    )  # fmt: skip
    site.wait_ended(("cpu-2", job))
    site.wait("the note", lambda: any(note.job == job for note in site.notes("cpu-2", "leftover")))
    (note,) = [note for note in site.notes("cpu-2", "leftover") if note.job == job]
    assert (note.uid, note.text) == (7002, "sleep")  # not ann's process, which only claims that job
    for program in (left, other):
        site.cluster.kill(program)


def test_a_node_that_lost_power(site: Site) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-2", "--no-requeue", script="exec sleep 600")
    site.wait("the start", lambda: len(site.intervals("cpu-2", job, steps=True)) == 1)
    wait_for_more(site, "cpu-2")
    site.cluster.kill_node("cpu-2")
    seen = max(batch.wall_ms for batch in site.batches("cpu-2"))
    site.cluster.boot_node("cpu-2")
    site.start_agent("cpu-2")
    # Slurm would notice in half a minute; an administrator need not wait.
    for state in ("down", "resume"):
        site.cluster.run("scontrol", "update", "NodeName=cpu-2", f"State={state}", "Reason=power")
    site.wait_ended(("cpu-2", job))
    (found,) = site.intervals("cpu-2", job)
    assert found.end_ms is not None
    assert found.start_ms < found.end_ms
    assert abs(found.end_ms - seen) < 60_000
    got = sorted(set(numbers(site, "cpu-2")))
    assert got == list(range(1, max(got) + 1))


def test_agents_keep_only_what_they_need_of_roots_rights(site: Site) -> None:
    pid = site.cluster.run("pgrep", "-f", "jobs agent", host="cpu-1").stdout.split()[0]
    status = site.cluster.run("cat", f"/proc/{pid}/status", host="cpu-1").stdout
    fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert int(fields["CapEff"], 16) == int(fields["CapBnd"], 16) == (1 << 2 | 1 << 19)
    assert fields["NoNewPrivs"] == "1"


def doctor(site: Site, node: str, *options: str) -> dict[str, dict[str, str]]:
    done = site.cluster.run(
        "env", f"PYTHONPATH={ROOT}/jobs/tests/system", f"FAKE_GPUS={site.cluster.gpu_folder(node)}",
        sys.executable, "-m", "peerway", "jobs", "doctor", "--json", "--settings", str(site.settings(node)),
        *options,
        host=node, timeout=200,
    )  # fmt: skip
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found, done.stderr
    return {each["check"]: each for each in found}


def test_doctor_runs_a_job_through_the_whole_chain(site: Site) -> None:
    found = doctor(site, "cpu-1", "--self-test")
    good = ("slurm", "prolog", "epilog", "events", "token", "server", "self-test")
    assert {name: found[name]["state"] for name in good} == dict.fromkeys(good, "ok"), found["self-test"]
    assert "the server has it" in found["self-test"]["observed"]
    assert found["cgroups"]["state"] == ("ok" if site.cluster.cgroups else "warning")
    assert found["gpus"]["state"] in ("absent", "warning")  # the node has none, the cluster has some


def test_doctor_tells_what_is_wrong(site: Site) -> None:
    token = site.folder / "h100-1.token"
    token.chmod(0o644)
    try:
        found = doctor(site, "h100-1")
    finally:
        token.chmod(0o600)
    assert found["token"]["state"] == "broken"
    assert "0644" in found["token"]["observed"]
    assert site.tokens["h100-1"] not in json.dumps(found)
    assert found["gpus"]["state"] == "warning"
    assert "index 0 is /dev/nvidia7" in found["gpus"]["observed"]
