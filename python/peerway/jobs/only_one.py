"""One server, or one agent, in a folder."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click


@contextmanager
def only_one(folder: Path, what: str, mode: int) -> Iterator[None]:
    """Keep a second server or agent out of a folder while the block runs: two servers would both judge and
    send each mail, two agents would give two batches one number.
    """
    with _locked(folder, what, mode):
        yield


def _locked(folder: Path, what: str, mode: int) -> IO[str]:
    try:
        folder.mkdir(mode=mode, parents=True, exist_ok=True)
        file = (folder / f"{what}.lock").open("a")
    except OSError as error:
        raise _cannot(folder, error) from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.close()
        if not isinstance(error, BlockingIOError):
            raise _cannot(folder, error) from None
        raise click.ClickException(
            f"another {what} runs in {folder}: end it, or name another folder"
        ) from None
    return file


def _cannot(folder: Path, error: OSError) -> click.ClickException:
    return click.ClickException(f"cannot lock {folder}: {error.strerror or error}")
