"""A campaign whose nodes Slurm has: nodes that are down, busy or reboot, a controller that is silent. What no
real Slurm does on demand is done by fake_slurm.py.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import fake_slurm
import pytest
from launching import LIMIT, run_command
from test_campaign import PEERWAY, Campaign, record, wait_until

from peerway_measure.campaign import plan_file, slurm
from peerway_measure.campaign.journal import Journal
from peerway_measure.campaign.plan import Plan, Task
from peerway_measure.campaign.run import Runner, Unfinished
from peerway_measure.rehearse.cluster import VirtualCluster, read, why_not

pytestmark = pytest.mark.cluster


class OnSlurm(Campaign):
    """A campaign that uses the fake commands."""

    def __init__(self, folder: Path, nodes: dict[str, str], limits: str, command: str = "") -> None:
        super().__init__(folder, ", ".join(f'"{name}"' for name in nodes), 1, limits)
        self.slurm = fake_slurm.install(folder / "slurm", nodes)
        text = self.toml.read_text().replace(f'agent = "{self.agent}"', 'by = "slurm"')
        if command:
            text = text.replace(f"cat {folder}/record", f"{command}; cat {folder}/record")
        self.toml.write_text(text)
        self.environment = {**os.environ, "PATH": f"{self.slurm}:{os.environ['PATH']}"}

    @property
    def plan(self) -> Plan:
        return plan_file.read(self.toml)

    def verb(self, *words: str) -> subprocess.CompletedProcess[str]:
        return run_command([*PEERWAY, "campaign", words[0], str(self.folder), *words[1:]], self.environment)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*PEERWAY, "campaign", "run", str(self.folder), *words],
            env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def submitted(self) -> list[str]:
        log = self.slurm / "submitted"
        return log.read_text().split() if log.exists() else []

    def events(self) -> list[str]:
        return [event["event"] for event in Journal(self.folder).events()]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slurm is asked often, and time limits are short."""
    for name, seconds in (("_POLL_S", 0.2), ("_NODES_S", 0.1), ("_PATIENCE_S", 0.3)):
        monkeypatch.setattr(slurm, name, seconds)


def here(
    campaign: OnSlurm, monkeypatch: pytest.MonkeyPatch, after_each: Callable[[], None] = lambda: None
) -> tuple[Unfinished, list[str]]:
    """Run it in this process to its end; returns what is left and what was printed. `after_each` is called
    after each message.
    """
    monkeypatch.setenv("PATH", campaign.environment["PATH"])
    messages: list[str] = []

    def keep(message: str) -> None:
        messages.append(message)
        after_each()

    journal = Journal(campaign.folder)
    with journal.held():
        return Runner(campaign.plan, journal, slurm.Slurm(campaign.plan, journal), keep).run(), messages


def test_nothing_is_submitted_to_a_node_that_is_down_and_others_go_on(tmp_path: Path) -> None:
    campaign = OnSlurm(
        tmp_path, {"n1": "down*", "n2": "idle", "n3": "drained"}, 'nodes_at_once = 1\ntime = "1s"'
    )
    done = campaign.run()
    assert done.returncode == 1
    assert campaign.submitted() == ["n2"]
    assert "not measured: n1: Slurm has it down*" in done.stderr
    assert "no job now on n3: Slurm has it drained" in done.stdout
    fake_slurm.tell(campaign.slurm, {"n1": "idle", "n2": "idle", "n3": "idle"})
    assert campaign.run().returncode == 0
    assert sorted(campaign.submitted()) == ["n1", "n2", "n3"]


def test_free_nodes_come_first_and_a_busy_one_is_waited_for(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes = {"n1": "allocated", "n2": "idle", "n3": "allocated"}
    campaign = OnSlurm(tmp_path, nodes, "nodes_at_once = 1")

    def let_go() -> None:
        wait_until(lambda: len(campaign.results()) == 1 and len(campaign.submitted()) == 2)
        jobs = campaign.slurm / "jobs"
        wait_until(lambda: any(jobs.iterdir()))
        fake_slurm.tell(campaign.slurm, dict.fromkeys(nodes, "idle"))
        waiting = next(jobs.iterdir())
        command = waiting.read_text().split("\n", 3)[3]
        subprocess.run(["sh", "-c", command], check=False)
        waiting.unlink(missing_ok=True)

    other = threading.Thread(target=let_go)
    other.start()
    remaining, _ = here(campaign, monkeypatch)
    other.join()
    assert remaining.why == {}
    assert campaign.submitted()[0] == "n2"
    assert len(campaign.results()) == 3


def test_a_job_that_waits_long_gives_its_place_to_a_free_node(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "allocated", "n2": "allocated"}, "nodes_at_once = 1")

    def free_the_other() -> None:
        wait_until(campaign.submitted)
        other = {"n1": "n2", "n2": "n1"}[campaign.submitted()[0]]
        fake_slurm.tell(campaign.slurm, {"n1": "allocated", "n2": "allocated", other: "idle"})
        wait_until(lambda: len(campaign.results()) == 1)
        fake_slurm.tell(campaign.slurm, {"n1": "idle", "n2": "idle"})

    other = threading.Thread(target=free_the_other)
    other.start()
    remaining, _ = here(campaign, monkeypatch)
    other.join()
    assert remaining.why == {}
    first, second, third = campaign.submitted()
    assert first == third != second
    assert "failed" not in campaign.events()


def test_a_job_that_still_waits_when_the_window_closes_is_withdrawn(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "allocated"}, 'nodes_at_once = 1\nwindow = "20:00-06:00"')
    night = threading.Event()
    night.set()
    monkeypatch.setattr(Plan, "is_open", property(lambda _: night.is_set()))
    monkeypatch.setattr("peerway_measure.campaign.run._WAIT_S", 0.05)

    def a_day() -> None:
        wait_until(campaign.submitted)
        night.clear()
        wait_until(lambda: not any((campaign.slurm / "jobs").iterdir()))
        fake_slurm.tell(campaign.slurm, {"n1": "idle"})
        night.set()

    other = threading.Thread(target=a_day)
    other.start()
    remaining, _ = here(campaign, monkeypatch)
    other.join()
    assert remaining.why == {}
    assert campaign.submitted() == ["n1", "n1"]
    assert "failed" not in campaign.events()


def test_a_job_that_could_not_become_a_keeper_says_why(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "idle"}, "nodes_at_once = 1\ntries = 1")
    monkeypatch.setattr(sys, "executable", "/opt/of the head/python")
    remaining, messages = here(campaign, monkeypatch)
    assert list(remaining.why) == ["0000.t.n1"]
    why = "it ended without a report: its job said: 1: exec: /opt/of the head/python: not found"
    assert f"0000.t.n1 failed: {why}" in messages
    assert not [*(campaign.folder / "running").glob("*.job")]


def test_a_submission_that_was_lost_is_found_again(tmp_path: Path) -> None:
    """The runner dies after sbatch and before it notes the job's number."""
    go = tmp_path / "go"
    campaign = OnSlurm(
        tmp_path, {"n1": "idle"}, "nodes_at_once = 1", f"while [ ! -e {go} ]; do sleep 0.1; done"
    )
    (campaign.slurm / "hangs").touch()
    first = campaign.start()
    wait_until(campaign.submitted)
    first.kill()
    first.communicate()
    (campaign.slurm / "hangs").unlink()
    assert "submitted" not in campaign.events()
    second = campaign.start()
    assert second.stderr is not None
    assert "waiting for 1 measurement of an earlier run" in second.stderr.readline()
    go.touch()
    _, err = second.communicate(timeout=LIMIT)
    assert second.returncode == 0, err
    assert campaign.submitted() == ["n1"]


def test_a_controller_that_is_silent_is_waited_for(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "idle", "n2": "idle"}, "nodes_at_once = 2")
    real, silenced = slurm.Slurm.start, list[Task]()
    silent = campaign.slurm / "silent"

    def start(self: slurm.Slurm, task: Task) -> None:
        if not silenced:
            silenced.append(task)
            silent.touch()
        real(self, task)

    monkeypatch.setattr(slurm.Slurm, "start", start)
    remaining, messages = here(campaign, monkeypatch, lambda: silent.unlink(missing_ok=True))
    assert remaining.why == {}
    assert "waiting for n1, n2: Slurm does not answer: " in messages[0], messages
    assert "failed" not in campaign.events()
    assert len(campaign.results()) == 2


def test_a_submission_without_an_answer_is_no_failure_and_not_made_twice(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "idle"}, "nodes_at_once = 1", "sleep 15")
    (campaign.slurm / "hangs").touch()
    real = slurm.Slurm.start

    def start(self: slurm.Slurm, task: Task) -> None:
        monkeypatch.setattr(slurm, "_SLURM_S", 10)
        real(self, task)
        monkeypatch.setattr(slurm, "_SLURM_S", 60)

    monkeypatch.setattr(slurm.Slurm, "start", start)
    remaining, _ = here(campaign, monkeypatch)
    (campaign.slurm / "hangs").unlink()
    assert remaining.why == {}
    assert campaign.submitted() == ["n1"]
    assert "failed" not in campaign.events()


def test_a_job_that_finds_another_keeper_at_work_has_not_failed(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "idle"}, "nodes_at_once = 1")
    running = campaign.folder / "running"
    running.mkdir()
    lock = (running / "0000.t.n1.lock").open("a")
    fcntl.flock(lock, fcntl.LOCK_EX)

    def measure() -> None:
        wait_until(campaign.submitted)
        wait_until(lambda: not any((campaign.slurm / "jobs").iterdir()))
        time.sleep(1)  # the runner sees a job that ended, and no result
        (campaign.folder / "results" / "0000.t.n1.jsonl").write_text((tmp_path / "record").read_text())
        lock.close()

    other = threading.Thread(target=measure)
    # The runner itself must not take the lock for a keeper of an earlier pass.
    monkeypatch.setattr(slurm.Slurm, "running", _not_at_first(slurm.Slurm.running))
    other.start()
    remaining, _ = here(campaign, monkeypatch)
    other.join()
    assert remaining.why == {}
    assert campaign.submitted() == ["n1"]
    assert "failed" not in campaign.events()


def _not_at_first(real: object) -> object:
    calls: list[object] = []

    def running(self: slurm.Slurm, names: set[str]) -> set[str]:
        calls.append(names)
        return real(self, names) if len(calls) > 1 else set()  # type: ignore[operator,no-any-return]

    return running


def test_of_two_nodes_the_one_that_slurm_has_down_failed(
    tmp_path: Path, quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies = f"(echo n1 idle; echo n2 down) >{tmp_path}/slurm/nodes; kill -9 $PPID; exit 1"  # its keeper, too
    command = f"[ -e {tmp_path}/once ] || {{ touch {tmp_path}/once; {dies}; }}"
    campaign = OnSlurm(tmp_path, {"n1": "idle", "n2": "idle"}, 'nodes_at_once = 2\ntime = "1s"', command)
    with campaign.toml.open("a") as toml:
        toml.write("nodes = 2\n")
    remaining, messages = here(campaign, monkeypatch)
    assert any("failed on n2: it ended without a report" in line for line in messages), messages
    assert remaining.lines == ["n2: Slurm has it down"]


def test_a_command_of_slurm_that_is_not_here_is_named(tmp_path: Path) -> None:
    campaign = OnSlurm(tmp_path, {"n1": "idle"}, "nodes_at_once = 1\nbusy = 0.5")
    (campaign.slurm / "sinfo").unlink()
    campaign.environment["PATH"] = str(campaign.slurm)
    done = campaign.run()
    assert done.returncode == 1
    assert 'there is no sinfo here; run this where Slurm\'s commands are, or say launch.by = "hosts"' in (
        done.stderr
    )


def initialised(tmp_path: Path, nodes: dict[str, str]) -> str:
    """The file that `campaign init` makes for these nodes and their GRES."""
    folder = fake_slurm.install(tmp_path / "slurm", nodes)
    subprocess.run(
        [*PEERWAY, "campaign", "init", str(tmp_path / "new")],
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"}, capture_output=True, check=True,
    )  # fmt: skip
    return (tmp_path / "new" / plan_file.NAME).read_text()


def test_hostile_names_of_slurm_stay_texts_in_the_file(tmp_path: Path) -> None:
    text = initialised(tmp_path, {'n"];\\x\x7f': "(null)", "n2": "(null)"})
    assert tomllib.loads(text)["nodes"] == {"partition features": ['n"];\\x\\x7f', "n2"]}
    with pytest.raises(plan_file.BadPlan, match=r"^f:7:1: ") as refused:
        plan_file.parse(text, "f")
    assert "is not a host" in str(refused.value)


def test_init_proposes_tests_of_gpus_for_types_that_have_them(tmp_path: Path) -> None:
    without = plan_file.parse(initialised(tmp_path / "a", {"n1": "(null)", "n2": "shard:8"}))
    assert [test.name for test in without.tests] == ["storage"]
    proposed = plan_file.parse(initialised(tmp_path / "b", {"n1": "gpu:a100:1(S:0)"}))
    assert [test.name for test in proposed.tests] == ["storage", "gpudirect", "gds"]
    several = plan_file.parse(initialised(tmp_path / "c", {"n1": "gpu:h100:8", "n2": "gpu:4(S:0-1),shard:8"}))
    assert [test.name for test in several.tests] == ["storage", "gpudirect", "p2p", "gds"]
    assert several.tests[2].types == ("partition features",)


CLUSTER = """
[[nodes]]
name = "cpu"
count = 3
cores = 2
memory_mb = 4000
[[partitions]]
name = "all"
nodes = ["cpu"]
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[VirtualCluster]:
    file = tmp_path / "cluster.toml"
    file.write_text(CLUSTER)
    description = read(file)
    if why := why_not(description):
        pytest.skip(why)
    with VirtualCluster(description) as virtual:
        yield virtual


@pytest.mark.long  # 44 s; the tests beside it have nodes that are down, and keepers and answers that are lost
def test_a_node_that_reboots_in_the_middle_is_measured_when_it_is_back(cluster: VirtualCluster) -> None:
    home = cluster.folder / "home"  # which all nodes see
    folder = home / "campaign"
    folder.mkdir()
    (home / "record").write_text(record())
    (folder / "campaign.toml").write_text(
        'repeats = 4\n[nodes]\ncpu = ["cpu-[1-3]"]\n[launch]\nby = "slurm"\n'
        '[limits]\nnodes_at_once = 3\ntime = "60s"\n[[tests]]\nname = "t"\n'
        f'command = "while [ -e {home}/hold ]; do sleep 0.1; done; cat {home}/record"\n'
    )
    log = home / "log"
    (home / "hold").touch()
    words = [sys.executable, "-m", "peerway", "campaign", "run", str(folder)]
    program = cluster.popen("head", *words, log=log, HOME=str(home))
    wait_until(lambda: len(list((folder / "running").glob("*.lock"))) == 3 or program.poll() is not None)
    assert program.poll() is None, log.read_text()
    cluster.kill_node("cpu-2")
    (home / "hold").unlink()
    wait_until(lambda: "waiting for cpu-2: Slurm has it down" in log.read_text())
    cluster.boot_node("cpu-2")
    assert program.wait(300) == 0, log.read_text()
    results = sorted(path.name for path in (folder / "results").glob("*.jsonl"))
    assert results == [f"{n:04}.t.cpu-{i}.jsonl" for n in range(4) for i in (1, 2, 3)]
    failed = [event["id"] for event in Journal(folder).events() if event["event"] == "failed"]
    assert {name.rpartition(".")[2] for name in failed} == {"cpu-2"}
