"""A lock file that keeps a second server or agent out of a folder, and records how the first was started."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import click


@contextmanager
def locked(folder: Path, role: str, mode: int, **facts: Any) -> Iterator[None]:
    """Keep a second server or agent out of a folder while the block runs. Raises click.ClickException.

    Two servers would both judge and send each mail twice; two agents would give two batches the same number.
    `facts` say how this process was started; `started` returns them.
    """
    with _open_locked(folder, role, mode) as file:
        _note(file, {"process": os.getpid(), "host": os.uname().nodename, **facts})
        yield


def started(folder: Path, role: str) -> dict[str, Any]:
    """How the last process was started: its process, its host, and the `facts` given to `locked`.

    Empty if there was none, or its disk was full.
    """
    with suppress(OSError, ValueError, AttributeError):
        record = json.loads(_path(folder, role).read_text())
        return record if {"process", "host"} <= record.keys() else {}
    return {}


def _path(folder: Path, role: str) -> Path:
    return folder / f"{role}.lock"


def _note(file: IO[str], facts: dict[str, Any]) -> None:
    os.ftruncate(file.fileno(), 0)
    with suppress(OSError):  # on a full disk it works without this record
        os.write(file.fileno(), (json.dumps(facts) + "\n").encode())


def _open_locked(folder: Path, role: str, mode: int) -> IO[str]:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        file = _path(folder, role).open("a")
    except OSError as error:
        raise _cannot(folder, error) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if not isinstance(error, BlockingIOError):
            raise _cannot(folder, error) from None
        other = started(folder, role)
        which = f" (process {other['process']} of {other['host']})" if other else ""
        raise click.ClickException(
            f"another {role} runs in {folder}{which}: end it, or name another folder"
        ) from None
    return file


def _cannot(folder: Path, error: OSError) -> click.ClickException:
    return click.ClickException(f"cannot lock {folder}: {error.strerror or error}")
