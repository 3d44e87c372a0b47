"""The commands of `peerway jobs` that read, on the server's folder and through its API."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from click import ClickException
from click.testing import CliRunner
from jobs_scene import Job, put
from jobs_server import EVIL, NOW, Server, served

from peerway_common.cli import command as peerway
from peerway_common.printable import printable
from peerway_jobs import sync
from peerway_jobs.agent.self_test import run as self_test
from peerway_jobs.agent.settings import Settings
from peerway_jobs.asking import KnownRun, NotNow, known_run
from peerway_jobs.cli import agent as agent_verb
from peerway_jobs.cli import serve, summary
from peerway_jobs.lock_file import locked
from peerway_jobs.monitor import Monitor
from peerway_jobs.rules.load import SHIPPED
from peerway_jobs.serve.people import People
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import Run
from peerway_jobs.store.samples import Thinning
from peerway_jobs.summary import summary as text_of

if TYPE_CHECKING:
    from collections.abc import Iterator


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
        "3 of 4 GPUs never computed",
        "#SBATCH --gpus=1",
        printable(EVIL),
    ):
        assert words in text
    assert EVIL not in text
    assert "\\xa0" not in text
    assert "Из 4 GPU ни разу не использовано 3" in run(
        "show", 102, "--language", "ru", "--data", server.monitor.folder
    )
    found = json.loads(run("show", 102, "--json", "--data", server.monitor.folder))
    assert found["verdict"]["findings"][0]["figures"]["used"] == 1


def test_the_api_gives_the_same_with_a_token_and_nothing_of_others(server: Server) -> None:
    mine = {"PEERWAY_JOBS_SERVER": server.url, "PEERWAY_JOBS_TOKEN": server.token("alice")}
    assert "3 of 4 GPUs never computed" in run("show", 102, **mine)
    other = CliRunner().invoke(peerway, ["jobs", "show", "103"], env=mine)
    assert other.exit_code == 1
    assert "you may not see it" in other.output
    wrong = CliRunner().invoke(peerway, ["jobs", "show", "102"], env={**mine, "PEERWAY_JOBS_TOKEN": ""})
    assert "PEERWAY_JOBS_TOKEN is not set: make a token on the page http" in wrong.output
    wrong = CliRunner().invoke(peerway, ["jobs", "show", "102"], env={**mine, "PEERWAY_JOBS_TOKEN": "x" * 43})
    assert "does not accept the token in PEERWAY_JOBS_TOKEN" in wrong.output


def test_what_cannot_be_asked_is_told_in_words(server: Server) -> None:
    for words in (["--server", server.url], ["--data", str(server.monitor.folder)]):
        wrong = CliRunner().invoke(peerway, ["jobs", "show", "123_x", *words])
        assert "a job is a number such as 4242, or 4242_7 of an array, not '123_x'" in wrong.output
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
        wrong = CliRunner().invoke(peerway, ["jobs", "list", "--server", url])
        assert f"cannot ask {url}: Connection refused; --server or PEERWAY_JOBS_SERVER" in wrong.output


def refused(*words: object, **settings: Any) -> str:
    result = CliRunner().invoke(peerway, ["jobs", *map(str, words)], **settings)
    assert result.exit_code in (1, 2), result.output
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.output


class _Other(http.server.BaseHTTPRequestHandler):
    """A web server that is no jobs server."""

    def do_GET(self) -> None:
        self.send_response(404 if "/jobs/" in self.path else 200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>Log in</h1>")

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_what_answers_as_no_jobs_server_does_is_not_taken_for_one_without_jobs(server: Server) -> None:
    with http.server.HTTPServer(("127.0.0.1", 0), _Other) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            url = f"http://127.0.0.1:{other.server_port}"
            assert "its answer is none of a jobs server" in refused("list", "--server", url)
            assert "its answer (404) is none of a jobs server" in refused("show", 4, "--server", url)
        finally:
            other.shutdown()
    env = {"PEERWAY_JOBS_TOKEN": server.token("alice")}
    below = refused("list", "--server", f"{server.url}/below", env=env)
    assert "its answer (404) is none of a jobs server" in below
    long = refused("list", "--user", "x" * 100, "--server", server.url, env=env)
    assert "answered 422: user: String should have at most 64 characters" in long
    assert "A job appears" not in long
    assert "a job appears when it has begun" in refused("show", 4242, "--server", server.url, env=env)


def test_options_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    data = ("--data", tmp_path)
    assert "give one of the two" in refused("list", "--user", "a", "--everyone", *data)
    assert "--scope is for --user" in refused("token", "--node", "n1", "--scope", "admin", *data)
    assert "--no-password means none" in refused("user", "a", "--password-stdin", "--no-password", *data)
    assert list(tmp_path.iterdir()) == []


def test_a_password_is_asked_for_at_a_terminal_alone(tmp_path: Path) -> None:
    told = refused("user", "alice", "--data", tmp_path)
    assert "there is no terminal to ask for the password at: give it with --password-stdin" in told


def test_a_folder_that_is_not_the_servers_is_told_in_words(tmp_path: Path) -> None:
    (tmp_path / "jobs.db").write_text("something else")
    told = refused("doctor", "--data", tmp_path)
    assert "broken   database   jobs.db: file is not a database" in told
    assert "restore jobs.db" in told
    assert "file is not a database" in refused("list", "--data", tmp_path)
    for verb in ("list", "serve"):
        assert "is a file: --data names the server's folder" in refused(verb, "--data", tmp_path / "jobs.db")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "or a server with --server" in refused("list", "--data", empty)
    assert "--server" not in refused("replay", "--rules", SHIPPED, "--data", empty)
    assert "cannot read" in refused("notices", "--mail", empty / "mail.toml", "--data", empty)


def nobody() -> dict[str, Any]:
    """The arguments to start a process as a user without rights; skips the test if that is impossible."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody who may not read it")
    somebody: dict[str, Any] = {"user": 65534, "group": 65534, "extra_groups": []}
    try:
        subprocess.run([sys.executable, "-c", ""], check=True, **somebody)
    except PermissionError:
        pytest.skip(f"only root may run {sys.executable} here")
    return somebody


def test_a_user_is_told_how_to_ask_the_server_whose_folder_may_not_be_read() -> None:
    somebody = nobody()
    with tempfile.TemporaryDirectory() as place:
        Path(place).chmod(0o755)
        inner = Path(place) / "server" / "data"
        inner.mkdir(parents=True)
        for closed in (inner, inner.parent):
            closed.chmod(0o700)
            for verb, words in (
                (["list"], "or a server with --server" if closed != inner else "ask the server with"),
                (["doctor"], "name the server's folder" if closed != inner else "run this as that user"),
            ):
                told = subprocess.run(
                    [sys.executable, "-m", "peerway", "jobs", *verb, "--data", inner],
                    capture_output=True, text=True, check=False, **somebody,
                )  # fmt: skip
                assert told.returncode == 1
                assert words in told.stderr
                assert "Traceback" not in told.stderr


def test_the_folder_that_a_verb_makes_is_for_its_user_alone(tmp_path: Path) -> None:
    """It contains password hashes and the scripts of all users."""
    data = tmp_path / "above" / "data"
    run("user", "alice", "--no-password", "--data", data)
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    folder = tmp_path / "locked"
    with locked(folder, "server", 0o700):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_second_server_does_not_start_in_a_folder(tmp_path: Path) -> None:
    with locked(tmp_path, "server", 0o700):
        told = refused("serve", "--no-slurm", "--data", tmp_path, "--listen", "127.0.0.1:1")
    assert f"another server runs in {tmp_path} (process {os.getpid()} of {os.uname().nodename}): end" in told


def test_what_fails_in_a_locked_folder_is_not_taken_for_its_lock(tmp_path: Path) -> None:
    with pytest.raises(BlockingIOError), locked(tmp_path, "server", 0o700):
        raise BlockingIOError
    with locked(tmp_path, "server", 0o700):  # the port is free again
        pass
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(ClickException, match=r"cannot lock .*: Not a directory"),
        locked(tmp_path / "file" / "below", "server", 0o700),
    ):
        pass


def test_serve_says_that_its_address_is_taken(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        result = CliRunner().invoke(
            peerway, ["jobs", "serve", "--no-slurm", "--data", str(tmp_path), "--listen", listen]
        )
    assert result.exit_code == 1
    assert f"cannot listen on {listen}: Address already in use; name another address" in result.output
    assert "http://" not in result.output


@pytest.mark.parametrize(("mode", "warned"), [(0o755, True), (0o750, False), (0o700, False)])
def test_serve_tells_of_a_folder_that_everybody_can_read(tmp_path: Path, mode: int, warned: bool) -> None:
    tmp_path.chmod(mode)
    with socket.socket() as other:  # so that it ends
        other.bind(("127.0.0.1", 0))
        other.listen()
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        output = refused("serve", "--no-slurm", "--data", tmp_path, "--listen", listen)
    assert (
        f"every user of this host can read scripts and more in {tmp_path}: chmod o-rx" in output
    ) == warned


def test_a_second_agent_does_not_start_beside_the_first(tmp_path: Path, monkeypatch: Any) -> None:
    """Both would number their batches alike, and the server would keep only those of one."""
    monkeypatch.setattr("peerway_jobs.agent.privileges.drop", lambda: "")
    settings = tmp_path / "agent.toml"
    settings.write_text(f'state = "{tmp_path / "state"}"\npage = ""\n')
    with locked(tmp_path / "state", "agent", 0o755):
        assert f"another agent runs in {tmp_path / 'state'}" in refused("agent", "--settings", settings)
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        page = f"127.0.0.1:{other.getsockname()[1]}"
        settings.write_text(f'state = "{tmp_path / "state"}"\npage = "{page}"\n')
        told = refused("agent", "--settings", settings)
    assert f"the agent cannot start: page = {page}: Address already in use" in told


def test_a_time_in_the_list_is_one_that_people_write(server: Server) -> None:
    rows = run("list", "--everyone", "--data", server.monitor.folder, COLUMNS="200").splitlines()
    (train,) = [row for row in rows if row.startswith("101 ")]
    (notebook,) = [row for row in rows if row.startswith("106 ")]
    assert " 2 h " in train
    assert " 2.8 " in notebook  # idle GPU-hours
    assert not [row for row in rows if "\\xa0" in row]


@pytest.mark.parametrize(
    ("nodes", "cores", "gpus", "english", "russian"),
    [
        (1, 1, 1, "1 node, 1 core, 1 GPU (h100), 64 GiB memory", "1 узел, 1 ядро, 1 GPU (h100), 64 ГиБ"),
        (2, 24, 8, "2 nodes, 24 cores, 8 GPUs (h100), 64 GiB", "2 узла, 24 ядра, 8 GPU (h100), 64 ГиБ"),
        (5, 11, 0, "5 nodes, 11 cores, 64 GiB memory", "5 узлов, 11 ядер, 64 ГиБ"),
    ],
)
def test_the_summary_counts_as_the_language_does(
    nodes: int, cores: int, gpus: int, english: str, russian: str
) -> None:
    one = Run("7", nodes=nodes, cores=cores, gpus=gpus, gpu_type="h100", memory=64 * 2.0**30)
    assert english in text_of(one, None, NOW)
    assert russian in text_of(one, None, NOW, "ru")


def test_hours_in_the_summary_are_not_nothing_where_there_were_some(server: Server) -> None:
    found = known_run(server.monitor.folder, None, "106", None)
    assert found is not None
    assert found.verdict is not None
    found.verdict["hours"]["idle_gpu_hours"] = 0.013
    assert "Idle GPU-hours   0.01" in text_of(found.run, found.verdict, NOW)


def test_list_and_top_choose(server: Server) -> None:
    data = ("--data", server.monitor.folder)
    ids = [
        each["job"] for each in json.loads(run("list", "--user", "alice", "--inefficient", "--json", *data))
    ]
    assert ids == ["102"]
    assert "one" in run("list", "--everyone", *data)
    assert [each["job"] for each in json.loads(run("top", "--json", *data))] == ["106"]


def test_top_tells_of_what_finished_lately_whenever_it_began(tmp_path: Path) -> None:
    now, day = time.time(), 86_400
    with served(tmp_path) as server:
        server.monitor.jobs.update(
            Run(job, user="zoe", started=now - 10 * day, ended=ended, state="COMPLETED")
            for job, ended in (("8101", now - day), ("8102", now - 8 * day))
        )
        words = ("top", "--finished", "--json")
        api = {"PEERWAY_JOBS_SERVER": server.url, "PEERWAY_JOBS_TOKEN": server.token("zoe")}
        for found in (run(*words, "--data", server.monitor.folder), run(*words, **api)):
            assert [each["job"] for each in json.loads(found)] == ["8101"]


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
    assert "3 of 4 GPUs" in out.read_text()
    refused = CliRunner().invoke(
        peerway, ["jobs", "summary", "102", "--out", str(link), "--data", str(server.monitor.folder)]
    )
    assert refused.exit_code == 1
    assert not (tmp_path / "elsewhere").exists()


def test_the_summary_outlives_the_end_of_the_epilog(tmp_path: Path) -> None:
    """Slurm kills an epilog's process group as soon as the epilog has closed its output."""
    script = Path(summary.__file__).parents[1] / "slurm" / "summary.sh"
    stub = tmp_path / "peerway"
    stub.write_text('#!/bin/sh\ntouch "$(dirname "$0")/asked-$3"\n')
    stub.chmod(0o755)
    left, held = os.pipe()  # held open by whatever remains of the epilogs
    for job in range(20):
        environment = {
            "SLURM_JOB_ID": str(job),
            "SLURM_JOB_UID": "1000",
            "SLURM_JOB_WORK_DIR": str(tmp_path),
            "PEERWAY_JOBS_PROGRAM": str(stub),
        }
        with subprocess.Popen(
            [script], env=environment, stdout=subprocess.PIPE, start_new_session=True, pass_fds=[held]
        ) as epilog:
            assert epilog.stdout is not None
            epilog.stdout.read()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(epilog.pid, signal.SIGKILL)
    os.close(held)
    with os.fdopen(left, "rb") as pipe:
        pipe.read()
    assert len(list(tmp_path.glob("asked-*"))) == 20


def test_a_job_of_an_array_is_shown_by_the_name_that_its_owner_knows(server: Server) -> None:
    found = server.monitor.jobs.run("104")
    assert found is not None
    server.monitor.jobs.update([dataclasses.replace(found, array="100_4")])
    token = {"PEERWAY_JOBS_SERVER": server.url, "PEERWAY_JOBS_TOKEN": server.token("bob")}
    assert "104 (100_4)" in run("show", "100_4", **token)
    assert "104 (100_4)" in run("show", "100_4", "--data", server.monitor.folder)


def test_the_summary_waits_for_the_final_verdict(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor, waited = server.monitor, []
    ended = NOW - 4000
    monitor.jobs.update([Run("900", user="alice", started=ended - 60, ended=ended, state="COMPLETED")])

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            monitor.judge_due()

    monkeypatch.setattr(summary, "time", SimpleNamespace(sleep=sleep, monotonic=lambda: 0.0, time=time.time))
    assert "too short to judge" in run("summary", 900, "--wait", "2m", "--data", monitor.folder)
    assert len(waited) == 3


def test_the_summary_waits_for_a_server_that_is_away(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    ask, asked = summary.known_run, []

    def away(*words: Any) -> KnownRun | None:
        asked.append(words)
        if len(asked) < 3:
            raise NotNow("the server answered 503")
        return ask(*words)

    clock = SimpleNamespace(sleep=lambda _: None, monotonic=lambda: 0.0, time=time.time)
    monkeypatch.setattr(summary, "time", clock)
    monkeypatch.setattr(summary, "known_run", away)
    assert "104" in run("summary", 104, "--wait", "2m", "--data", server.monitor.folder)
    asked.clear()
    refused = CliRunner().invoke(peerway, ["jobs", "summary", "104", "--data", str(server.monitor.folder)])
    assert (refused.exit_code, len(asked)) == (1, 1)


def test_an_answer_that_breaks_off_may_come_whole_later() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with listener.accept()[0] as client:
                client.recv(4096)
                client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{")

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(NotNow, match="cannot ask http"):
            known_run(Path(), f"http://127.0.0.1:{listener.getsockname()[1]}", "7", None)
        thread.join()


def agent(tmp_path: Path, server: Server, node: str) -> Path:
    """Write the settings of a node's agent; returns the file."""
    token, settings = tmp_path / f"{node}.token", tmp_path / f"{node}.toml"
    token.write_text(server.token("", "agent", node=node))
    token.chmod(0o600)
    settings.write_text(f'server = "{server.url}"\ntoken_file = "{token}"\nnode = "{node}"\n')
    return settings


def test_on_a_node_the_summary_comes_by_the_agents_token_on_the_first_node(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1)  # so that it stays the same user
    put(server.monitor, Job(950, {"step_cpu_user_seconds_total": 1.0}, nodes=2, minutes=20))
    for node, words in (("n950-0", "950"), ("n950-1", "")):
        found = run("summary", 950, "--agent", agent(tmp_path, server, node))
        assert words in found
        assert bool(found) is bool(words)
    other = ["jobs", "summary", "950", "--agent", str(agent(tmp_path, server, "n102-0"))]
    refused = CliRunner().invoke(peerway, other)
    assert refused.exit_code == 1
    assert "there is no job 950 here" in refused.output


def test_serve_refuses_what_would_be_unsafe(tmp_path: Path) -> None:
    broken, unknown = tmp_path / "broken.toml", tmp_path / "unknown.toml"
    broken.write_text("issuer = \n")
    unknown.write_text('clam = "name"\n')
    for words, why in (
        (["--listen", "0.0.0.0:1"], "need TLS"),
        (["--portal-header", "X"], "needs --portal-from"),
        (["--listen", "nowhere"], "HOST:PORT"),
        (["--rules", "missing.toml"], "no file"),
        (["--portal-header", "X", "--portal-from", "here"], "--portal-from takes an address such as"),
        (["--tls-cert", SHIPPED, "--tls-key", SHIPPED], f"cannot use --tls-cert {SHIPPED} with --tls-key"),
        (["--tls-cert", SHIPPED], "--tls-cert and --tls-key must be given together"),
        (["--oidc", broken], f"{broken}:1:10: Invalid value"),
        (["--oidc", unknown], "there is no clam; there are issuer,"),
        (["--racks", "(r1"], "--racks: '(r1' is no regular expression"),
        (["--racks", "r1"], "'r1' has 0 groups; one, such as in '^(r[0-9]+)', is the rack"),
        (["--raw-days", "400"], "means are kept for 365 days and samples for 400"),
        (["--samples", "http://127.0.0.1:1", "--raw-days", "9"], "leave out --raw-days and --thin-days"),
        (["--samples", "localhost:8428", "--listen", "127.0.0.1:1"], "is an address such as http://"),
        (
            ["--samples-select", "http://s:1/select/0/prometheus"],
            "go with --samples, the address of a vminsert",
        ),
    ):
        result = CliRunner().invoke(peerway, ["jobs", "serve", "--data", str(tmp_path), *map(str, words)])
        assert result.exit_code in (1, 2)
        assert isinstance(result.exception, SystemExit)
        assert why in result.output


def test_serve_keeps_samples_as_long_as_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = []

    def start(monitor: Monitor, **_: object) -> None:
        kept.append(monitor.thinning)
        raise SystemExit

    monkeypatch.setattr("peerway_jobs.serve.app.create_app", start)
    for words in ([], ["--raw-days", "9", "--thin-days", "90"]):
        told = CliRunner().invoke(peerway, ["jobs", "serve", "--data", str(tmp_path), *words])
        assert ("the server runs as root" in told.output) is (os.geteuid() == 0)
    assert kept == [Thinning(), Thinning(9, 90)]


def test_the_tokens_of_a_node_are_taken_back(server: Server) -> None:
    data = ("--data", server.monitor.folder)
    people = People(server.monitor.jobs)
    tokens = {node: [run("token", "--node", node, *data).strip() for _ in range(2)] for node in ("n1", "n2")}
    mine = server.token("alice")
    assert run("token", "--revoke", "--node", "n1", *data) == "2 tokens of n1 revoked\n"
    assert [people.of_token(each, NOW) for each in tokens["n1"]] == [None, None]
    assert all(people.of_token(each, NOW) for each in (*tokens["n2"], mine))
    again = CliRunner().invoke(peerway, ["jobs", "token", "--revoke", "--node", "n1", *map(str, data)])
    assert "n1 has no token here" in again.output
    run("token", "--revoke", "--user", "alice", *data)
    assert people.of_token(mine, NOW) is None


def commands(folder: Path, **programs: str) -> str:
    """A folder for PATH with Slurm commands that print something; commands that are not given do not
    exist.
    """
    folder.mkdir(exist_ok=True)
    for name, said in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{said}\n")
        (folder / name).chmod(0o755)
    return f"{folder}:/usr/bin:/bin"


def test_doctor_tells_what_the_server_lacks(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def doctor(path: str, folder: Path = server.monitor.folder) -> dict[str, tuple[str, str]]:
        words = ["jobs", "doctor", "--json", "--data", str(folder)]
        result = CliRunner().invoke(peerway, words, env={"PATH": path})
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert result.exit_code == any(each["state"] == "broken" for each in found)
        return {each["check"]: (each["state"], each["observed"]) for each in found}

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for node in ("c1", "c2"):
        server.token("", "agent", node=node)
    jobs, nodes = {"jobs": [{}, {}]}, {"nodes": [{"name": f"c{n}"} for n in (1, 2, 3)]}
    good = commands(
        tmp_path / "good",
        squeue=f"echo '{json.dumps(jobs)}'",
        sinfo=f"echo '{json.dumps(nodes)}'",
        scontrol="echo 'PrivateData = jobs,usage'",
    )
    found = doctor(good)
    assert found["squeue"] == ("ok", "2 jobs")
    assert found["tokens"] == ("warning", "1 of 3 nodes have none: c3")
    assert found["private"][0] == "warning"
    assert found["database"][0] == found["rules"][0] == "ok"
    (server.monitor.folder / "rules.toml").write_text("[[rule]]\nname = 7\n")
    try:
        # Unusable rules do not stop the other checks.
        found = doctor(
            commands(tmp_path / "bad", squeue="echo denied >&2; exit 1", sinfo="echo '{}'", scontrol="exit 1")
        )
    finally:
        (server.monitor.folder / "rules.toml").unlink()
    assert found["rules"][0] == "broken"
    assert found["squeue"][0] == "broken"
    assert "denied" in found["squeue"][1]
    # A failing command is not reported as missing.
    assert found["private"] == (
        "broken",
        "what Slurm hides is not known: scontrol ended with 1: it does not say why",
    )
    assert doctor(str(tmp_path / "none"))["private"][0] == "absent"
    # Slurm is not checked for a server that does not ask it.
    Monitor(tmp_path / "alone").close()
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        listen = f"127.0.0.1:{other.getsockname()[1]}"
        other.listen()  # so that it ends
        refused("serve", "--no-slurm", "--data", tmp_path / "alone", "--listen", listen)
    found = doctor(str(tmp_path / "none"), tmp_path / "alone")
    assert found["slurm"][0] == "absent"
    assert "was started with --no-slurm" in found["slurm"][1]
    assert found.keys() == {"database", "rows", "samples", "rules", "disk", "slurm"}


def test_a_job_that_cannot_be_submitted_is_told_with_all_that_sbatch_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(node="n1", state=str(tmp_path))
    why = "Batch job submission failed: Invalid account or account/partition combination specified " * 8
    for said, found in (
        (f"echo 'sbatch: error: {why}' >&2; exit 1", f"sbatch ended with 1: error: {why.strip()}"),
        ("echo Welcome", "sbatch --parsable gave no number of a job: Welcome"),
    ):
        monkeypatch.setenv("PATH", commands(tmp_path / "failing", sbatch=said))
        told = self_test(settings)
        assert (told.state, told.observed) == ("broken", found)
        assert "as a user who may submit jobs to this node" in told.advice
    monkeypatch.setenv("PATH", str(tmp_path / "none"))
    assert (self_test(settings).state, self_test(settings).observed) == ("absent", "there is no sbatch here")


def test_the_units_call_what_there_is() -> None:
    folder = SHIPPED.parents[1] / "slurm"
    for name, verb in (("peerway-jobs", serve.command), ("peerway-jobs-agent", agent_verb.command)):
        unit = (folder / f"{name}.service").read_text()
        (line,) = [line for line in unit.splitlines() if line.startswith("ExecStart=")]
        words = line.split()[3:]
        assert {word for word in words if word.startswith("--")} <= {
            name for each in verb.params for name in each.opts
        }


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
        "array_job_id": number(5),
        "array_task_id": number(0),
        "wckey": "*climate",
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
    assert run.project == "climate"
    assert (run.ended, run.time_limit, run.started) == (None, 3600, 1000)
    assert store.run("5_0") == run
    assert store.run("8") is None
    body = json.loads(store.reader.execute("SELECT body FROM cluster").fetchone()[0])
    assert (body["running"], body["waiting"], body["waiting_gpus"], body["users"]) == (1, 1, 4, 1)
    states = {
        node["name"]: (node["state"], node["gpus_busy"], node["gpus_blocked"]) for node in body["nodes"]
    }
    assert states == {"n1": ("partly busy", 3, 5), "n2": ("blocked", 0, 2), "n3": ("off", 0, 0)}
    store.close()
