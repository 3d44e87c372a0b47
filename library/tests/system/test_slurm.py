"""The same program, unchanged, as a step of a real Slurm of two nodes on this host, which the test starts and
stops; and `peerway run` in an allocation of both."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest
from launching import LIMIT, Run, clean_environment, peerway
from mpi_stacks import STACKS, build
from ping_pong import PING_PONG
from ports import free_ports

from peerway_measure.records import Record
from peerway_trace.messages import match, match_signals
from peerway_trace.rings import Kind
from peerway_trace.store import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "salloc", "sbatch", "scontrol", "sinfo")
NODES = ("node1", "node2")
PACKAGES = "munge slurmctld slurmd slurm-client"

CONFIGURATION = """
ClusterName=peerway
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
SlurmctldPort={controller}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/backfill
ReturnToService=2
MpiDefault=none
SwitchType=switch/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MailProg=/bin/true
SlurmdParameters=config_overrides
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4 State=UNKNOWN
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={second} CPUs=4 State=UNKNOWN
PartitionName=debug Nodes=node[1-2] Default=YES MaxTime=60 State=UP
"""


def find(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")


class Cluster:
    """Our own munged, slurmctld and slurmd, all in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._daemons: list[subprocess.Popen[bytes]] = []
        for name in ("state", "spool-node1", "spool-node2"):
            (folder / name).mkdir()
        controller, first, second = free_ports(3)
        text = CONFIGURATION.format(
            folder=folder, host=socket.gethostname().split(".")[0],
            controller=controller, first=first, second=second,
        )  # fmt: skip
        (folder / "slurm.conf").write_text(text)
        key = folder / "munge.key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)

    @property
    def environment(self) -> dict[str, str]:
        return clean_environment(SLURM_CONF=str(self.folder / "slurm.conf"))

    def start(self) -> None:
        files = {"socket": "munge.socket", "key-file": "munge.key", "pid-file": "munge.pid"}
        files |= {"log-file": "munge.log", "seed-file": "munge.seed"}
        self._daemon(
            "munged",
            "--foreground",
            "--force",
            *(f"--{name}={self.folder / file}" for name, file in files.items()),
        )
        deadline = time.monotonic() + LIMIT
        while not (self.folder / "munge.socket").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self._daemon("slurmctld", "-D")
        for node in NODES:
            self._daemon("slurmd", "-D", "-N", node)

    def _daemon(self, program: str, *arguments: str) -> None:
        path = find(program)
        assert path is not None
        with (self.folder / f"{program}{len(self._daemons)}.out").open("wb") as out:
            self._daemons.append(
                subprocess.Popen(
                    [path, *arguments], env=self.environment, stdout=out, stderr=subprocess.STDOUT
                )
            )

    def ready(self) -> bool:
        done = subprocess.run(
            ["timeout", "5", "sinfo", "-h", "-N", "-o", "%T"],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.split() == ["idle"] * len(NODES)

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.skip("only root can start Slurm's daemons")
    if missing := [program for program in PROGRAMS if find(program) is None]:
        pytest.skip(f"{', '.join(missing)} not installed (apt-get install {PACKAGES})")
    cluster = Cluster(tmp_path_factory.mktemp("slurm"))
    cluster.start()
    try:
        deadline = time.monotonic() + LIMIT
        while not cluster.ready():
            if time.monotonic() > deadline:
                logs = [path.read_text(errors="replace")[-2000:] for path in cluster.folder.glob("*.out")]
                pytest.fail("the Slurm of the test does not come up:\n" + "\n".join(logs))
            time.sleep(0.2)
        yield cluster
    finally:
        cluster.stop()


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_srun(cluster: Cluster, team_program: Path, run: Run, ranks: int) -> None:
    command = ["srun", "-n", str(ranks), str(team_program), "gather", "barrier", "again", "gather"]
    done = run(command, env=cluster.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    expected = [f"gathered {rank} of {ranks}" for rank in range(ranks)] * 2
    assert sorted(done.stdout.splitlines()) == sorted(expected)


def test_two_steps_at_once_do_not_meet(cluster: Cluster, team_program: Path) -> None:
    command = ["srun", "--overlap", "-n", "2", str(team_program), *(["gather", "again"] * 5)]
    steps = [
        subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for step in steps:
        out, _ = step.communicate(timeout=LIMIT)
        assert step.returncode == 0
        assert len(out.splitlines()) == 10


def test_a_killed_rank_is_told_to_the_others(cluster: Cluster, team_program: Path, run: Run) -> None:
    program = [str(team_program), "gather", "die", "0", "expect", "0", "fails"]
    done = run(["srun", "-n", "3", "--kill-on-bad-exit=0", *program], env=cluster.environment)
    assert done.stdout.splitlines().count("rank 0 is lost") == 2, done.stdout + done.stderr


def test_a_batch_script_itself_is_a_team_of_one(
    cluster: Cluster, team_program: Path, run: Run, tmp_path: Path
) -> None:
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n{team_program} gather\nsrun -n 2 {team_program} gather\n")
    command = ["sbatch", "--wait", "-n", "2", "-o", str(tmp_path / "out"), str(script)]
    done = run(command, env=cluster.environment)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out").read_text().splitlines()
    assert sorted(lines) == ["gathered 0 of 1", "gathered 0 of 2", "gathered 1 of 2"]


def test_pmix(cluster: Cluster, team_program: Path, run: Run) -> None:
    kinds = run(["srun", "--mpi=list"], env=cluster.environment)
    if "pmix" not in kinds.stdout + kinds.stderr:
        pytest.skip("this Slurm has no PMIx plugin")
    command = ["srun", "--mpi=pmix", "-n", "2", str(team_program), "gather", "again", "gather"]
    done = run(command, env={**cluster.environment, "PEERWAY_LAUNCHER": "pmix"})
    if "can not load PMIx library" in done.stderr:
        pytest.skip("Slurm's plugin finds no libpmix.so (apt-get install libpmix-dev)")
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(done.stdout.splitlines()) == 4


def test_a_step_under_srun_is_traced(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """The trace has the ranks of both nodes and their messages; a failing program keeps its exit status."""
    folder = tmp_path / "trace"
    program = [sys.executable, "-c", textwrap.dedent(PING_PONG), "20", "3"]
    step = ["srun", "--quiet", "--kill-on-bad-exit=0", "-N", "2", "-n", "2", *program]
    done = run(peerway("trace", "-o", str(folder), "--", *step), env=cluster.environment)
    assert done.returncode == 3, done.stdout + done.stderr
    trace = load(folder)
    assert trace.ranks == [0, 1]
    assert trace.dropped == 0
    puts = trace.where(trace["kind"] == Kind.PUT)
    assert sorted(zip(puts.rank.tolist(), puts["peer"].tolist(), strict=True)) == sorted(
        [(0, 1)] * 20 + [(1, 0)] * 20
    )
    assert len(match_signals(trace).first) == 40
    assert not (folder / "rings").exists()


def test_an_mpi_program_under_srun_is_traced(
    cluster: Cluster, run: Run, shared_cache: str, tmp_path: Path
) -> None:
    kinds = run(["srun", "--mpi=list"], env=cluster.environment)
    if "pmi2" not in kinds.stdout + kinds.stderr:
        pytest.skip("this Slurm has no PMI-2, by which MPICH starts")
    program = build("mpich-debian", "mpi_calls", tmp_path)
    compiler = str(STACKS["mpich-debian"][1])
    step = ["srun", "--quiet", "--mpi=pmi2", "-N", "2", "-n", "2", str(program)]
    words = peerway("trace", "-o", str(tmp_path / "trace"), "--mpicc", compiler, "--", *step)
    done = run(words, env={**cluster.environment, "PEERWAY_CACHE": shared_cache})
    assert done.returncode == 0, done.stdout + done.stderr
    trace = load(tmp_path / "trace")
    assert trace.ranks == [0, 1]
    pairs = match(trace)
    assert len(pairs.first) == 2 * (15 + 1) + 1  # as many as under mpiexec
    assert len(pairs.alone_first) == len(pairs.alone_second) == 0


def test_peerway_run_starts_its_ranks_on_the_nodes_of_an_allocation(
    cluster: Cluster, team_program: Path, run: Run, tmp_path: Path
) -> None:
    """The secret is on no command line there either, and a failing rank ends the other rank on its node."""
    allocation = ["salloc", "--quiet", "-N", "2", "--ntasks-per-node=2"]
    job = peerway("run", "-n", "4", "--", str(team_program), "gather")
    done = run([*allocation, *job], env=cluster.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == [f"gathered {rank} of 4" for rank in range(4)]
    script = (
        "echo $SLURMD_NODENAME $PEERWAY_LOCAL_RANK;"
        " printenv PEERWAY_SECRET | grep -las -f - /proc/[0-9]*/cmdline;"
        "touch $PEERWAY_RANK; until [ -e 0 ] && [ -e 1 ] && [ -e 2 ] && [ -e 3 ]; do sleep 0.05; done;"
        "[ $PEERWAY_RANK = 3 ] && exit 7; sleep 600"
    )
    job = peerway("run", "-n", "4", "--grace", "0.2", "--", "sh", "-c", script)
    done = run([*allocation, *job], env=cluster.environment, cwd=tmp_path)
    assert done.returncode == 7, done.stdout + done.stderr
    assert sorted(done.stdout.splitlines()) == ["node1 0", "node1 1", "node2 0", "node2 1"]
    assert done.stderr.startswith("peerway: rank 3 (process "), done.stderr


@pytest.mark.long
def test_a_campaign_is_submitted_and_resumed(cluster: Cluster, run: Run, tmp_path: Path) -> None:
    """Jobs continue when the runner is killed; the next runner waits for them
    and submits only what is missing.
    """
    record = Record.from_samples(
        [1e6], test="file_write_bw", via="posix", op="write", shape="one", bytes=8, ranks=1, source="host",
        target="file", validated=True, cpu_percent=None, host="x", device="", driver="", version="0",
    )  # fmt: skip
    (tmp_path / "record").write_text(record.as_json() + "\n")
    folder = tmp_path / "campaign"
    init = run(peerway("campaign", "init", str(folder)), env=cluster.environment)
    text = (folder / "campaign.toml").read_text()
    assert "debug" in text and '["node1", "node2"]' in text, init.stderr  # noqa: PT018
    command = f"echo $SLURMD_NODENAME $SLURM_JOB_ID >> {tmp_path}/jobs; sleep 2; cat {tmp_path}/record"
    text = (
        text[: text.index("[[tests]]")]
        .replace("repeats = 25", "repeats = 2")
        .replace("nodes_at_once = 1", "nodes_at_once = 2")
    )
    (folder / "campaign.toml").write_text(f'{text}[[tests]]\nname = "t"\ncommand = "{command}"\n')
    first = subprocess.Popen(
        peerway("campaign", "run", str(folder)), env=cluster.environment, stderr=subprocess.DEVNULL
    )
    deadline = time.monotonic() + LIMIT
    while not (tmp_path / "jobs").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    first.kill()
    first.wait()
    done = run(peerway("campaign", "run", str(folder)), env=cluster.environment)
    assert done.returncode == 0, done.stderr
    assert "of an earlier run" in done.stderr
    jobs = [line.split() for line in (tmp_path / "jobs").read_text().splitlines()]
    assert sorted(node for node, _ in jobs) == ["node1", "node1", "node2", "node2"]
    assert len(list((folder / "results").glob("*.jsonl"))) == 4
