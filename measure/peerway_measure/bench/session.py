"""Starts the ranks once with a list of cases, and passes on their messages as they come.

The list goes to rank 0's standard input, and the messages come from its standard output, one line of JSON
each. So no file is needed, and ranks on other hosts work in the same way.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol

Message = dict[str, Any]
LAST_LINES = 12  # lines of the ranks' output that are shown at the end or after a failure
GRACE_S = 1  # seconds for the other ranks to end when one has died
END_S = 10  # seconds for the launcher to end its ranks


class SessionPlan(Protocol):
    """The plan that a session sends to the ranks, and how it starts them."""

    @property
    def ranks(self) -> int:
        """The number of ranks."""

    @property
    def launch(self) -> Sequence[str]:
        """Options of `peerway run`."""

    @property
    def timeout_s(self) -> float:
        """The seconds that the ranks may take to end after their last message."""

    def as_json(self) -> str:
        """The JSON that rank 0 reads."""


class SessionFailed(RuntimeError):
    """The ranks could not be started, or ended too early; the message has their output."""


class PlanRefused(ValueError):
    """The ranks refuse the plan, for example because a path does not exist or a route table is broken."""


@contextlib.contextmanager
def started(
    plan: SessionPlan,
    environment: Mapping[str, str] | None = None,
    module: str = "peerway_measure.bench.worker",
) -> Iterator[Iterator[Message]]:
    """Start the ranks as `module`. The block gets an iterator that yields their messages until they are done.

    Other output of the ranks comes last, as messages of kind "said". At the end of the block the ranks are
    gone, however it ends. The iterator raises SessionFailed or PlanRefused.
    """
    with tempfile.TemporaryFile() as log, _start(plan, log, environment or {}, module) as process:
        try:
            yield _messages(plan, process, log)
        finally:
            _end(process)


def _start(
    plan: SessionPlan, log: IO[bytes], environment: Mapping[str, str], module: str
) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "peerway",
        "run",
        "-n",
        str(plan.ranks),
        "--grace",
        str(GRACE_S),
        *plan.launch,
        "--",
    ]
    command += [sys.executable, "-m", module]
    descriptor = os.memfd_create("plan")
    with os.fdopen(descriptor, "r+b") as file:
        file.write(plan.as_json().encode())
        file.seek(0)
        return subprocess.Popen(
            command, stdin=file, stdout=subprocess.PIPE, stderr=log, env={**os.environ, **environment}
        )


def _messages(plan: SessionPlan, process: subprocess.Popen[bytes], log: IO[bytes]) -> Iterator[Message]:
    assert process.stdout is not None
    finished = yield from decoded(line.decode(errors="replace") for line in process.stdout)
    status = _status(process, plan.timeout_s if finished else END_S)
    log.seek(0)
    lines = log.read().decode(errors="replace").strip().splitlines()
    if not finished or status != 0:
        raise SessionFailed(_failure(plan, status, lines))
    yield from ({"kind": "said", "text": line} for line in dict.fromkeys(lines[-LAST_LINES:]))


def decoded(lines: Iterable[str]) -> Generator[Message, None, bool]:
    """Yield the messages of whole lines until "done", and then return True. A last line without a newline
    comes from a rank that died while writing, and is ignored.
    """
    for line in lines:
        if not line.endswith("\n"):
            return False
        message = json.loads(line)
        if message["kind"] == "done":
            return True
        if message["kind"] == "cannot start":
            raise PlanRefused(message["message"])
        yield message
    return False


def _status(process: subprocess.Popen[bytes], timeout: float) -> int | None:
    """The exit code of the launcher, whose ranks send nothing more; None if it does not end in time."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout)
    return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the launcher by a signal, which it passes on to its ranks."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(END_S)
    except subprocess.TimeoutExpired:
        process.kill()


def _failure(plan: SessionPlan, status: int | None, lines: list[str]) -> str:
    output = "\n  ".join(lines[-LAST_LINES:]) or "they printed nothing"
    subject = "the rank" if plan.ranks == 1 else f"the {plan.ranks} ranks"
    return f"{subject} that measured ended early (status {status}):\n  {output}"
