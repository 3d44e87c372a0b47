"""Where the server keeps what it has, and how a verb of the command line opens it."""

from __future__ import annotations

import os
import sqlite3
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
        "--data",
        type=click.Path(path_type=Path),
        envvar="PEERWAY_JOBS_DATA",
        default=DEFAULT,
        show_default=True,
        help="The server's folder.",
    )(function)


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_since(text: str) -> float:
    """Seconds of "90s", "30m", "12h", "7d". Raises ValueError."""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS:
        raise ValueError(f"a time is a number with s, m, h or d, such as 30d, not {text!r}")
    return float(number) * _UNITS[unit]


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
    except (OSError, sqlite3.Error) as error:
        raise click.ClickException(
            f"cannot open {folder}: {getattr(error, 'strerror', None) or error}"
        ) from None
    try:
        yield monitor
    finally:
        monitor.close()
