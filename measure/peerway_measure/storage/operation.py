"""Does one operation on a file system by the program peerway-storage in a process of its own. If the mount
hangs, only that process is given up.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from peerway import _core
from peerway_common.units import about_text

Answer = dict[str, Any]
WaitForNodes = Callable[[], None]
_READY = b"ready\n"

_REMEDIES = {
    "ENOSPC": "the file system is full: name another folder, or a smaller --size",
    "EDQUOT": "your quota is used up: `quota -s`, or `lfs quota` on Lustre, says by what",
    "EROFS": "it is mounted read-only: name a folder on a file system that can be written",
    "EACCES": "you may not write there: name a folder of your own",
    "EPERM": "the file system does not permit it",
    "ESTALE": "the server no longer knows the file: it was restarted or the export changed; mount it again",
    "EIO": "the device or the server failed: the kernel's log (`dmesg`) says how",
    "ENOENT": "name a folder that exists",
    "EINVAL": "this file system does not take it; with --mode direct: it may have no O_DIRECT",
    "ENOTCONN": "the file system's daemon is gone; mount it again",
    "EHOSTDOWN": "the server does not answer",
    "ENOTDIR": "name a folder",
    "EEXIST": "somebody else made a file of that name meanwhile",
}


class OperationFailed(Exception):
    """The message says what failed, why, and what to do. `errno` is the name of the error, such as ENOSPC; ""
    if there is none.
    """

    def __init__(self, message: str, errno: str = "") -> None:
        super().__init__(message)
        self.errno = errno


class GaveUp(OperationFailed):
    """The operation did not end within its time limit; the mount may hang."""


def program() -> Path:
    """The path of the program, beside the extension module. Raises OperationFailed."""
    assert _core.__file__ is not None
    path = Path(_core.__file__).parent / "libexec" / "peerway-storage"
    if not path.exists():
        raise OperationFailed(
            f"{path} is missing; build or install Peerway again (`make build`, `pip install .`)"
        )
    return path


def operate(name: str, limit_s: float, together: WaitForNodes | None = None, /, **words: object) -> Answer:
    """Do one operation and return its answer.

    `together` is called once, when the operation is ready to begin, or has failed before that. The operation
    begins when it returns. Raises OperationFailed, or GaveUp after `limit_s`.
    """
    arguments = [f"{key}={int(value) if isinstance(value, bool) else value}" for key, value in words.items()]
    hold = ["hold=1"] if together else []
    out = finished([str(program()), name, *arguments, *hold], limit_s, name, together)
    try:
        answer: Answer = json.loads(out[1])
    except ValueError:
        raise OperationFailed(f"{name}: the program ended with status {out[0]} without output") from None
    if "error" in answer:
        raise _failed(name, words.get("place"), answer)
    return answer


def finished(
    command: list[str],
    limit_s: float,
    name: str,
    together: WaitForNodes | None = None,
    *,
    starts_others: bool = False,
) -> tuple[int, str, str]:
    """The status, output and errors of a program that must end in time.

    With `together` the program prints "ready", and continues when `together` has returned. With
    `starts_others`, as for a shell, all processes that the program started end with it. Raises GaveUp after
    `limit_s`. A program that hangs in the kernel survives its signal until the mount answers. It is not
    waited for.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if together else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # In this session, in which sudo may already have authenticated the user.
        process_group=0 if starts_others else None,
    )

    def end() -> None:
        if starts_others:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()

    first = b""
    try:
        if together:
            try:
                first = _first_line(process, limit_s)
            finally:
                together()
        out, err = process.communicate(b"go\n" if together else None, timeout=limit_s)
    except subprocess.TimeoutExpired:
        end()
        try:
            process.wait(1)
        except subprocess.TimeoutExpired:
            process.returncode = -9  # nobody waits for it; the system will when this process ends
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
        raise GaveUp(
            f"{name} did not end within {limit_s:g} s, so it was given up: the mount may hang, or "
            "--limit is too short"
        ) from None
    except BaseException:
        end()
        raise
    out = out if first == _READY else first + out
    return process.returncode, out.decode(errors="replace"), err.decode(errors="replace")


def _first_line(process: subprocess.Popen[bytes], limit_s: float) -> bytes:
    """The first line of a program's output, or less if the program ends. Raises TimeoutExpired."""
    assert process.stdout
    line, until = b"", time.monotonic() + limit_s
    while not line.endswith(b"\n"):
        remaining = until - time.monotonic()
        if remaining <= 0 or not select.select([process.stdout], [], [], remaining)[0]:
            raise subprocess.TimeoutExpired(process.args, limit_s)
        if not (part := os.read(process.stdout.fileno(), 1 << 16)):
            break
        line += part
    return line


def _failed(name: str, place: object, answer: Answer) -> OperationFailed:
    says = f": {answer['says']} ({answer['errno']})" if answer["errno"] else ""
    at = f" after {about_text(answer['at'])}" if answer["at"] else ""
    todo = _REMEDIES.get(answer["errno"], "")
    return OperationFailed(
        f"{place or name}: {answer['error']}{says}{at}" + (f"; {todo}" if todo else ""), answer["errno"]
    )
