"""`peerway run`, `bench` and `tune` over several hosts, which are network namespaces here. An agent
reaches them as ssh would, and ranks on different ones share no memory (PEERWAY_HOST_ID)."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hosts import Network
from launching import LIMIT, clean_environment, peerway

from peerway import _core
from peerway_measure import records
from peerway_measure.tune import draft


class Cluster:
    """Two hosts, and a launcher on a third."""

    def __init__(self, network: Network, folder: Path) -> None:
        self.names = network.names[:2]
        self.folder = folder
        self._settings: dict[str, str] = {}
        self._network = network
        self._agent = folder / "agent"
        self._agent.write_text(
            "#!/bin/sh\nhost=$1; shift; export PEERWAY_HOST_ID=$host\n"
            'exec ip netns exec "$host" unshare --uts sh -c "hostname $host; exec $*"\n'
        )
        self._agent.chmod(0o755)

    def include_the_launchers_host(self) -> None:
        """Make the launcher's host the first one. The other is reached as if by ssh, because an agent that
        is named would reach the launcher's host as well.
        """
        self.names = ["localhost", self.names[1]]
        ssh = self.folder / "ssh"
        ssh.write_text(
            f'#!/bin/sh\nwhile [ "$1" != {self.names[1]} ]; do shift; done\nexec {self._agent} "$@"\n'
        )
        ssh.chmod(0o755)
        self._settings["PATH"] = f"{self.folder}:{os.environ['PATH']}"

    def command(self, verb: str, *arguments: object, slots: str = "") -> list[str]:
        hosts = ",".join(name + slots for name in self.names)
        agent = [] if "localhost" in self.names else ["--launch-agent", str(self._agent)]
        return self._network.from_head(peerway(verb, "--hosts", hosts, *agent, *map(str, arguments)))

    def start(self, verb: str, *arguments: object, **settings: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.command(verb, *arguments), env=clean_environment(**self._settings, **settings),
            cwd=self.folder, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def run(self, verb: str, *arguments: object, text: str = "", **settings: str) -> tuple[int, str, str]:
        with self.start(verb, *arguments, **settings) as process:
            printed, errors = process.communicate(text, timeout=LIMIT)
        return process.returncode, printed, errors

    def processes(self) -> list[str]:
        """The processes of this folder's jobs on all hosts."""
        lines = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                here = (folder / "cwd").resolve() == self.folder
            except OSError:
                continue
            if here and words and int(folder.name) != os.getpid():
                lines.append(f"{folder.name} {words}")
        return lines

    def wait_for(self, condition: Callable[[], object], description: str) -> None:
        until = time.monotonic() + LIMIT
        while not condition():
            assert time.monotonic() < until, f"not in time: {description}; {self.processes()}"
            time.sleep(0.05)


@pytest.fixture
def cluster(hosts: Network, tmp_path: Path) -> Cluster:
    return Cluster(hosts, tmp_path)


def test_ranks_of_two_hosts_meet(cluster: Cluster, team_program: Path) -> None:
    status, printed, errors = cluster.run(
        "run", "-n", 4, "--", team_program, "gather", "barrier", "again", "gather"
    )
    assert status == 0, errors
    assert sorted(printed.splitlines()) == sorted([f"gathered {rank} of 4" for rank in range(4)] * 2)
    assert cluster.processes() == []


TOLD = """
import json, os, socket, subprocess, sys
told = {name: os.environ[f"PEERWAY_{name}"] for name in ("RANK", "SIZE", "LOCAL_RANK", "LOCAL_SIZE")}
secret = os.environ["PEERWAY_SECRET"].encode()
seen = [one for one in os.listdir("/proc") if one.isdigit() and os.path.exists(f"/proc/{one}/cmdline")
        and secret in open(f"/proc/{one}/cmdline", "rb").read()]
told |= {"folder": os.getcwd(), "mine": os.environ["MINE"], "host": socket.gethostname(), "seen": seen}
told |= {"secret": len(secret), "arguments": sys.argv[1:], "input": sys.stdin.read()}
sys.stdout.write(json.dumps(told) + "\\n")
"""


def test_environment_folder_arguments_and_input_arrive_and_the_secret_is_on_no_command_line(
    cluster: Cluster,
) -> None:
    (cluster.folder / "told.py").write_text(TOLD)
    words = ("a b", "$HOME", "'", "")
    text = "line\n" * 100_000  # more than any pipe holds
    status, printed, errors = cluster.run(
        "run", "-n", 3, "--", sys.executable, "told.py", *words, text=text, MINE="two words\n'"
    )
    assert status == 0, errors
    reports = sorted((json.loads(line) for line in printed.splitlines()), key=lambda each: each["RANK"])
    assert [each["host"] for each in reports] == [cluster.names[0], cluster.names[0], cluster.names[1]]
    assert [(each["LOCAL_RANK"], each["LOCAL_SIZE"]) for each in reports] == [
        ("0", "2"),
        ("1", "2"),
        ("0", "1"),
    ]
    assert [each["input"] == text for each in reports] == [True, False, False]
    for each in reports:
        assert (each["SIZE"], each["secret"], each["seen"]) == ("3", 32, [])
        assert (each["folder"], each["mine"]) == (str(cluster.folder), "two words\n'")
        assert each["arguments"] == list(words)


ROBBED = """
import errno, os, socket, peerway
texts = os.environ["PEERWAY_RENDEZVOUS"].split(",")
addresses = [text.removeprefix("tcp:").rpartition(":") for text in texts]
for _ in range(2):  # a second team of the job listens at the same port
    taken = []
    for host, _, port in addresses if os.environ["PEERWAY_RANK"] == "0" else []:
        try:
            taken.append(socket.create_server((host, int(port))))
        except OSError as error:
            assert error.errno == errno.EADDRINUSE, error
    with peerway.Team.from_launcher() as team:
        print(f"rank {team.rank} of {team.size}", flush=True)
        team.barrier()
"""


@pytest.mark.parametrize("first", ["another host", "the launcher's host"])
def test_no_process_takes_the_port_before_rank_0_listens(cluster: Cluster, first: str) -> None:
    (cluster.folder / "robbed.py").write_text(ROBBED)
    if first == "the launcher's host":
        cluster.include_the_launchers_host()
    status, printed, errors = cluster.run("run", "-n", 2, "--", sys.executable, "robbed.py")
    assert status == 0, errors
    assert sorted(printed.splitlines()) == ["rank 0 of 2"] * 2 + ["rank 1 of 2"] * 2
    assert cluster.processes() == []


# Each rank leaves a child, and a daemon that has left its process group.
SCRIPT = "sleep 600 & setsid sleep 600 & echo ready; "


@pytest.mark.parametrize(
    ("script", "code"),
    [
        pytest.param("exit 5", 5, id="status"),
        pytest.param("kill -KILL $$", 128 + signal.SIGKILL, id="signal"),
        pytest.param("exit 255", 255, id="as ssh fails"),
    ],
)
def test_a_rank_that_fails_ends_the_others_on_all_hosts(cluster: Cluster, script: str, code: int) -> None:
    both = "touch $PEERWAY_RANK; until [ -e 0 ] && [ -e 1 ]; do sleep 0.05; done"
    script = f"{SCRIPT} {both}; [ $PEERWAY_RANK = 1 ] && {script}; wait"
    status, printed, errors = cluster.run("run", "-n", 2, "--grace", "0.2", "--", "sh", "-c", script)
    assert (status, printed) == (code, "ready\n" * 2), errors
    assert re.match(rf"peerway: rank 1 \(process \d+ on {cluster.names[1]}\) ", errors), errors
    assert cluster.processes() == []


def two_ready(cluster: Cluster, script: str) -> subprocess.Popen[str]:
    job = cluster.start("run", "-n", 2, "--grace", "0.2", "--", "sh", "-c", script)
    assert job.stdout is not None
    assert [job.stdout.readline() for _ in range(2)] == ["ready\n"] * 2
    return job


def test_signals_reach_the_ranks_of_all_hosts(cluster: Cluster) -> None:
    script = (
        "trap 'echo got INT; exit 0' INT; trap 'echo got USR1' USR1; echo ready; while :; do sleep 0.05; done"
    )
    with two_ready(cluster, script) as job:
        job.send_signal(signal.SIGUSR1)
        assert job.stdout is not None
        assert [job.stdout.readline() for _ in range(2)] == ["got USR1\n"] * 2
        job.send_signal(signal.SIGINT)
        assert job.communicate(timeout=LIMIT)[0] == "got INT\n" * 2
    assert job.returncode == 0
    assert cluster.processes() == []


@pytest.mark.parametrize(
    ("killed", "script"),
    [
        pytest.param(" run --hosts", SCRIPT, id="the launcher"),
        pytest.param("launch.stand_in", SCRIPT, id="a stand-in"),
        pytest.param("launch.keeper", "sleep 600 & echo ready; ", id="a keeper"),
    ],
)
def test_whatever_dies_ends_the_ranks_of_all_hosts(cluster: Cluster, killed: str, script: str) -> None:
    with two_ready(cluster, script + "wait") as job:
        victim = next(int(each.split()[0]) for each in cluster.processes() if killed in each)
        os.kill(victim, signal.SIGKILL)
        _, errors = job.communicate(timeout=LIMIT)
    cluster.wait_for(lambda: not cluster.processes(), "the end of all that was started")
    assert job.returncode != 0
    if "keeper" in killed:
        assert "peerway: the connection to host peerway" in errors
        assert job.returncode == 255


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        pytest.param("false", "no rank can be started on host {host}: false {host} ", id="refuses"),
        pytest.param(
            "no-such-agent",
            "host {host} cannot be reached: no-such-agent cannot be run: No such file or directory",
            id="missing",
        ),
    ],
)
def test_a_host_that_cannot_be_reached_is_named(cluster: Cluster, agent: str, words: str) -> None:
    command = peerway(
        "run", "-n", "2", "--hosts", ",".join(cluster.names), "--launch-agent", agent, "--", "true"
    )
    done = subprocess.run(command, env=clean_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("peerway: " + words.format(host=cluster.names[0]))
    assert "Traceback" not in done.stderr


def test_ssh_is_the_agent_and_asks_nobody(tmp_path: Path) -> None:
    """A fake ssh records its arguments and runs the command on this host."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        '#!/bin/sh\necho "$@" >> calls\n'
        'while [ "$1" != node1 ]; do shift; done; shift\nexec sh -c "exec $*"\n'
    )
    ssh.chmod(0o755)
    environment = clean_environment(PATH=f"{tmp_path}:{os.environ['PATH']}")
    command = peerway("run", "-n", "1", "--hosts", "node1", "--", "sh", "-c", "echo $PEERWAY_RANK; exit 3")
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "0\n"), done.stderr
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 2
    assert all("-o BatchMode=yes" in call and "node1" in call for call in calls)


@pytest.mark.parametrize("code", [0, 3])
def test_what_holds_the_port_ends_in_good_order(tmp_path: Path, code: int) -> None:
    """Slurm, for one, keeps the exit code of each step."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\nshift; sh -c "$*"; echo "$? $*" >> ends\n')
    agent.chmod(0o755)
    job = ("run", "-n", "2", "--hosts", "node1", "--launch-agent", str(agent), "--grace", "0.2", "--")
    command = peerway(*job, "sh", "-c", f"[ $PEERWAY_RANK = 0 ] || exit {code}; exit 0")
    done = subprocess.run(
        command, env=clean_environment(), cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    ends = [line.split() for line in (tmp_path / "ends").read_text().splitlines()]
    assert [end[0] for end in ends if end[-1] == "peerway.launch.rendezvous"] == ["0"]


def test_deaths_are_heard_of_after_rank_0_has_left(cluster: Cluster) -> None:
    """Both for the ranks on the other host and for those on rank 0's host."""
    program = Path(__file__).parent / "programs" / "without_rank_0.py"
    victim = 3
    arguments = ("-n", 4, "--grace", LIMIT, "--", sys.executable, program, victim)
    with cluster.start("run", *arguments) as job:
        assert job.stdout is not None
        processes = dict(json.loads(job.stdout.readline()) for _ in range(3))
        os.kill(processes[victim], signal.SIGKILL)
        printed, errors = job.communicate(timeout=LIMIT)
    reports = sorted(json.loads(line) for line in printed.splitlines())
    assert [(rank, kind) for rank, kind, _ in reports] == [(1, "PeerLost"), (2, "PeerLost")], errors
    assert all("rank 3 was lost" in message for _, _, message in reports), reports


def test_ranks_of_one_host_in_two_networks_prepare_plans(cluster: Cluster) -> None:
    """They share memory, but cannot reach each other's Unix sockets."""
    agent = cluster.folder / "agent"
    agent.write_text(agent.read_text().replace("export PEERWAY_HOST_ID=$host", ""))
    program = Path(__file__).parent / "programs" / "ends_alike.py"
    status, printed, errors = cluster.run("run", "-n", 4, "--", sys.executable, program)
    assert (status, len(printed.splitlines())) == (0, 4), errors


def test_bench_measures_between_hosts(cluster: Cluster) -> None:
    out = cluster.folder / "a.jsonl"
    arguments = ("put_latency", "--quick", "--device", "host", "--sizes", "8,4K", "--out", out)
    status, _, errors = cluster.run("bench", *arguments)
    assert status == 0, errors
    measured = records.read(out)
    assert all(record.validated for record in measured)
    assert {record.host for record in measured} == {",".join(cluster.names)}
    assert {record.via for record in measured} >= {"route"}
    assert not [record.via for record in measured if record.via.startswith("peer/") or record.via == "flag"]
    assert cluster.processes() == []


@pytest.mark.long
def test_tune_adds_what_lies_between_hosts(cluster: Cluster) -> None:
    """It adds to the table of pairs within a host, which stays."""
    table = cluster.folder / "routes.json"
    within = {("put", "contiguous", "host->host"): {"staged": [(8, 1.0, 0.1), (4096, 2.0, 0.1)]}}
    _core.save_table(_core.table_text(json.dumps(draft.table(within, [], {}, {}, 0))), str(table))
    with cluster.start("tune", "--quick", "--device", "host", "--paths", "ucx", "--out", table) as job:
        printed, errors = job.communicate()
    assert job.returncode == 0, errors
    written = json.loads(table.read_text())
    assert {cost["pair"] for cost in written["costs"]} == {"host->host", "remote:host->host"}
    kept = [cost for cost in written["costs"] if cost["pair"] == "host->host"]
    assert [point[:2] for point in kept[0]["points"]] == [[8, 1.0], [4096, 2.0]]
    assert "is new for remote:host->host" in printed
    assert cluster.processes() == []
