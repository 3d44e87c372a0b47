"""The torus NIC between processes, on one host and between network namespaces: every byte is checked."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hosts import address
from launching import LIMIT, ROOT, built, clean_environment, source_of

from peerway_measure import records

LOSS = ROOT / "apps" / "loss"
Torus = dict[str, object]
GUARANTEES = ["puts_in_order", "gets_behind_puts"]
SEEDS = [40, pytest.param(200, marks=pytest.mark.long)]
# Over shared memory at once, over shared memory with simulated times, and over datagrams.
THREE_CONFIGURATIONS: tuple[Torus, ...] = ({}, {"timed": True}, {"faults": {"drop": 0.02}})


def build_program(name: str, folder: Path) -> Path:
    """Compile a program that needs no libpeerway."""
    flags = ["-std=c++20", "-O1", "-g", "-Wall", "-Wextra", f"-I{ROOT / 'library' / 'include'}"]
    source = source_of(f"{name}.cpp")
    subprocess.run(["c++", *flags, str(source), "-ldl", "-o", str(folder / name)], check=True)
    return folder / name


@pytest.fixture(scope="session")
def nic_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/nic_ranks.cpp, compiled: a process for each rank."""
    return build_program("nic_ranks", tmp_path_factory.mktemp("nic"))


class Ranks:
    """Runs the tests of nic_ranks over a torus."""

    def __init__(self, program: Path, folder: Path) -> None:
        self.plugin = built("nic/torus/libpeerway_nic_torus.so")
        self.program, self.folder = program, folder

    def counters(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in (self.folder / "counters").read_text().splitlines()]

    def sum(self, name: str) -> int:
        return sum(int(str(line.get(name, 0))) for line in self.counters())

    def __call__(
        self, test: str, ranks: int, torus: Torus, seed: int = 1, spaces: str = "", **environment: str
    ) -> dict[str, float]:
        file = self.folder / "torus.json"
        file.write_text(json.dumps(torus))
        (self.folder / "counters").unlink(missing_ok=True)
        options = f"file={file},counters={self.folder / 'counters'}"
        command = [str(self.program), str(self.plugin), test, str(ranks), options, str(seed), spaces]
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
            env=clean_environment(**environment),
        )
        assert done.returncode == 0, f"{json.dumps(torus)}\n{done.stderr}"
        text = done.stdout.strip()
        return json.loads(text) if text else {}


@pytest.fixture
def torus_ranks(nic_ranks: Path, tmp_path: Path) -> Ranks:
    return Ranks(nic_ranks, tmp_path)


def apart(**more: object) -> Torus:
    """A torus with one node in each namespace."""
    nodes = {str(i): address(i) for i in range(4)}
    return {"extents": [2, 2], "contexts": 4, "nodes": nodes, **more}


@pytest.mark.parametrize("seed", [1, 2], ids=["mapped", "attached"])
@pytest.mark.parametrize("torus", [{}, {"extents": [2, 2], "timed": True}], ids=["plain", "timed"])
def test_one_host(torus_ranks: Ranks, torus: Torus, seed: int) -> None:
    torus_ranks("mixed", 4, torus, seed)
    assert torus_ranks.sum("by_memory") > 0
    assert torus_ranks.sum("datagrams") == 0


def test_over_the_network(torus_ranks: Ranks, spaces: list[str]) -> None:
    torus_ranks("mixed", 4, apart(), spaces=",".join(spaces))
    assert torus_ranks.sum("datagrams") > 0
    assert torus_ranks.sum("put_bytes") > 0
    torus_ranks("bandwidth", 2, apart(), spaces=",".join(spaces), ROUNDS="10")


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq (apt-get install jq)")
def test_counters_are_summed_as_the_documents_say(torus_ranks: Ranks) -> None:
    torus_ranks("mixed", 4, {"extents": [2]})
    page = (ROOT / "docs" / "nic" / "torus.md").read_text()
    by_link, by_node = (
        [json.loads(line) for line in run_in(torus_ranks.folder, command).splitlines()]
        for command in re.findall(r"^\$ (jq .*)$", page, re.MULTILINE)
    )
    assert [(link["from"], link["to"]) for link in by_link] == [(0, 1), (1, 0)]
    assert sum(link["bytes"] for link in by_link) == torus_ranks.sum("bytes")
    assert [node["node"] for node in by_node] == [0, 1]
    for name in ("puts", "put_bytes", "get_bytes", "by_memory", "repeated"):
        assert sum(node[name] for node in by_node) == torus_ranks.sum(name)


def run_in(folder: Path, command: str) -> str:
    done = subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def mixed_faults(seed: int) -> Torus:
    dice = random.Random(seed)
    faults: Torus = {"seed": seed}
    for name in ("delay", "reorder"):
        if dice.random() < 0.5:
            faults[name] = {"probability": dice.choice([0.05, 0.3]), "us": dice.choice([20, 300])}
    for name in ("drop", "duplicate", "corrupt"):
        if dice.random() < 0.5:
            faults[name] = dice.choice([0.01, 0.1])
    guarantees = [guarantee for guarantee in GUARANTEES if dice.random() < 0.5]
    return {"extents": [3], "guarantees": guarantees, "timed": dice.random() < 0.3, "faults": faults}


@pytest.mark.parametrize("seeds", SEEDS)
def test_seeds_of_mixed_faults(torus_ranks: Ranks, seeds: int) -> None:
    happened = dict.fromkeys(
        ("delayed", "reordered", "dropped", "duplicated", "corrupted", "retransmitted"), 0
    )
    for seed in range(1, seeds + 1):
        torus_ranks("mixed", 2, mixed_faults(seed), seed, ROUNDS="1")
        for name in happened:
            happened[name] += torus_ranks.sum(name)
    assert all(happened.values()), happened


@pytest.mark.long
def test_what_loss_costs_is_measured(spaces: list[str], tmp_path: Path) -> None:
    """apps/loss: all bytes arrive, and data is sent again only with losses."""
    assert spaces  # the program makes its own namespaces, which works where these work
    out = tmp_path / "loss.jsonl"
    few = ["--turns", "2", "--ms", "50", "--in-flight", "2", "--out", str(out)]
    command = [sys.executable, str(LOSS / "loss.py"), *few]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT, env=clean_environment()
    )
    assert done.returncode == 0, done.stderr
    clean, lossy = records.read(out)
    assert clean.validated
    assert lossy.validated
    assert (clean.extra["dropped"], clean.extra["drop"], lossy.extra["drop"]) == (0, 0, 0.01)
    assert lossy.extra["retransmitted"] > 0


def test_faults_over_the_network(torus_ranks: Ranks, spaces: list[str]) -> None:
    for seed in range(1, 6):
        faults = {"seed": seed, "drop": 0.05, "duplicate": 0.05, "corrupt": 0.05}
        torus_ranks("mixed", 4, apart(faults=faults), seed, ",".join(spaces))
    assert torus_ranks.sum("rejected") > 0


@pytest.mark.parametrize(
    ("guarantee", "seen"), [("puts_in_order", "put of rank"), ("gets_behind_puts", "a get overtook a put")]
)
def test_a_nic_that_lies_is_seen(nic_ranks: Path, tmp_path: Path, guarantee: str, seen: str) -> None:
    """The negative control: a NIC that states more than it keeps fails checks that all others pass."""
    ranks = Ranks(nic_ranks, tmp_path)
    late = {"seed": 1, "reorder": {"probability": 1, "us": 20000}}
    with pytest.raises(AssertionError, match=seen):
        ranks("mixed", 2, {"guarantees": [], "stated": [guarantee], "faults": late})


def test_memory_is_not_touched_after_its_end(torus_ranks: Ranks) -> None:
    for torus in THREE_CONFIGURATIONS:
        for seed in (1, 2):
            torus_ranks("deregistered", 2, torus, seed)


def test_a_killed_process_is_told_of(torus_ranks: Ranks) -> None:
    for torus in THREE_CONFIGURATIONS:
        assert torus_ranks("death", 3, torus, KILL="1")["told_after_s"] < 2


def test_a_process_killed_across_the_network_is_told_of(torus_ranks: Ranks, spaces: list[str]) -> None:
    assert torus_ranks("death", 4, apart(), spaces=",".join(spaces), KILL="1")["told_after_s"] > 1


def test_a_node_that_dies_is_told_of(torus_ranks: Ranks, spaces: list[str]) -> None:
    torus_ranks("death", 3, {"dead": [{"node": 2, "after_ms": 200}]})
    torus_ranks("death", 4, apart(dead=[{"node": 3, "after_ms": 500}]), spaces=",".join(spaces))


@pytest.mark.skipif(os.geteuid() != 0, reason="another user needs root")
def test_memory_that_cannot_be_reached_goes_by_datagrams(nic_ranks: Path, tmp_path: Path) -> None:
    """No endpoint had a UDP socket when the first one needed it."""
    plugin = tmp_path / "torus.so"  # readable by that user
    shutil.copy(Ranks(nic_ranks, tmp_path).plugin, plugin)
    command = [str(nic_ranks), str(plugin), "mixed", "3", "", "1"]
    environment = clean_environment(APART="1", ROUNDS="2")
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT, env=environment
    )
    assert done.returncode == 0, done.stderr


def alone(program: Path, folder: Path, before: str) -> subprocess.CompletedProcess[str]:
    """Run two ranks after a shell command."""
    command = [str(program), str(Ranks(program, folder).plugin), "mixed", "2", "", "1"]
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", f'{before} && exec "$@"', "sh", *command],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env=clean_environment(ROUNDS="1"),
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_a_full_dev_shm_is_no_matter(nic_ranks: Path, tmp_path: Path) -> None:
    full = "mount -t tmpfs -o size=4k none /dev/shm && head -c 4096 /dev/zero > /dev/shm/full"
    done = alone(nic_ranks, tmp_path, full)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="a mount namespace needs root")
def test_a_limit_of_files_is_told_of(nic_ranks: Path, tmp_path: Path) -> None:
    """Reported by a message, not by a signal."""
    done = alone(nic_ranks, tmp_path, "ulimit -f 64")
    assert done.returncode == 1
    assert "bytes of shared memory for the state of this job: File too large" in done.stderr
    assert "(ulimit -f)" in done.stderr


@pytest.fixture(scope="session")
def nic_crowd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """programs/nic_crowd.cpp, compiled: many endpoints in each process."""
    return build_program("nic_crowd", tmp_path_factory.mktemp("crowd"))


def crowd(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    plugin = built("nic/torus/libpeerway_nic_torus.so")
    command = [str(program), str(plugin), *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LIMIT, env=clean_environment()
    )


@pytest.mark.parametrize(
    ("drop", "processes"),
    [
        pytest.param(0, 1, id="by memory-1", marks=pytest.mark.long),
        pytest.param(0, 8, id="by memory-8"),
        pytest.param(0.01, 1, id="by datagrams-1"),
        pytest.param(0.01, 8, id="by datagrams-8", marks=pytest.mark.long),
    ],
)
def test_as_many_endpoints_as_there_can_be(
    nic_crowd: Path, tmp_path: Path, processes: int, drop: float
) -> None:
    """1,024 at once: all reach their neighbours, and one more is refused with a reason."""
    file = tmp_path / "torus.json"
    file.write_text(json.dumps({"faults": {"drop": drop}}))
    done = crowd(nic_crowd, str(processes), str(1024 // processes), str(file))
    assert done.returncode == 0, done.stderr
    usage = json.loads(done.stdout)
    whose = "all nodes here" if processes == 1 else "node 0"
    assert f"all 128 contexts of {whose} are open" in usage["refused"]
    assert usage["threads"] == 1024 + processes
    assert usage["MiB"] < 1024


def test_no_descriptor_is_left(nic_crowd: Path) -> None:
    """Whichever descriptor of an endpoint is the one too many."""
    errors = set()
    for most in range(40, 44):
        done = crowd(nic_crowd, "1", "128", "", str(most))
        assert done.returncode == 1
        assert "Too many open files" in done.stderr
        assert re.search(r"raise the limit of a process.*\(ulimit -n\)", done.stderr), done.stderr
        errors.add(done.stderr)
    assert len(errors) > 1


def test_options_of_every_rank(nic_ranks: Path, tmp_path: Path) -> None:
    """A torus file with a hole ends every rank with a message, not with a signal."""
    plugin = Ranks(nic_ranks, tmp_path).plugin
    file = tmp_path / "hole.json"
    file.write_text(json.dumps({"extents": [2], "nodes": {"1": "10.213.7.2"}}))
    done = subprocess.run(
        [str(nic_ranks), str(plugin), "mixed", "2", str(file)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT,
        env=clean_environment(),
    )
    assert done.returncode == 1
    assert done.stderr.count("node 0 is missing: the extents make 2 nodes, and each needs an address") == 2
