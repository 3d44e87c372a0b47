"""Starts the ranks of a peer's program and reads their results.

Nothing here waits for ever: if a program falls silent or one of its ranks dies, all its processes are ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from peerway_measure.bench.peers import cores

if TYPE_CHECKING:
    from collections.abc import Iterator

LOOK_S = 0.2  # seconds between checks of the processes while they print nothing
GRACE_S = 3.0  # seconds for the other ranks to end after one has ended
LAST_LINES = 3


@dataclass(frozen=True, slots=True)
class Job:
    """Commands to start at once. With `linked` each rank gets --rank, --ranks, a core, and sockets
    to rank 0.
    """

    commands: list[list[str]]
    environment: dict[str, str] = field(default_factory=dict)
    linked: bool = False


class Outcomes:
    """Runs a job and iterates over its results in the order of the cases: a dict, or the reason why a case
    was refused.

    Afterwards `failure` says how the job failed, "" if it did not. `began` says whether a case had begun that
    has neither a result nor a refusal.
    """

    def __init__(self, job: Job, silence_s: float) -> None:
        self.failure = ""
        self.began = False
        self._job = job
        self._silence_s = silence_s

    def __iter__(self) -> Iterator[dict[str, Any] | str]:
        """Start the job. It is ended when the iteration ends."""
        with (
            tempfile.TemporaryFile("w+", errors="replace") as errors,
            _Processes(self._job, errors) as processes,
        ):
            for line in self._lines(processes):
                values = _json_object(line)
                if "begin" in values:
                    self.began = True
                elif "refused" in values:
                    self.began = False
                    yield str(values["refused"])
                elif "test" in values:
                    self.began = False
                    yield values
            self.failure = self.failure or processes.failure()
            if self.failure:
                self.failure += _last_words(errors)

    def _lines(self, processes: _Processes) -> Iterator[str]:
        """Yield lines until the output ends, a rank fails, or nothing was printed for too long."""
        kept = b""
        last = time.monotonic()
        ended = None
        with selectors.DefaultSelector() as selector:
            selector.register(processes.output, selectors.EVENT_READ)
            while True:
                ready = selector.select(LOOK_S)
                now = time.monotonic()
                if ready:
                    chunk = os.read(processes.output.fileno(), 1 << 16)
                    if not chunk:
                        return
                    last = now
                    *lines, kept = (kept + chunk).split(b"\n")
                    yield from (line.decode(errors="replace") for line in lines)
                elif processes.one_failed():
                    ended = ended or now
                    if now - ended > GRACE_S:
                        return
                elif now - last > self._silence_s:
                    self.failure = f"silent for {self._silence_s:.0f} s and was ended"
                    return


class _Processes:
    """The ranks. Each leads its own process group, so that the processes that it starts end with it."""

    def __init__(self, job: Job, errors: IO[str]) -> None:
        self._started: list[subprocess.Popen[bytes]] = []
        environment = {**os.environ, **job.environment}
        links = [socket.socketpair() for _ in job.commands[1:]] if job.linked else []
        at = cores.one_each(len(job.commands))
        try:
            for rank, command in enumerate(job.commands):
                mine = (
                    [pair[0] for pair in links] if rank == 0 else [link[1] for link in links[rank - 1 : rank]]
                )
                numbers = [link.fileno() for link in mine]
                process = subprocess.Popen(
                    command + (_link_options(rank, len(job.commands), numbers, at) if job.linked else []),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE if rank == 0 else errors,
                    stderr=errors,
                    env=environment,
                    pass_fds=numbers,
                    start_new_session=True,
                )
                self._started.append(process)
        except BaseException:
            self._end()
            raise
        finally:
            for link in (link for pair in links for link in pair):
                link.close()
        output = self._started[0].stdout
        assert output is not None
        self.output: IO[bytes] = output

    def one_failed(self) -> bool:
        return any(process.poll() not in {None, 0} for process in self._started)

    def failure(self) -> str:
        """How the ranks failed; "" if all ended well. Waits a little for ranks that are about to end."""
        until = time.monotonic() + GRACE_S
        for process in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
        statuses = [process.poll() for process in self._started]
        failed = [status for status in statuses if status]
        if failed:
            # A signal has a negative status: name the rank that was killed, not one that noticed its death.
            return _how_it_ended(min(failed))
        return "did not end after its last case" if None in statuses else ""

    def __enter__(self) -> _Processes:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()
        self.output.close()

    def _end(self) -> None:
        """Kill all groups. mpirun first gets time to end the processes that it started in other groups."""
        for process in self._started:
            if process.poll() is None:
                process.terminate()
        until = time.monotonic() + GRACE_S
        for process in self._started:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _link_options(rank: int, ranks: int, links: list[int], at: list[int]) -> list[str]:
    options = ["--rank", str(rank), "--ranks", str(ranks), "--links", ",".join(map(str, links))]
    return options + (["--cpu", str(at[rank])] if at else [])


def _json_object(line: str) -> dict[str, Any]:
    """Parse the object of a line. Empty for anything else that a library prints."""
    if not line.startswith("{"):
        return {}
    try:
        values = json.loads(line)
    except ValueError:
        return {}
    return values if isinstance(values, dict) else {}


def _how_it_ended(status: int) -> str:
    if status > 128:  # how mpirun reports a signal
        status = 128 - status
    if status < 0:
        try:
            return f"was killed by {signal.Signals(-status).name}"
        except ValueError:
            return f"was killed by signal {-status}"
    return f"ended with status {status}"


def _last_words(errors: IO[str]) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors if line.strip(" -\n")]
    return ": " + " / ".join(lines[-LAST_LINES:]) if lines else ""
