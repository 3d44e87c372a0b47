"""Agents and server together on a real Slurm: real jobs come to verdicts that are read over the API.

One virtual cluster runs all scenarios; a minute of the rules lasts 0.3 s there. Times are never judged.
"""

from __future__ import annotations

import contextlib
import dataclasses
import email
import json
import os
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from email.message import EmailMessage
from email.policy import default
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from jobs_kinds import COUNTERPARTS, HARDWARE, LITE, LOOP, SLEEP, Kind, computing, quiet, right
from jobs_served import MONITOR, ServedSite
from jobs_site import INTERVAL_S, ROOT

from peerway_jobs.history import sacct
from peerway_jobs.rules.load import read_rules
from peerway_jobs.store.chunks import ChunkStore
from peerway_jobs.store.samples import Filed, columns
from peerway_measure.rehearse.cluster import accounting, read, why_not
from peerway_measure.rehearse.cluster.configuration import HEAD
from peerway_measure.rehearse.cluster.description import Partition

MINUTE_S = 0.3

pytestmark = pytest.mark.cluster


Jobs = dict[str, int]  # name in jobs_kinds.py -> job number


@pytest.fixture(scope="module")
def site() -> Iterator[ServedSite]:
    small = read()
    lite = Partition("lite", tuple(each.name for each in small.nodes))
    description = dataclasses.replace(
        small, partitions=(*small.partitions, lite), users=(*small.users, "cat", MONITOR), accounting=True
    )
    if why := why_not(description):
        pytest.skip(why)
    made = ServedSite(description, MINUTE_S, parameters=LITE)
    try:
        made.start()
        made.cluster.run("sacctmgr", "-i", "modify", "user", MONITOR, "set", "AdminLevel=Operator")
        yield made
    finally:
        made.cluster.stop()


def submitted(site: ServedSite, kinds: dict[str, Kind]) -> Jobs:
    """Submit all jobs and wait until they have started.

    A job with GPUs starts before the next is submitted, because GPUs are allocated in that order.
    """
    numbers: Jobs = {}

    def started(name: str) -> None:
        site.wait(f"the start of {name}", lambda: site.cluster.state(numbers[name]) != "PENDING")

    for name, kind in kinds.items():
        numbers[name] = site.cluster.sbatch(kind.user, *kind.sbatch, script=kind.script)
        if any("gpu" in option for option in kind.options):
            started(name)
    for name in kinds:
        started(name)
    return numbers


def ended(site: ServedSite, kinds: dict[str, Kind], numbers: Jobs) -> Jobs:
    """Cancel the jobs, unless they end by themselves, and wait for their verdicts."""
    lasting = [str(number) for name, number in numbers.items() if not kinds[name].ends and name != "killed"]
    site.cluster.run("scancel", *lasting)
    for name, number in numbers.items():
        site.wait(f"the verdict on {name}", lambda number=number: site.finally_judged(number))  # type: ignore[misc]
    return numbers


@pytest.fixture(scope="module")
def jobs(site: ServedSite) -> Jobs:
    """Run the jobs while the server is killed three times; the third time it stays down for some rounds."""
    kinds = quiet(site.cluster.folder)
    numbers = submitted(site, kinds)
    began = time.monotonic()
    for pause in (0.0, 0.0, 6 * INTERVAL_S):
        time.sleep(0.7)
        site.kill_receiver()
        time.sleep(pause)
        site.start_receiver()
        site.wait("the server's return", site.answers)
    time.sleep(max(0.0, 40 * MINUTE_S - (time.monotonic() - began)))  # the longest time that a rule looks at
    return ended(site, kinds, numbers)


def wrong(site: ServedSite, kinds: dict[str, Kind], numbers: Jobs) -> list[str]:
    """The jobs with a missing or a wrong finding: which rules, and what is known of the job."""
    said = []
    for name, number in numbers.items():
        kind, found = kinds[name], site.conclusions(number)
        missing, more = {*kind.rules} - found, found - kind.allowed
        verdict = site.job(number).get("verdict") or {}
        blind = {*COUNTERPARTS.get(name, ())}.intersection(verdict.get("undecided", ()))
        if missing or more or blind:
            about = f"lacks {missing}, has also {more}, had no data for {blind}"
            said.append(f"{name}: {about}: {json.dumps(site.job(number))}")
    return said


def test_each_job_gets_the_conclusion_that_it_should(site: ServedSite, jobs: Jobs) -> None:
    kinds = quiet(site.cluster.folder)
    if not site.cluster.cgroups:  # nothing limits memory
        kinds["killed"] = dataclasses.replace(kinds["killed"], rules=())
    found = wrong(site, kinds, jobs)
    assert not found, "\n".join(found)


@pytest.fixture(scope="module")
def hardware(site: ServedSite) -> None:
    """Lustre and InfiniBand of the nodes cpu-1 and cpu-2."""
    for node in ("cpu-1", "cpu-2"):
        mounted = site.cluster.run("sh", "-ec", HARDWARE, host=node)
        assert mounted.returncode == 0, mounted.stderr


@pytest.mark.long
@pytest.mark.usefixtures("hardware")
@pytest.mark.parametrize("kinds_in", [computing, right])
def test_jobs_that_compete_for_cores_get_theirs(
    site: ServedSite, kinds_in: Callable[[Path], dict[str, Kind]]
) -> None:
    kinds = kinds_in(site.cluster.folder)
    numbers = submitted(site, kinds)
    time.sleep(40 * MINUTE_S)
    found = wrong(site, kinds, ended(site, kinds, numbers))
    assert not found, "\n".join(found)


@pytest.mark.long
def test_processes_that_a_job_left_behind_are_told_of_it(site: ServedSite) -> None:
    job = site.cluster.sbatch("ben", "-w", "cpu-2", script="sleep 1")
    # As if ssh or a daemon of the user had started it; Slurm's cgroups would kill a child.
    left = site.cluster.popen(
        "cpu-2", "sleep", "300", user="ben", log=site.folder / "left.log", SLURM_JOB_ID=str(job)
    )
    site.wait("the finding", lambda: "leftover-processes" in site.conclusions(job))
    site.cluster.kill(left)


@pytest.mark.long
def test_of_a_job_whose_agent_was_dead_it_says_that_it_has_no_data(site: ServedSite) -> None:
    site.kill_agent("cpu-2")
    job = site.cluster.sbatch("ann", "-w", "cpu-2", script=SLEEP)
    time.sleep(20 * MINUTE_S)
    site.start_agent("cpu-2")
    site.wait("that it is seen", lambda: bool(site.job(job).get("nodes")))
    site.cluster.run("scancel", str(job))
    site.wait("its verdict", lambda: site.finally_judged(job))
    assert site.conclusions(job) == {"no-data"}
    assert site.job(job)["verdict"]["state"] == "no data"


def test_every_rule_has_a_real_job(tmp_path: Path) -> None:
    kinds = [*quiet(tmp_path).values(), *computing(tmp_path).values()]
    spoken = {rule for kind in kinds for rule in kind.rules} | {"leftover-processes", "no-data"}
    assert spoken == {rule.name for rule in read_rules().rules}


def test_every_rule_has_a_real_job_of_which_it_must_not_speak(tmp_path: Path) -> None:
    kinds = {**quiet(tmp_path), **computing(tmp_path), **right(tmp_path)}
    silent = [rule for rules in COUNTERPARTS.values() for rule in rules]
    assert sorted(silent) == sorted(rule.name for rule in read_rules().rules)
    for name, rules in COUNTERPARTS.items():
        assert not kinds[name].allowed.intersection(rules), name


def test_a_verdict_has_its_evidence(site: ServedSite, jobs: Jobs) -> None:
    said = site.job(jobs["idle"])
    (idle,) = [each for each in said["verdict"]["findings"] if each["rule"] == "gpu-idle"]
    assert idle["figures"]["idle_gpus"] == 1
    assert idle["coverage"] > 0.5
    assert said["verdict"]["rules_hash"] == site.get("root", "rules")["hash"]
    assert said["verdict"]["hours"]["idle_gpu_hours"] > 0
    assert site.job(jobs["good"])["gpu_efficiency"] > 0.7


def test_what_slurm_and_the_agents_know_is_joined(site: ServedSite, jobs: Jobs) -> None:
    said = site.job(jobs["serial"])
    assert (said["user"], said["account"], said["partition"], said["cores"]) == (
        "ann",
        "project-ann",
        "cpu",
        8,
    )
    assert (said["node_list"], said["node_type"], said["state"]) == ("cpu-1", "milan", "CANCELLED")
    if site.cluster.cgroups:  # it lived for a second or two
        assert site.job(jobs["killed"])["memory_efficiency"] > 0.9
    gpu = site.job(jobs["one_of_two"])
    assert (gpu["gpus"], gpu["gpu_type"], gpu["node_type"]) == (2, "h100", "h100")
    series = site.get("root", f"jobs/{jobs['one_of_two']}/series")
    assert json.dumps(series).count("GPU-") >= 2
    cores = site.get("root", f"jobs/{jobs['serial']}/series")["cores"]
    assert cores["labels"][0] == "cpu-1 0"
    assert max(map(max, cores["rows"])) > 0


def test_a_script_is_for_its_owner_and_administrators(site: ServedSite, jobs: Jobs) -> None:
    for who in ("ann", "root"):
        assert LOOP in site.job(jobs["serial"], who)["script"]
    assert site.job(jobs["serial"], "ben") == {}  # as for a job that does not exist


def test_what_was_acknowledged_outlives_every_kill(site: ServedSite, jobs: Jobs) -> None:
    """The store is compared with what the agents spooled, however late that was.

    Times are not compared, because the server may correct the time of a batch that was delayed on its way.
    """
    taken = {node: site.batches(node) for node in site.nodes}
    for node, batches in taken.items():
        site.wait(f"the last of {node}", partial(site.acknowledges, node, batches[-1].seq))
    site.kill_receiver()
    store = ChunkStore(site.data / "samples")
    for node, batches in taken.items():
        (one,) = site.acknowledged(node)  # none is missing since the first batch
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
    site.wait(  # the server was killed before
        "all agents", lambda: all("now" in node for node in site.get("ann", "cluster")["nodes"])
    )
    told = site.get("ann", "cluster")
    assert {node["name"]: node["gpus"] for node in told["nodes"]} == {
        "cpu-1": 0, "cpu-2": 0, "a100-1": 4, "h100-1": 8,
    }  # fmt: skip
    assert told["waiting_gpus"] == 8
    array = site.cluster.sbatch("ann", "-p", "cpu", "-c2", "--array=1-20", "--begin=now+1hour", script="true")
    site.wait("its tasks", lambda: site.get("ann", "cluster").get("waiting") == 21)
    assert site.get("ann", "cluster")["waiting_cores"] == 32 + 40
    site.cluster.run("scancel", str(waiting), str(array))


def test_the_epilog_writes_the_summary_beside_the_output(site: ServedSite, jobs: Jobs) -> None:
    folder = site.folder / "home of ben"
    folder.mkdir()
    os.chown(folder, site.cluster.users["ben"], -1)
    environment = 'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n" >environments'
    # What the user may see of the processes on the node; meanwhile the other job's summary is being made.
    link = site.cluster.sbatch("ben", "-w", "cpu-1", "--chdir", str(folder), script="sleep 1")
    one = site.cluster.sbatch(
        "ben", "-w", "cpu-1,cpu-2", "-N2", "--chdir", str(folder), script=f"sleep 6; {environment}"
    )
    target = site.folder / "target"
    (folder / f"slurm-{link}.summary").symlink_to(target)
    out = folder / f"slurm-{one}.summary"
    site.wait("the summary", lambda: out.exists() and "Verdict" in out.read_text())
    found, text = out.stat(), out.read_text()
    assert (found.st_uid, found.st_mode & 0o777) == (site.cluster.users["ben"], 0o600)
    assert text.count(f"{one} sbatch") == 1  # written by one of its nodes only
    assert "not judged yet" not in text
    site.wait("the other's verdict", lambda: site.finally_judged(link))
    site.wait(
        "the end of all epilogs", lambda: not site.cluster.run("pgrep", "-f", "jobs/slurm/summary.sh").stdout
    )
    assert not target.exists()
    assert not any(token in (folder / "environments").read_text() for token in site.tokens.values())


def test_slurm_has_the_verdicts_as_comments(site: ServedSite, jobs: Jobs) -> None:
    """The server runs as an ordinary user with the rights of an operator."""
    other = site.cluster.sbatch("ann", "-w", "cpu-2", "--comment=mine", script="sleep 2")
    site.wait("the start", lambda: site.cluster.state(other) == "RUNNING")
    site.cluster.run("scontrol", "update", f"JobId={other}", "AdminComment=JS1:None")

    def written(job: int) -> list[str]:
        done = site.cluster.run("sacct", "-X", "-n", "-P", "-j", str(job), "-o", "AdminComment,Comment")
        return str(done.stdout).strip().split("|")

    site.wait("the comment", lambda: written(jobs["idle"])[0].startswith("peerway: inefficient; gpu 0 %"))
    assert written(jobs["idle"])[0].endswith("; gpu-idle")
    site.wait("the other's verdict", lambda: site.finally_judged(other))
    site.wait("the other's comment", lambda: written(other)[0] != "")
    assert written(other) == ["JS1:None", "mine"]


def test_slurms_end_mail_has_the_summary(site: ServedSite, jobs: Jobs) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-2", "--mail-type=BEGIN,END", script="sleep 1")

    def mails() -> list[EmailMessage]:
        files = [file.read_bytes() for file in site.mails.iterdir() if not file.name.startswith(".")]
        return [email.message_from_bytes(content, policy=default) for content in files]  # type: ignore[misc]

    site.wait("two mails", lambda: len(mails()) == 2)
    begun, ended = sorted(mails(), key=lambda mail: "Ended" in mail["Subject"])
    assert f"Job_id={job} " in ended["Subject"]
    assert ended["To"] == "ann@example.org"
    text = ended.get_content()
    assert f"{job} sbatch" in text
    assert "Verdict" in text
    assert "not judged yet" not in text
    assert begun.get_content().strip() == ""


def test_policies_commands_hold_release_and_cancel_in_a_real_slurm(site: ServedSite) -> None:
    job = site.cluster.sbatch("ben", "-p", "cpu", "-c2", "--begin=now+1hour", script="true")
    running = site.cluster.sbatch("ben", "-w", "cpu-2", script=SLEEP)
    site.wait("the start", lambda: site.cluster.state(running) == "RUNNING")

    def answer_of(expression: str) -> Any:
        code = f"import json; from peerway_jobs.policies import slurm; print(json.dumps({expression}))"
        done = site.cluster.run(sys.executable, "-c", code, host=HEAD)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    waiting = "[each.job for each in slurm.waiting_jobs('project-ben')]"
    assert answer_of(waiting) == [str(job)]
    assert answer_of(f"slurm.hold('{job}')") == "done"
    assert answer_of(waiting) == []  # it is held
    assert answer_of(f"slurm.release('{job}')") == "done"
    site.wait("its release", lambda: answer_of(waiting) == [str(job)])
    assert answer_of(f"slurm.state_of('{running}')")[0] == "RUNNING"
    assert answer_of(f"slurm.cancel('{running}')") == "done"
    site.wait("its end", lambda: site.cluster.state(running) != "RUNNING")
    assert answer_of("slurm.hold('999999')") != "done"
    assert answer_of("slurm.state_of('999999')") is None
    site.cluster.run("scancel", str(job))


def test_what_sacct_says_is_imported_as_text_and_as_json(site: ServedSite, jobs: Jobs) -> None:
    """`peerway jobs history sacct` reads the output of a real sacct, and finds what squeue has said."""
    columns = re.search(r"-o (JobIDRaw,\S+) > past.txt", (ROOT / "docs/jobs/history.md").read_text())
    assert columns is not None
    options = ("--allusers", "--duplicates", "--starttime", "now-1days")
    text = site.cluster.run("sacct", *options, "--parsable2", "--units=K", "-o", columns[1]).stdout
    as_text = {job.run.job: job for job in sacct.read(text).jobs}
    as_json = {
        job.run.job: job for job in sacct.read(site.cluster.run("sacct", *options, "--json").stdout).jobs
    }
    assert sacct.read(text).unreadable == []
    # Without gpu_type: accounting may count GPUs without their type.
    names = (
        "user",
        "account",
        "partition",
        "name",
        "state",
        "cores",
        "gpus",
        "node_list",
        "started",
        "ended",
    )
    for number in (jobs["serial"], jobs["one_of_two"]):
        known = site.job(number)
        for past in (as_text[str(number)], as_json[str(number)]):
            differs = {name: (getattr(past.run, name), known[name]) for name in names
                       if getattr(past.run, name) != known[name]}  # fmt: skip
            assert not differs
        assert as_text[str(number)].cpu_seconds == pytest.approx(as_json[str(number)].cpu_seconds, abs=1)


def test_doctor_finds_the_server_well(site: ServedSite, jobs: Jobs) -> None:
    done = site.cluster.run(
        sys.executable, "-m", "peerway", "jobs", "doctor", "--json", "--data", str(site.data),
        host=HEAD, timeout=200,
    )  # fmt: skip
    found = {each["check"]: each for each in map(json.loads, done.stdout.splitlines())}
    disk = found.pop("disk")
    assert {name: each["state"] for name, each in found.items()} == dict.fromkeys(
        ("database", "rows", "samples", "rules", "squeue", "sinfo", "tokens", "private"), "ok"
    ), found
    assert disk["state"] in ("ok", "warning")
    assert "4 nodes" in found["sinfo"]["observed"]


def test_runs_of_a_requeued_job_are_told_apart(site: ServedSite, jobs: Jobs) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-1", "--requeue", script="exec sleep 300")
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    assert site.cluster.run("scontrol", "requeue", str(job)).returncode == 0
    site.wait("its return to the queue", lambda: site.cluster.state(job) == "PENDING")
    time.sleep(1.05 - time.time() % 1)  # slurmd launches nothing in the second of a kill
    site.cluster.run("scontrol", "update", f"JobId={job}", "StartTime=now")
    site.wait("its second run", lambda: site.job(job, restart=1).get("state") == "RUNNING")
    # An agent may report the end first, and only Slurm knows that it was a requeue.
    site.wait("the end of the first", lambda: site.job(job, restart=0).get("state") == "REQUEUED")
    site.cluster.run("scancel", str(job))
    first, second = site.job(job, restart=0), site.job(job, restart=1)
    # Slurm reports whole seconds, and the first run's agent the time at which it noticed the end.
    assert first["started"] < first["ended"] < second["started"] + 1


READS_AND_HOLDS = """truncate -s 2000M $HOME/zeros; cat $HOME/zeros > /dev/null
exec python3 -c "import time; data = b'x' * (300 << 20); time.sleep(300)"
"""


# Slurm sends SIGTSTP first: a process that ignores it is frozen in state D, like one that waits for a disk.
UNSTOPPABLE = f"trap '' TSTP; {LOOP}"


@pytest.mark.long  # 64 s; the tests of the rules and of Slurm's answers have its parts
def test_a_job_is_charged_for_what_it_could_use(site: ServedSite) -> None:
    """Suspended for some time; in two components; with more file cache than memory; with an idle node."""
    suspended = site.cluster.sbatch("ann", "-w", "cpu-1", "-c1", "--mem=100", script=UNSTOPPABLE)
    parts = ("-w", "cpu-1", "-c1", "--mem=100", ":", "-w", "cpu-2", "-c1", "--mem=100")
    component = site.cluster.sbatch("ann", *parts, script=SLEEP)
    cached = site.cluster.sbatch("ben", "-w", "cpu-2", "-c1", "--mem=2000", script=READS_AND_HOLDS)
    half = site.cluster.sbatch("ben", "-N2", "-w", "cpu-1,cpu-2", "-n2", "--mem=100", script=SLEEP)
    everyone = [suspended, component, component + 1, cached, half]
    for job in everyone:
        site.wait(f"the start of {job}", lambda job=job: site.job(job).get("state") == "RUNNING")  # type: ignore[misc]
    time.sleep(4 * INTERVAL_S)
    assert site.cluster.run("scontrol", "suspend", str(suspended)).returncode == 0
    site.wait("that it is suspended", lambda: site.job(suspended).get("state") == "SUSPENDED")
    paused_from = time.time() + 3  # Slurm freezes it some seconds after SIGTSTP
    time.sleep(3 + 20 * MINUTE_S)  # longer than the rules need to find idle cores
    paused_to = time.time()
    assert site.cluster.run("scontrol", "resume", str(suspended)).returncode == 0
    time.sleep(20 * MINUTE_S)
    site.cluster.run("scancel", *map(str, everyone))
    for job in everyone:
        site.wait(f"the verdict on {job}", lambda job=job: site.finally_judged(job))  # type: ignore[misc]

    said, hours = site.job(suspended), site.job(suspended)["verdict"]["hours"]
    told = site.cluster.run("sacct", "-n", "-X", "-P", "-j", str(suspended), "-o", "ElapsedRaw,Suspended")
    elapsed, paused = told.stdout.strip().split("|")
    assert said["suspended"] == pytest.approx(clock_seconds(paused), abs=2)
    assert hours["core_hours"] * 3600 == pytest.approx(said["cores"] * int(elapsed), abs=2 * said["cores"])
    assert hours["cpu_coverage"] > 0.5
    assert not {"io-wait", "nothing-computes"} & site.conclusions(suspended)
    plots = {each["set"]: each for each in site.get("root", f"jobs/{suspended}/series")["plots"]}
    (line,) = plots["step.cpu"]["lines"]
    assert any(at < paused_from * 1000 for at in line["x"])
    assert not [at for at in line["x"] if paused_from < at / 1000 <= paused_to]

    assert [site.job(job)["component"] for job in everyone[:3]] == [
        "", f"{component}+0", f"{component}+1",
    ]  # fmt: skip
    memory = site.job(cached)["memory_efficiency"] * site.job(cached)["memory"]
    assert 300 << 20 < memory < 400 << 20
    assert "spread" in site.conclusions(half)


def test_a_job_that_scontrol_changes_while_it_runs(site: ServedSite) -> None:
    """Another time limit, and one node fewer: what it had and used before still counts."""
    options = ("-N2", "-w", "cpu-1,cpu-2", "-n2", "--ntasks-per-node=1", "--mem=100", "--time=60")
    job = site.cluster.sbatch("ann", *options, script=f"srun sh -c '{LOOP}'")
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    assert site.job(job)["time_limit"] == 3600
    time.sleep(20 * MINUTE_S)
    for change in ("TimeLimit=90", "NumNodes=1"):
        done = site.cluster.run("scontrol", "update", f"JobId={job}", change)
        assert done.returncode == 0, done.stderr
    site.wait("its other limit", lambda: site.job(job)["time_limit"] == 5400)
    site.wait("that it is smaller", lambda: site.job(job)["nodes"] == 1)
    time.sleep(20 * MINUTE_S)
    site.cluster.run("scancel", str(job))
    site.wait("its verdict", lambda: site.finally_judged(job))
    said = site.job(job)
    assert (said["node_list"], said["former_nodes"], said["cores"]) == ("cpu-1", "cpu-2", 1)
    told = site.cluster.run("sacct", "-nPXD", "-j", str(job), "-o", "Start,End,AllocCPUS").stdout
    had = since = 0.0
    for line in told.split():  # the second part may begin with the job, or where the first ended
        start, end, cores = line.split("|")
        had += (seconds(end) - max(since, seconds(start))) * int(cores)
        since = seconds(end)
    hours = said["verdict"]["hours"]
    assert hours["core_hours"] * 3600 == pytest.approx(had, abs=4)
    assert hours["cpu_coverage"] > 0.5
    assert not {"oversubscribed", "nothing-computes"} & site.conclusions(job)


def clock_seconds(text: str) -> int:
    """The seconds of [D-]HH:MM:SS, as sacct writes it."""
    days, _, clock = text.rpartition("-")
    hours, minutes, rest = clock.split(":")
    return int(days or 0) * 86400 + int(hours) * 3600 + int(minutes) * 60 + int(rest)


@contextlib.contextmanager
def forgetful(site: ServedSite) -> Iterator[None]:
    """Let Slurm forget jobs seconds after their end instead of minutes."""
    file = site.cluster.folder / "slurm.conf"
    text = file.read_text()
    file.write_text(f"{text}\nMinJobAge=2\n")
    try:
        assert site.cluster.run("scontrol", "reconfigure").returncode == 0
        yield
    finally:
        file.write_text(text)
        assert site.cluster.run("scontrol", "reconfigure").returncode == 0


def seconds(text: str) -> float:
    """Seconds since 1970, from the local time that sacct prints."""
    return time.mktime(time.strptime(text, "%Y-%m-%dT%H:%M:%S"))


def test_a_job_that_ended_while_the_server_was_away(site: ServedSite, jobs: Jobs) -> None:
    job = site.cluster.sbatch("ann", "-w", "cpu-1", script="exec sleep 300")
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    site.kill_receiver()
    site.cluster.run("scancel", str(job))
    site.wait("its end", lambda: site.cluster.state(job) == "CANCELLED")
    with forgetful(site):
        site.wait("that Slurm forgets it", lambda: site.cluster.state(job) == "")
    site.start_receiver()
    site.wait("the server's return", site.answers)
    site.wait("the end, which Slurm's accounts tell", lambda: site.job(job).get("state") == "CANCELLED")
    said = site.job(job)
    start, end = (
        site.cluster.run("sacct", "-nPX", "-j", str(job), "-o", "Start,End").stdout.strip().split("|")
    )
    assert (said["started"], said["ended"]) == tuple(map(seconds, (start, end)))
    assert said["signal"] == 15 or said["exit_code"] == 0


@pytest.mark.long
def test_jobs_are_judged_while_slurms_database_is_dead(site: ServedSite, jobs: Jobs) -> None:
    for program in ("slurmdbd", "mariadbd"):
        assert site.cluster.run("pkill", "-KILL", "-x", program).returncode == 0
    job = site.cluster.sbatch("ann", "-w", "cpu-1", "-c2", script=LOOP)
    site.wait("its start", lambda: site.job(job).get("state") == "RUNNING")
    site.cluster.run("scancel", str(job))
    site.wait("its verdict", lambda: site.finally_judged(job))
    said = site.job(job)
    assert (said["user"], said["state"], said["cores"]) == ("ann", "CANCELLED", 2)
    site.wait("its script", lambda: LOOP in site.job(job)["script"])

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
