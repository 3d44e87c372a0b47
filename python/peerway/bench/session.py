"""One start of the ranks: launches them with a plan and hands back their messages as they come."""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from peerway.bench.plan import Plan

Message = dict[str, Any]
POLL_S = 0.2
LAST_LINES = 12  # of what the ranks wrote, at the end or in the message of a failure
REFUSED = "refused"  # the file with the reason of a rank that could not start


class SessionFailed(RuntimeError):
    """The ranks could not be started, or ended before they were done; the message has what they said."""


class PlanRefused(ValueError):
    """The ranks say that the plan cannot be: a path that there is none of, a route table that is broken."""


def refuse(folder: Path, why: str) -> None:
    """Called by a rank that cannot even start: leaves the reason in the folder of the plan."""
    with contextlib.suppress(FileExistsError), (folder / REFUSED).open("x") as file:
        file.write(why)


@contextlib.contextmanager
def address(folder: Path) -> Iterator[str]:
    """The name of the socket in the folder of the plan, for bind and connect: a socket's address has 108
    bytes, and TMPDIR may be longer.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{descriptor}/socket"
    finally:
        os.close(descriptor)


def run(plan: Plan, environment: Mapping[str, str] | None = None) -> Iterator[Message]:
    """Start the ranks and yield their messages until they are done.

    What the ranks wrote besides comes last, as messages of kind "said". Ends the ranks when the caller stops
    early. Raises SessionFailed or PlanRefused.
    """
    with tempfile.TemporaryDirectory(prefix="peerway-bench-") as made:
        folder = Path(made)
        (folder / "plan.json").write_text(plan.as_json())
        (folder / "flag").write_bytes(bytes(4096))
        with socket.socket(socket.AF_UNIX) as listener, (folder / "output").open("w+b") as output:
            with address(folder) as name:
                listener.bind(name)
            listener.listen(1)
            with _start(plan, folder, output.fileno(), environment or {}) as process:
                try:
                    finished = yield from _messages(listener, process)
                    if finished:
                        process.wait(plan.timeout_s)
                finally:
                    _end(process)
        said = (folder / "output").read_text(errors="replace").strip().splitlines()
        if not finished or process.returncode != 0:
            if (folder / REFUSED).exists():
                raise PlanRefused((folder / REFUSED).read_text())
            raise SessionFailed(_failure(plan, process.returncode, said))
        yield from ({"kind": "said", "text": line} for line in dict.fromkeys(said[-LAST_LINES:]))


def _start(plan: Plan, folder: Path, output: int, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "peerway", "run", "-n", str(plan.ranks), "--"]
    command += [sys.executable, "-m", "peerway.bench.worker", str(folder)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env={**os.environ, **environment}
    )


def _messages(listener: socket.socket, process: subprocess.Popen[bytes]) -> Generator[Message, None, bool]:
    """Yield messages until "done" (then True is returned) or until the ranks are gone (then False)."""
    connection = _accept(listener, process)
    if connection is None:
        return False
    with connection, connection.makefile("r", encoding="utf-8") as lines:
        return (yield from decoded(lines))


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
        yield message
    return False


def _accept(listener: socket.socket, process: subprocess.Popen[bytes]) -> socket.socket | None:
    while not select.select([listener], [], [], POLL_S)[0]:
        if process.poll() is not None:
            return None
    return listener.accept()[0]


def _end(process: subprocess.Popen[bytes]) -> None:
    """The launcher passes a signal on to its ranks."""
    if process.poll() is None:
        process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


def _failure(plan: Plan, status: int | None, lines: list[str]) -> str:
    said = "\n  ".join(lines[-LAST_LINES:]) or "they said nothing"
    return f"the {plan.ranks} ranks of the benchmark ended early (status {status}):\n  {said}"
