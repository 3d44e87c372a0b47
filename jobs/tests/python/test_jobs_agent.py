"""The agent as a whole on a node in a folder: rounds, page, settings, and the hook that Slurm calls."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from node_tree import add_process, add_step, make_node
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from peerway_jobs.agent.loop import Agent
from peerway_jobs.agent.records import Records
from peerway_jobs.agent.settings import BadSettings, Settings, read, read_token
from peerway_jobs.batch_check import decode
from peerway_jobs.frames import read_frames

HOOK = Path(__file__).resolve().parents[3] / "jobs" / "peerway_jobs" / "slurm" / "prolog.sh"
JOB = {"SLURM_JOB_ID": "4711", "SLURM_JOB_UID": "1000", "SLURM_JOB_USER": "ann", "SLURM_JOB_GPUS": "0,1"}


@pytest.fixture
def messages() -> list[str]:
    return []


@pytest.fixture
def agent(tmp_path: Path, messages: list[str]) -> Iterator[Agent]:
    make_node(tmp_path / "root")
    (tmp_path / "state" / "events").mkdir(parents=True)
    made = Agent(
        Settings(node="n1", state=str(tmp_path / "state"), root=str(tmp_path / "root"), page="127.0.0.1:0"),
        messages.append,
    )
    yield made
    made.close()


def test_rounds_become_batches_that_a_server_takes(agent: Agent, tmp_path: Path, messages: list[str]) -> None:
    add_step(tmp_path / "root", 4711, "0", version=1)
    agent.round()
    agent.round()
    (spool,) = (tmp_path / "state" / "spool").glob("*.frames")
    first, second = (decode(payload) for _, payload in read_frames(spool.read_bytes()))
    assert (first.seq, second.seq) == (1, 2)
    assert first.unknown == ()
    assert [note.kind for note in first.notes] == ["agent_started"]
    assert first.facts is not None
    assert (first.facts.cpus, first.facts.cgroup) == (4, "v1")
    assert second.facts is None  # nothing changed
    assert {(each.job, each.step) for each in first.intervals} == {(4711, None), (4711, "0")}
    assert first.samples["step"].devices == ["0"]
    assert "4711" not in str(first.samples)
    assert [text for text in messages if "slurm" not in text] == []


def test_a_round_that_cannot_read_the_steps_ends_none(
    agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, messages: list[str]
) -> None:
    add_step(tmp_path / "root", 4711, "0", version=1)
    first = agent.round()

    def fails() -> None:
        raise OSError("too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(agent._steps, "sample", fails)
        assert agent.round().intervals == []
    last = agent.round()
    assert last.intervals == []
    assert last.samples["step"].devices == first.samples["step"].devices == ["0"]
    assert any("too many open files" in message for message in messages)


def test_the_batch_after_one_that_was_not_spooled_has_the_facts(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_: bytes) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(agent._spool, "append", fails)
        assert agent.round().facts is not None
    assert agent.round().facts is not None
    assert agent.round().facts is None


def test_the_agent_is_small() -> None:
    """It runs on every node beside the jobs, so it must not load the server's numerical libraries."""
    program = "import sys, peerway_jobs.agent.loop; print(*{'numpy', 'scipy', 'fastapi'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_the_page_is_openmetrics_without_jobs(agent: Agent, tmp_path: Path) -> None:
    add_step(tmp_path / "root", 4711, "0", version=2)
    agent.round()
    assert agent._page is not None
    address = f"http://127.0.0.1:{agent._page._server.server_port}/metrics"
    request = urllib.request.Request(address, headers={"Accept": "application/openmetrics-text"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        text = answer.read().decode()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert found["peerway_step_memory_bytes"].samples[0].labels == {"step": "0"}
    assert found["peerway_core_busy_seconds"].type == "counter"
    assert len(found["peerway_core_busy_seconds"].samples) == 4
    assert "4711" not in re.findall(r"\w+", text)  # a byte count may have these digits


def test_a_source_that_fails_takes_nothing_from_the_others(
    agent: Agent, messages: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise ValueError("odd \x1b[2J line")

    monkeypatch.setattr(agent._fabric, "filesystems", fail)
    batch = agent.round()
    agent.round()
    assert "core" in batch.samples
    assert len([text for text in messages if text.startswith("lustre")]) == 1  # once, not in each round
    assert all(text.isprintable() for text in messages)
    assert agent.round().samples["node"].values["agent_failures_total"] == [3]


def test_a_clock_that_is_set_is_noted(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    agent.round()
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() - 3600)
    notes = agent.round().notes
    assert [(note.kind, note.text) for note in notes] == [("clock_stepped", "backwards")]
    assert abs((notes[0].count or 0) - 3_600_000) < 60_000


def test_programs_with_odd_names_do_no_harm(agent: Agent, tmp_path: Path) -> None:
    add_process(tmp_path / "root", 700, "a\x1b[2J) R 1", 1, title="\x1b", environ="SLURM_JOB_ID=\xff\0")
    assert agent.round().notes[0].kind == "agent_started"


WRONG = {
    "no TOML": "server =",
    "an unknown setting": 'sever = "https://x"',
    "a number as a text": 'interval_s = "10"',
    "no node's name": 'node = "../x"',
    "a token over plain HTTP": 'server = "http://jobs.example.org"\ntoken_file = "t"',
    "no token": 'server = "https://jobs.example.org"',
    "a user in the address": 'server = "https://a:b@jobs.example.org"\ntoken_file = "t"',
    "too short an interval": "interval_s = 0",
    "no address": 'page = "everywhere"',
}


@pytest.mark.parametrize("text", WRONG.values(), ids=list(WRONG))
def test_wrong_settings_are_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "agent.toml"
    file.write_text(text)
    with pytest.raises(BadSettings):
        read(file)


def test_the_template_of_settings_is_good() -> None:
    found = read(HOOK.parent / "jobs-agent.toml")
    commented = [
        line[2:] for line in (HOOK.parent / "jobs-agent.toml").read_text().splitlines() if "# " in line[:2]
    ]
    for line in commented[1:]:
        name, _, value = line.partition("=")
        shown = value.split("#")[0].strip().strip('"')
        default = getattr(Settings(), name.strip())
        assert shown == (f"{default:g}" if isinstance(default, int | float) else default), name
    assert found.interval_s == 10


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644])
def test_a_token_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "token"
    file.write_text("a" * 43)
    file.chmod(mode)
    with pytest.raises(BadSettings, match="chmod 600") as refused:
        read_token(file)
    assert "aaaa" not in str(refused.value)
    file.chmod(0o600)
    assert read_token(file) == "a" * 43
    file.write_text("short")
    with pytest.raises(BadSettings, match="no token"):
        read_token(file)


def hook(folder: Path, **environment: str) -> int:
    setting = {**JOB, "PEERWAY_JOBS_EVENTS": str(folder), **environment}
    return subprocess.run([str(HOOK)], env=setting, check=False).returncode


def test_the_prolog_leaves_a_record(tmp_path: Path) -> None:
    assert (
        hook(
            tmp_path,
            SLURM_JOB_PARTITION="gpu\nuid=0",
            CUDA_VISIBLE_DEVICES="0",
            ROCR_VISIBLE_DEVICES="GPU-5a",
        )
        == 0
    )
    (found,) = Records(str(tmp_path)).take()
    assert (found.event, found.job, found.user, found.gpus, found.visible) == (
        "prolog",
        4711,
        "ann",
        "0,1",
        "0,GPU-5a",
    )
    assert abs(found.wall_ms - time.time() * 1000) < 60_000
    assert abs(found.mono_ms - time.clock_gettime(time.CLOCK_BOOTTIME) * 1000) < 60_000
    assert [path.name[0] for path in tmp_path.iterdir()] == ["4"]  # no draft remains


def test_the_prolog_never_fails_and_follows_no_link(tmp_path: Path) -> None:
    assert hook(tmp_path / "none") == 0
    assert hook(tmp_path, SLURM_JOB_ID="../../x") == 0
    assert list(tmp_path.iterdir()) == []
    victim = tmp_path / "victim"
    victim.write_text("precious")
    events = tmp_path / "events"
    events.mkdir()
    pid = os.getpid()
    for number in range(pid, pid + 3000):  # whichever process id the script gets
        (events / f".prolog.4711.{number}").symlink_to(victim)
    assert hook(events) == 0
    assert victim.read_text() == "precious"
