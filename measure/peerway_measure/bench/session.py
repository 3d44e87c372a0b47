"""One start of the ranks: launch them with a plan, and pass on their messages as they come.

The plan goes to rank 0's standard input and the messages come by its standard output, one line of JSON each:
so nothing is put into any folder, and it is the same whichever hosts the ranks are on.
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
LAST_LINES = 12  # of what the ranks wrote, at the end or in the message of a failure
GRACE_S = 1  # for the other ranks when one has died: alone they measure nothing
END_S = 10  # for the launcher to end its ranks


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
        """How long they may take to end after their last message."""

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
    """Start the ranks as `module`; the iterator that is given yields their messages until they are done.

    What the ranks wrote besides comes last, as messages of kind "said". The ranks are gone at the end of the
    block, however it ends. The iterator raises SessionFailed or PlanRefused.
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
    """Yield the messages of whole lines until "done" (then True is returned).

    A last line without its end is what a rank wrote that died within it; it counts for nothing.
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
    """The exit code of a launcher whose ranks send no more; None if it does not end."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout)
    return process.returncode


def _end(process: subprocess.Popen[bytes]) -> None:
    """The launcher passes a signal on to its ranks."""
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
