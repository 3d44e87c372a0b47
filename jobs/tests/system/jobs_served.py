"""A virtual cluster with agents on its nodes and the real server on its head node: the whole monitor."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import sqlite3
import ssl
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from jobs_site import PORT, ROOT, SLURM, Site

from peerway_jobs.monitor import Monitor
from peerway_jobs.rules.load import SHIPPED
from peerway_jobs.serve.people import People
from peerway_jobs.store.ranges import has
from peerway_measure.rehearse.cluster import Description
from peerway_measure.rehearse.cluster.configuration import HEAD, HEAD_ADDRESS
from peerway_measure.rehearse.cluster.spaces import in_network

MONITOR = "monitor"  # the user that the server runs as


def hurried(text: str, minute_s: float) -> str:
    """The rules with shorter times: a minute lasts `minute_s` seconds,
    so findings about hours appear quickly.
    """
    seconds = {"m": minute_s, "h": 60 * minute_s}
    return re.sub(
        r'"(\d+)([mh])"', lambda conclusions: f'"{int(conclusions[1]) * seconds[conclusions[2]]:g}s"', text
    )


def lite(text: str, parameters: Mapping[str, str]) -> str:
    """The rules with other parameters for the jobs of partition lite, so that a test needs no large jobs."""
    head, *rules = text.split("[[rule]]\n")
    for place, rule in enumerate(rules):
        name = tomllib.loads(rule)["name"]
        if name in parameters:
            rules[place] = f'{rule}\n  [[rule.for]]\n  partition = "lite"\n  {parameters[name]}\n\n'
    return "[[rule]]\n".join([head, *rules])


class ServedSite(Site):
    """A Site whose server asks the cluster's Slurm and is reached over TLS.

    Its `batches` are those that an agent spooled, whatever became of them.
    """

    program = (str(ROOT / "jobs" / "tests" / "system" / "jobs_keeping_agent.py"),)

    def __init__(
        self, description: Description, minute_s: float, password: str = "",
        parameters: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(description)
        self.data = self.folder / "data"
        self.data.mkdir()
        self.rules = self.folder / "rules.toml"
        self.rules.write_text(lite(hurried(SHIPPED.read_text(), minute_s), parameters or {}))
        epilog = self.folder / "epilog.sh"
        program, summary = shlex.quote(str(self._program())), shlex.quote(f"{SLURM}/summary.sh")
        epilog.write_text(
            f"{epilog.read_text().replace('exec ', '')}"
            f'PEERWAY_JOBS_SETTINGS="{self.folder}/$SLURMD_NODENAME.toml" '
            f"PEERWAY_JOBS_PROGRAM={program} exec {summary}\n"
        )
        self._people: dict[str, str] = {}
        self._inside: ThreadPoolExecutor | None = None
        monitor = Monitor(self.data)
        people = People(monitor.jobs)
        for name in (*description.users, "root"):
            people.put(name, "admin" if name == "root" else "user")
            if password:
                people.set_password(name, password)
        self.tokens = {node: people.make_token("", ["agent"], time.time(), node) for node in self.nodes}
        for name in (*description.users, "root"):
            scopes = ["jobs:read", "cluster:read", *(["admin"] if name == "root" else [])]
            self._people[name] = people.make_token(name, scopes, time.time())
        monitor.close()
        self.mails = self.folder / "mails"
        self.cluster.hooks["MailProg"] = self._mail_program(program)

    def _mail_program(self, program: str) -> Path:
        """Slurm's MailProg, whose mails become files in `mails`."""
        self.mails.mkdir()
        sendmail, token = self.folder / "sendmail", self.folder / "mail.token"
        mails = shlex.quote(str(self.mails))
        sendmail.write_text(
            f'#!/bin/sh\nfile=$(mktemp {mails}/.XXXXXX) && cat >"$file" && mv "$file" {mails}/$$\n'
        )
        sendmail.chmod(0o755)
        token.write_text(self._people["root"])
        token.chmod(0o600)
        settings = self.folder / "mail.toml"
        settings.write_text(
            f'server = "https://{HEAD_ADDRESS}:{PORT}"\ntoken_file = "{token}"\n'
            f'mail = "sendmail:{sendmail}"\nsender = "slurm@example.org"\ndomain = "example.org"\n'
            f'ca_file = "{self.folder}/cert.pem"\n'
        )
        hook = self.folder / "mail.sh"
        hook.write_text(
            f"#!/bin/sh\nexport PEERWAY_JOBS_PROGRAM={program}\n"
            f"export PEERWAY_JOBS_MAIL_SETTINGS={shlex.quote(str(settings))}\n"
            f'exec {shlex.quote(f"{SLURM}/mail.sh")} "$@"\n'
        )
        hook.chmod(0o755)
        return hook

    def _program(self) -> Path:
        """A `peerway` program like that of an installation."""
        program = self.folder / "peerway"
        program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m peerway "$@"\n')
        program.chmod(0o755)
        return program

    def start(self) -> None:
        super().start()
        self.wait("the server's answer", self.answers)

    def start_receiver(self) -> None:
        """Start the real server, as an ordinary user who owns its folder."""
        uid = self.cluster.users[MONITOR]
        for path in (self.data, *self.data.rglob("*"), self.folder / "key.pem"):
            _own(path, uid)
        # An ordinary user who may read this repository, which is in somebody's home in the tests.
        ordinary = (
            "setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--inh-caps=+dac_read_search",
            "--ambient-caps=+dac_read_search", "--",
        )  # fmt: skip
        self._receiver = self.cluster.popen(
            HEAD, *ordinary, sys.executable, "-m", "peerway", "jobs", "serve", "--data", str(self.data),
            "--listen", f"{HEAD_ADDRESS}:{PORT}", "--tls-cert", str(self.folder / "cert.pem"),
            "--tls-key", str(self.folder / "key.pem"), "--rules", str(self.rules), "--admin-comment",
            log=self.folder / "server.log",
        )  # fmt: skip

    def answers(self) -> bool:
        try:
            self.get("root", "rules")
        except OSError:
            return False
        return True

    def get(self, who: str, path: str) -> Any:
        """The API's answer to a person; None for 404."""
        if self._inside is None:
            self._inside = in_network(self.cluster.spaces[HEAD])
        return self._inside.submit(self._get, who, path).result()

    def _get(self, who: str, path: str) -> Any:
        request = urllib.request.Request(
            f"https://{HEAD_ADDRESS}:{PORT}/api/v1/{path}",
            headers={"Authorization": f"Bearer {self._people[who]}"},
        )
        trust = ssl.create_default_context(cafile=str(self.folder / "cert.pem"))
        try:
            with urllib.request.urlopen(request, timeout=30, context=trust) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise

    def job(self, job: int, who: str = "root", restart: int | None = None) -> dict[str, Any]:
        """What the API says of a job; empty if it does not know the job."""
        query = "" if restart is None else f"?restart={restart}"
        return self.get(who, f"jobs/{job}{query}") or {}

    def conclusions(self, job: int) -> set[str]:
        """The rules that found the job."""
        verdict = self.job(job).get("verdict") or {}
        return {each["rule"] for each in verdict.get("findings", [])}

    def finally_judged(self, job: int) -> bool:
        """Whether there is a verdict on the whole job, including Slurm's record."""
        said = self.job(job)
        return bool(said.get("final")) and said["state"] != "ENDED"

    def acknowledged(self, node: str) -> list[list[int]]:
        """The ranges of batch numbers that the server has acknowledged to a node's agent."""
        with contextlib.closing(sqlite3.connect(f"file:{self.data}/jobs.db?mode=ro", uri=True)) as base:
            row = base.execute("SELECT ranges FROM received WHERE node = ?", (node,)).fetchone()
        return json.loads(row[0]) if row else []

    def acknowledges(self, node: str, seq: int) -> bool:
        """Whether the server has acknowledged this batch."""
        return has(self.acknowledged(node), seq)

    def _frames(self, node: str) -> Path:
        return self.folder / "state" / node / "taken.frames"


def _own(path: Path, uid: int) -> None:
    os.chown(path, uid, uid)
