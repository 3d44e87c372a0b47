"""Where the server keeps what it has, and how a verb of the command line opens it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from peerway.jobs.monitor import Monitor

DEFAULT = Path("/var/lib/peerway-jobs")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def data_option(function: Decorated) -> Decorated:
    """Give --data, the server's folder."""
    return click.option(
        "--data", type=click.Path(path_type=Path), envvar="PEERWAY_JOBS_DATA", default=DEFAULT, show_default=True,
        help="The server's folder.",
    )(function)  # fmt: skip


@contextmanager
def monitor_at(folder: Path, rules: Path | None = None, *, make: bool = False) -> Iterator[Monitor]:
    """The monitor of a folder, for as long as the block runs."""
    from peerway.jobs.monitor import Monitor
    from peerway.jobs.rules.load import BadRules

    if not make and not (folder / "jobs.db").exists():
        raise click.ClickException(
            f"there is no database of jobs in {folder}: name the server's folder with --data, or use --server"
        )
    if not os.access(folder, os.W_OK) and folder.exists():
        raise click.ClickException(
            f"{folder} belongs to the server: ask it with --server URL and a token in PEERWAY_JOBS_TOKEN"
        )
    try:
        monitor = Monitor(folder, rules)
    except BadRules as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot open {folder}: {error.strerror or error}") from None
    try:
        yield monitor
    finally:
        monitor.close()
