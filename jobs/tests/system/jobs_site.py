"""A virtual cluster with agents on its nodes and a receiver on its head node, for tests of the agent."""

from __future__ import annotations

import json
import secrets
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from peerway_jobs.batch import Batch, Interval, Note
from peerway_jobs.batch_check import decode
from peerway_jobs.frames import BadFrame, read_frames
from peerway_measure.rehearse.cluster import Description, VirtualCluster
from peerway_measure.rehearse.cluster.configuration import HEAD, HEAD_ADDRESS

ROOT = Path(__file__).resolve().parents[3]
SLURM = ROOT / "jobs" / "peerway_jobs" / "slurm"
PORT = 8443
INTERVAL_S = 0.5
LIMIT_S = 150  # a guard against hangs, not an expectation
# Runs a command before other tests on this machine: an agent that starves has gaps in its data, which are no
# idle time. Linux shares its cores between sessions, so the agent gets one of its own, and the session gets
# the precedence; without the right to take it, the agent goes on without.
PRECEDENCE = ("setsid", "sh", "-c", '{ echo -10 >/proc/self/autogroup; } 2>/dev/null; exec "$@"', "first")


class Site:
    """The started cluster, with an agent on each node."""

    program: tuple[str, ...] = ("-m", "peerway")  # of the agents

    def __init__(self, description: Description) -> None:
        self.cluster = VirtualCluster(description)
        folder = self.cluster.folder
        self.folder = folder / "site"
        self.folder.mkdir()
        (self.folder / "received").mkdir()
        for event in ("prolog", "epilog"):
            hook = self.folder / f"{event}.sh"
            events = f"{self.folder}/state/$SLURMD_NODENAME/events"
            hook.write_text(
                f'#!/bin/sh\nPEERWAY_JOBS_EVENTS="{events}" exec {shlex.quote(f"{SLURM}/{event}.sh")}\n'
            )
            hook.chmod(0o755)
        self.cluster.hooks = {event.title(): self.folder / f"{event}.sh" for event in ("prolog", "epilog")}
        self.nodes = list(description.types())
        self.tokens = {node: secrets.token_urlsafe(32) for node in self.nodes}
        self._agents: dict[str, subprocess.Popen[bytes]] = {}
        self._receiver: subprocess.Popen[bytes] | None = None
        self._decoded: dict[bytes, Batch] = {}

    def start(self) -> None:
        self._certificate()
        (self.folder / "tokens.json").write_text(
            json.dumps({token: node for node, token in self.tokens.items()})
        )
        for node in self.nodes:
            (self.folder / "state" / node / "events").mkdir(parents=True)
            self._settings(node)
        self.cluster.start()
        self.start_receiver()
        for node in self.nodes:
            self.start_agent(node)

    # what runs

    def start_receiver(self) -> None:
        command = (sys.executable, str(ROOT / "jobs" / "tests" / "system" / "jobs_receiver.py"))
        self._receiver = self.cluster.popen(
            HEAD, *command, str(self.folder), HEAD_ADDRESS, str(PORT), log=self.folder / "receiver.log"
        )

    def kill_receiver(self) -> None:
        assert self._receiver is not None
        self.cluster.kill(self._receiver)

    def start_agent(self, node: str) -> None:
        command = (*PRECEDENCE, sys.executable, *self.program)
        self._agents[node] = self.cluster.popen(
            node, *command, "jobs", "agent", "--settings", str(self.settings(node)),
            log=self.folder / f"agent-{node}.log", PYTHONPATH=str(ROOT / "jobs" / "tests" / "system"),
            FAKE_GPUS=str(self.cluster.gpu_folder(node)),
        )  # fmt: skip

    def kill_agent(self, node: str) -> None:
        """Kill a node's agent with SIGKILL."""
        self.cluster.kill(self._agents[node])

    def settings(self, node: str) -> Path:
        return self.folder / f"{node}.toml"

    # what was received

    def batches(self, node: str) -> list[Batch]:
        """The acknowledged batches in order of arrival, each once, as a server keeps them."""
        path = self._frames(node)
        found: dict[tuple[str, int], Batch] = {}
        try:
            for _, payload in read_frames(path.read_bytes() if path.exists() else b""):
                batch = self._decoded.get(payload)
                if batch is None:
                    batch = self._decoded[payload] = decode(payload)
                found.setdefault((batch.stream, batch.seq), batch)
        except BadFrame:  # the last frame is being written
            pass
        return list(found.values())

    def intervals(self, node: str, job: int, *, steps: bool = False) -> list[Interval]:
        """The newest version of each interval of a job on a node, by start."""
        newest = {each.id: each for batch in self.batches(node) for each in batch.intervals}
        found = [each for each in newest.values() if each.job == job and (each.step is not None) == steps]
        return sorted(found, key=lambda each: each.start_ms)

    def notes(self, node: str, kind: str) -> list[Note]:
        return [note for batch in self.batches(node) for note in batch.notes if note.kind == kind]

    def series(self, node: str, kind: str, device: str, metric: str, of: Interval) -> list[float]:
        """The samples of a device during an interval, joined as a server does it."""
        end = of.end_ms if of.end_ms is not None else 1 << 60
        found: list[float] = []
        for batch in self.batches(node):
            part = batch.samples.get(kind)
            if (
                part
                and of.start_ms <= batch.wall_ms <= end
                and device in part.devices
                and metric in part.values
            ):
                value = part.values[metric][part.devices.index(device)]
                if value is not None:
                    found.append(value)
        return found

    def step_series(self, node: str, job: int, step: str, metric: str) -> list[float]:
        """The samples of one step of a job."""
        found = next(each for each in self.intervals(node, job, steps=True) if each.step == step)
        return self.series(node, "step", str(found.slot), metric, found)

    def wait(self, description: str, ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + LIMIT_S
        while not ready():
            if time.monotonic() > deadline:
                raise AssertionError(f"{description} did not happen in {LIMIT_S} s\n{self.logs()}")
            time.sleep(0.1)

    def wait_ended(self, *jobs: tuple[str, int]) -> None:
        """Wait until the receiver knows the end of each job on its node."""
        for node, job in jobs:
            self.wait(
                f"the end of job {job} on {node}",
                lambda node=node, job=job: any(each.end_ms for each in self.intervals(node, job)),  # type: ignore[misc]
            )

    def logs(self) -> str:
        """The logs of Slurm, agents and receiver, for a failed test."""
        said = [f"{node}: {len(self.batches(node))} batches" for node in self.nodes]
        for command in ("squeue -t all -o '%i %T %r %N'", "sinfo -N -o '%N %T %E'"):
            said.append(self.cluster.run("sh", "-c", command).stdout)
        logs = [*self.folder.glob("*.log"), *sorted((self.cluster.folder / "log").glob("slurm*.log"))]
        return "\n".join(
            said + [f"{path.name}: {path.read_text(errors='replace')[-20000:]}" for path in logs]
        )

    # internals

    def _frames(self, node: str) -> Path:
        return self.folder / "received" / f"{node}.frames"

    def _settings(self, node: str) -> None:
        token = self.folder / f"{node}.token"
        token.write_text(self.tokens[node] + "\n")
        token.chmod(0o600)
        self.settings(node).write_text(
            f'server = "https://{HEAD_ADDRESS}:{PORT}"\ntoken_file = "{token}"\n'
            f'ca_file = "{self.folder}/cert.pem"\n'
            f'node = "{node}"\ninterval_s = {INTERVAL_S}\nstate = "{self.folder}/state/{node}"\n'
            'nvml = "peerway_measure.rehearse.cluster.fake_nvml"\n'
        )

    def _certificate(self) -> None:
        made = subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
             "-days", "2", "-subj", "/CN=receiver", "-addext", f"subjectAltName=IP:{HEAD_ADDRESS}",
             "-keyout", str(self.folder / "key.pem"), "-out", str(self.folder / "cert.pem")],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
