"""What commands of `peerway jobs` send to a server's address, and which answers they accept."""

from __future__ import annotations

import http.server
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from jobs_server import Server, served

from peerway_common.cli import command as peerway
from peerway_jobs.agent import settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VERBS = (["show", "1"], ["summary", "1"], ["list"], ["top"])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("jobs")) as server:
        yield server


def refused(*words: str, **environment: str) -> str:
    result = CliRunner().invoke(peerway, ["jobs", *words], env={"PEERWAY_JOBS_TOKEN": "x", **environment})
    assert result.exit_code in (1, 2), result.output
    assert isinstance(result.exception, SystemExit), result.exception
    return result.output


@contextmanager
def answering(body: bytes = b"", status: int = 200, **headers: str) -> Iterator[tuple[str, list[Any]]]:
    """A server that gives every request the same answer, and the requests that it got."""
    sent = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            sent.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
            for name, value in {"Content-Type": "application/json", **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{other.server_port}", sent
        finally:
            other.shutdown()


@pytest.mark.parametrize("words", VERBS, ids=" ".join)
def test_no_token_goes_unencrypted_to_another_host(words: list[str]) -> None:
    told = refused(*words, "--server", "http://192.0.2.2:8777")
    assert "'http://192.0.2.2:8777' would send the token in PEERWAY_JOBS_TOKEN unencrypted" in told
    assert "use https://" in told
    assert "unencrypted" in refused(*words, PEERWAY_JOBS_SERVER="HTTP://jobs.example.org")
    assert "unencrypted" in refused(*words, "--server", "http://localhost.example.org")


@pytest.mark.parametrize(
    "address", ["jobs.example.org", "https://", "https://[::1", "https://me@h", "ftp://h"]
)
def test_what_is_no_address_is_told_to_users_and_to_agents(address: str, tmp_path: Path) -> None:
    told = refused("show", "1", "--server", address)
    assert f"--server takes an address such as https://jobs.example.org, not '{address}'" in told
    file = tmp_path / "agent.toml"
    file.write_text(f'server = "{address}"\ntoken_file = "t"\n')
    with pytest.raises(settings.BadSettings, match=r"is not https://HOST\[:PORT\]\[/PATH\]"):
        settings.read(file)


def test_a_token_does_not_follow_to_where_an_answer_points() -> None:
    with (
        answering() as (other, sent),
        answering(status=302, Location=f"{other}/api/v1/jobs/1") as (url, asked),
    ):
        told = refused("show", "1", "--server", url)
    assert f"{url} points to {other}/api/v1/jobs/1" in told
    assert "name that server with --server" in told
    assert len(asked) == 1
    assert sent == []


def test_a_token_for_this_host_goes_through_no_proxy(server: Server) -> None:
    with answering() as (proxy, sent):
        found = CliRunner().invoke(
            peerway,
            ["jobs", "show", "102", "--json", "--server", server.url],
            env={"http_proxy": proxy, "no_proxy": "", "PEERWAY_JOBS_TOKEN": server.token("alice")},
        )
    assert sent == []
    assert json.loads(found.stdout)["job"] == "102"


def _job(**changes: object) -> dict[str, object]:
    """The smallest answer about a job."""
    return {"job": "1", "verdict": None, "final": False, **changes}


@pytest.mark.parametrize(
    "body",
    [
        {}, None, "text", _job(job=1), _job(verdict=[]),
        *(
            pytest.param(body, marks=pytest.mark.long)
            for body in ([], 7, {"job": "1"}, _job(final="no"), _job(nodes="2"), _job(verdict={}))
        ),
        _job(verdict={"state": "efficient", "hours": {}, "findings": []}),
        _job(verdict={"state": "efficient", "hours": 1, "rules_hash": "a", "findings": []}),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("verb", [pytest.param("show", marks=pytest.mark.long), "summary"])
def test_json_that_is_no_job_is_not_taken_for_one(verb: str, body: object) -> None:
    with answering(json.dumps(body).encode()) as (url, _):
        told = refused(verb, "1", "--server", url)
    assert f"cannot ask {url}: its answer is none of a jobs server; give the address of its pages" in told


@pytest.mark.parametrize("body", [{}, None, 7, "text", [{}], [7], [{"job": "1", "cores": "many"}]], ids=str)
@pytest.mark.parametrize("verb", ["list", pytest.param("top", marks=pytest.mark.long)])
def test_json_that_is_no_list_of_jobs_is_not_taken_for_one(verb: str, body: object) -> None:
    with answering(json.dumps(body).encode()) as (url, _):
        told = refused(verb, "--server", url)
    assert f"cannot ask {url}: its answer is none of a jobs server" in told


def test_a_newer_server_may_tell_more_of_a_job() -> None:
    with answering(json.dumps(_job(colour="red")).encode()) as (url, _):
        found = CliRunner().invoke(peerway, ["jobs", "show", "1", "--server", url])
    assert found.exit_code == 0, found.output
