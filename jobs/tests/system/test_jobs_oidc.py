"""Login through an independent OpenID provider: npm's oidc-provider, as a process, over TLS."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from launching import ROOT
from ports import free_port

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.people import People
from peerway_jobs.store.runs import Run

HERE = Path(__file__).parent / "oidc_provider"
LIMIT_S = 60  # a guard against hangs, not an expectation


pytestmark = pytest.mark.long  # npm fetches the provider, which can take minutes


@pytest.fixture(scope="module")
def library() -> Path:
    """The provider's package at the locked versions, unpacked in build/ until these change."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing: apt-get install nodejs npm")
    lock = (HERE / "package-lock.json").read_bytes()
    folder = ROOT / "build" / f"oidc-provider-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not (folder / "done").exists():
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(HERE / name, folder)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", folder]
        made = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if made.returncode:
            pytest.skip(f"npm cannot fetch oidc-provider: {made.stderr[-200:]}")
        (folder / "done").touch()
    return folder / "node_modules" / "oidc-provider" / "lib" / "index.js"


@dataclass
class Place:
    """A jobs server that trusts a provider, and the addresses of both."""

    jobs: str
    issuer: str
    cert: Path
    provider: subprocess.Popen[str]

    @contextlib.contextmanager
    def browser(self) -> Iterator[httpx.Client]:
        import ssl

        trust = ssl.create_default_context(cafile=self.cert)
        with httpx.Client(verify=trust, timeout=LIMIT_S, follow_redirects=True) as client:
            yield client


@contextlib.contextmanager
def ended(*programs: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.communicate()


@contextlib.contextmanager
def place(folder: Path, library: Path, *, at_userinfo: bool, secret: str = "s3cret") -> Iterator[Place]:
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
         "-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1",
         "-keyout", folder / "key.pem", "-out", folder / "cert.pem"],
        capture_output=True, check=True,
    )  # fmt: skip
    jobs, issuer = (f"https://127.0.0.1:{free_port()}" for _ in range(2))
    back = f"{jobs}/oidc/back"
    client = {"client_id": "peerway", "client_secret": "s3cret", "redirect_uris": [back]}
    (folder / "provider.json").write_text(
        json.dumps(
            {
                "library": str(library), "issuer": issuer, "port": int(issuer.rpartition(":")[2]),
                "client": client, "claimsAtUserinfo": at_userinfo,
                "key": str(folder / "key.pem"), "cert": str(folder / "cert.pem"),
            }
        )
    )  # fmt: skip
    (folder / "oidc.toml").write_text(
        f'issuer = "{issuer}"\nclient_id = "peerway"\nclient_secret = "{secret}"\nredirect = "{back}"\n'
    )
    data = folder / "data"
    monitor = Monitor(data)
    monitor.jobs.update(
        Run(job, 0, user=user, name=f"of-{user}", state="RUNNING", started=time.time() - 60)
        for job, user in (("1", "ann"), ("2", "ben"))
    )
    People(monitor.jobs).put("root", "admin")
    monitor.close()
    provider = subprocess.Popen(
        ["node", HERE / "provider.js", folder / "provider.json"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    log = (folder / "server.log").open("w")
    server = subprocess.Popen(
        [sys.executable, "-m", "peerway", "jobs", "serve", "--no-slurm", "--data", data,
         "--listen", jobs.removeprefix("https://"), "--tls-cert", folder / "cert.pem",
         "--tls-key", folder / "key.pem", "--oidc", folder / "oidc.toml"],
        env={**os.environ, "SSL_CERT_FILE": str(folder / "cert.pem")},
        stdout=subprocess.DEVNULL, stderr=log, text=True,
    )  # fmt: skip
    with log, ended(provider, server):
        assert provider.stdout is not None
        assert "ready" in provider.stdout.readline()
        made = Place(jobs, issuer, folder / "cert.pem", provider)
        with made.browser() as browser:
            until = time.monotonic() + LIMIT_S
            while True:
                try:
                    assert "/oidc/start" in browser.get(f"{jobs}/login").text
                    break
                except httpx.ConnectError:
                    assert server.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.05)
        yield made


def to_consent(browser: httpx.Client, place: Place, name: str) -> httpx.Response:
    """Log in on the provider's page like a person; returns the page that asks for consent."""
    page = browser.get(f"{place.jobs}/oidc/start")
    assert page.url.host == "127.0.0.1"
    assert str(page.url).startswith(f"{place.issuer}/interaction/")
    return browser.post(action(page), data={"prompt": "login", "login": name, "password": "any"})


def action(page: httpx.Response) -> str:
    found = re.search(r'action="([^"]+)"', page.text)
    assert found, page.text
    return str(page.url.join(found[1]))


def agree(browser: httpx.Client, consent: httpx.Response) -> httpx.Response:
    return browser.post(action(consent), data={"prompt": "consent"})


@pytest.fixture(scope="module", params=[True, False], ids=["name-at-userinfo", "name-in-id-token"])
def provided(
    request: pytest.FixtureRequest, library: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with place(tmp_path_factory.mktemp("oidc"), library, at_userinfo=request.param) as made:
        yield made


def test_who_logs_in_at_the_provider_sees_own_jobs_alone(provided: Place) -> None:
    with provided.browser() as browser:
        page = agree(browser, to_consent(browser, provided, "ann@example.org"))
        assert str(page.url) == f"{provided.jobs}/jobs"
        assert "of-ann" in page.text
        assert "of-ben" not in page.text
        assert browser.get(f"{provided.jobs}/jobs/2").status_code == 404
        assert browser.get(f"{provided.jobs}/admin/jobs").status_code == 403
    with provided.browser() as browser:
        page = agree(browser, to_consent(browser, provided, "root"))
        assert "of-ben" in browser.get(f"{provided.jobs}/jobs?everyone=true").text


def test_who_refuses_consent_is_not_let_in(provided: Place) -> None:
    with provided.browser() as browser:
        consent = to_consent(browser, provided, "ann")
        abort = re.search(r'href="([^"]+/abort)"', consent.text)
        assert abort
        page = browser.get(str(consent.url.join(abort[1])))
        assert page.status_code == 403
        assert "access_denied" in page.text
        assert browser.get(f"{provided.jobs}/api/v1/jobs").status_code == 401


def test_an_answer_counts_once_and_only_in_the_browser_that_asked(provided: Place) -> None:
    with provided.browser() as victim, provided.browser() as thief:
        consent = to_consent(victim, provided, "ann")
        victim.follow_redirects = False
        answer = agree(victim, consent)
        while not (at := answer.headers["location"]).startswith(provided.jobs):
            answer = victim.get(str(answer.url.join(at)))
        assert thief.get(at).status_code == 403  # the thief knows the address with code and state
        assert thief.get(f"{provided.jobs}/api/v1/jobs").status_code == 401
        other = re.sub(r"code=[^&]+", "code=guessed", at)
        assert victim.get(other).status_code == 403
        assert victim.get(at).status_code == 403  # the login is used up
        assert victim.get(f"{provided.jobs}/api/v1/jobs").status_code == 401


def test_a_wrong_secret_of_the_client_lets_nobody_in(library: Path, tmp_path: Path) -> None:
    with place(tmp_path, library, at_userinfo=False, secret="wrong") as made, made.browser() as browser:
        page = agree(browser, to_consent(browser, made, "ann"))
        assert page.status_code == 403
        assert "invalid_client" in page.text


def test_a_provider_that_is_away_is_said_in_words(library: Path, tmp_path: Path) -> None:
    with place(tmp_path, library, at_userinfo=False) as made, made.browser() as browser:
        made.provider.kill()
        made.provider.wait()
        page = browser.get(f"{made.jobs}/oidc/start")
        assert page.status_code == 503
        assert "does not answer" in page.text
        assert made.issuer in page.text
