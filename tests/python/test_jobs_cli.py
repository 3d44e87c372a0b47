"""The verbs of `peerway jobs` that read: on the server's folder, and through its API."""

from __future__ import annotations

import json
import socket
import time
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from jobs_server import EVIL, Server, served

from peerway.cli import command as peerway
from peerway.jobs import sync
from peerway.jobs.store.jobs import JobStore
from peerway.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("jobs")) as server:
        yield server


def run(*words: object, **environment: str) -> str:
    result = CliRunner().invoke(peerway, ["jobs", *map(str, words)], env=environment)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_show_says_what_it_had_used_and_could_do_better(server: Server) -> None:
    text = run("show", 102, "--data", server.monitor.folder)
    for words in (
        "102",
        "4 GPU",
        "[|",
        "INEFFICIENT",
        "Of 4 GPUs only 1 computed",
        "#SBATCH --gres=gpu:1",
        printable(EVIL),
    ):
        assert words in text
    assert EVIL not in text
    assert "\\xa0" not in text
    assert "Из 4 GPU считали только 1" in run(
        "show", 102, "--language", "ru", "--data", server.monitor.folder
    )
    found = json.loads(run("show", 102, "--json", "--data", server.monitor.folder))
    assert found["verdict"]["findings"][0]["figures"]["used"] == 1


def test_the_api_gives_the_same_with_a_token_and_nothing_of_others(server: Server) -> None:
    mine = {"PEERWAY_JOBS_SERVER": server.url, "PEERWAY_JOBS_TOKEN": server.token("alice")}
    assert "Of 4 GPUs only 1 computed" in run("show", 102, **mine)
    other = CliRunner().invoke(peerway, ["jobs", "show", "103"], env=mine)
    assert other.exit_code == 1
    assert "not yours" in other.output
    wrong = CliRunner().invoke(peerway, ["jobs", "show", "102"], env={**mine, "PEERWAY_JOBS_TOKEN": ""})
    assert "PEERWAY_JOBS_TOKEN is not set: make a token on the page Tokens" in wrong.output
    wrong = CliRunner().invoke(peerway, ["jobs", "show", "102"], env={**mine, "PEERWAY_JOBS_TOKEN": "x" * 43})
    assert "does not know the token in PEERWAY_JOBS_TOKEN" in wrong.output


def test_what_cannot_be_asked_is_told_in_words(server: Server) -> None:
    for words in (["--server", server.url], ["--data", str(server.monitor.folder)]):
        wrong = CliRunner().invoke(peerway, ["jobs", "show", "123_4", *words])
        assert (
            "a job is a number such as 4242, not '123_4'; of an array's job `scontrol show job"
            in wrong.output
        )
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        wrong = CliRunner().invoke(peerway, ["jobs", "list", "--server", url])
        assert f"cannot ask {url}: Connection refused" in wrong.output


def test_serve_says_that_its_address_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        result = CliRunner().invoke(
            peerway, ["jobs", "serve", "--no-slurm", "--data", str(tmp_path), "--listen", listen]
        )
    assert result.exit_code == 1
    assert f"cannot listen on {listen}: Address already in use" in result.output
    assert "http://" not in result.output


def test_list_and_top_choose(server: Server) -> None:
    data = ("--data", server.monitor.folder)
    ids = [
        each["job"] for each in json.loads(run("list", "--user", "alice", "--inefficient", "--json", *data))
    ]
    assert ids == ["102"]
    assert "one" in run("list", "--everyone", *data)
    assert [each["job"] for each in json.loads(run("top", "--json", *data))] == ["106"]


def test_replay_says_what_would_change(server: Server, tmp_path: Path) -> None:
    rules = tmp_path / "new.toml"
    rules.write_text(server.monitor.rules.text.replace("condition = ", 'condition = "False"#'))
    days = int(time.time() - server.monitor.clock()) // 86_400 + 2
    words = ("replay", "--rules", rules, "--data", server.monitor.folder, "--since", f"{days}d")
    found = json.loads(run(*words, "--json"))
    assert found["judged"] == 6
    assert found["findings"]["serial"] == [1, 0]
    assert found["freed_gpu_hours"][1] == 0
    assert "serial" in run(*words)
    rules.write_text("[[rule]]\nname = 7\n")
    refused = CliRunner().invoke(peerway, ["jobs", *map(str, words)])
    assert "line 1" in refused.output


def test_the_summary_goes_beside_the_output_and_follows_no_link(server: Server, tmp_path: Path) -> None:
    out, link = tmp_path / "slurm-102.summary", tmp_path / "link"
    link.symlink_to(tmp_path / "elsewhere")
    run("summary", 102, "--out", out, "--data", server.monitor.folder)
    assert "Of 4 GPUs" in out.read_text()
    refused = CliRunner().invoke(
        peerway, ["jobs", "summary", "102", "--out", str(link), "--data", str(server.monitor.folder)]
    )
    assert refused.exit_code == 1
    assert not (tmp_path / "elsewhere").exists()


def test_serve_refuses_what_would_be_unsafe(tmp_path: Path) -> None:
    for words, why in (
        (["--listen", "0.0.0.0:1"], "need TLS"),
        (["--portal-header", "X"], "needs --portal-from"),
        (["--listen", "nowhere"], "HOST:PORT"),
        (["--rules", "missing.toml"], "no file"),
        (["--samples", "localhost:8428", "--listen", "127.0.0.1:1"], "is an address such as http://"),
    ):
        result = CliRunner().invoke(peerway, ["jobs", "serve", "--data", str(tmp_path), *words])
        assert result.exit_code != 0
        assert why in result.output


@pytest.mark.parametrize("new", [False, True])
def test_slurms_answers_of_old_and_new_versions_become_jobs_and_nodes(tmp_path: Path, new: bool) -> None:
    def number(value: int) -> object:
        return {"set": True, "infinite": False, "number": value} if new else value

    def word(value: str) -> object:
        return [value] if new else value

    job = {
        "job_id": 7,
        "job_state": word("RUNNING"),
        "user_name": "alice",
        "account": "phys",
        "name": EVIL,
        "partition": "gpu",
        "start_time": number(1000),
        "submit_time": number(900),
        "end_time": number(9000),
        "time_limit": number(60),
        "node_count": number(2),
        "cpus": number(16),
        "nodes": "n[1-2]",
        "restart_cnt": 1,
        "tres_alloc_str": "cpu=16,mem=64G,node=2,billing=16,gres/gpu=4,gres/gpu:h100=4",
    }
    waiting = {**job, "job_id": 8, "job_state": word("PENDING"), "state_reason": "Resources"}
    flags = ["IDLE", "DRAIN"] if new else "idle"
    nodes = [
        {
            "name": "n1",
            "state": word("MIXED") if new else "mixed",
            "cpus": 64,
            "alloc_cpus": 64,
            "real_memory": 512000,
            "alloc_memory": 1000,
            "gres": "gpu:h100:8(S:0-1)",
            "gres_used": "gpu:h100:3(IDX:0-2)",
            "partitions": ["gpu"],
        },
        {
            "name": "n2",
            "state": flags,
            "state_flags": ["DRAIN"],
            "cpus": 64,
            "alloc_cpus": 0,
            "gres": "gpu:2",
        },
        {"name": "n3", "state": word("DOWN") if new else "down", "cpus": 4},
    ]
    store = JobStore(tmp_path / "jobs.db")
    sync.take(store, [job, waiting, {"job_id": None}], nodes, 2000)
    run = store.run("7")
    assert run is not None
    assert (run.restart, run.gpus, run.gpu_type, run.cores, run.memory) == (1, 4, "h100", 16, 64 << 30)
    assert (run.ended, run.time_limit, run.started) == (None, 3600, 1000)
    assert store.run("8") is None
    body = json.loads(store.reader.execute("SELECT body FROM cluster").fetchone()[0])
    assert (body["running"], body["waiting"], body["waiting_gpus"], body["users"]) == (1, 1, 4, 1)
    states = {
        node["name"]: (node["state"], node["gpus_busy"], node["gpus_blocked"]) for node in body["nodes"]
    }
    assert states == {"n1": ("partly busy", 3, 5), "n2": ("blocked", 0, 2), "n3": ("off", 0, 0)}
    store.close()
