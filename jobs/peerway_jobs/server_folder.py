"""Opens the server's folder for commands: the option --data, a check of the folder, and the monitor in it."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from peerway_common import disk_space
from peerway_jobs.store.database import ADDRESS, UNFINISHED

if TYPE_CHECKING:
    from peerway_jobs.monitor import Monitor

DEFAULT = Path("/var/lib/peerway-jobs")
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def data_option(function: Decorated) -> Decorated:
    """Add the option --data (the server's folder) to a command."""
    return click.option(
        "--data",
        type=click.Path(path_type=Path, readable=False),  # check_folder has a better message
        envvar="PEERWAY_JOBS_DATA",
        show_envvar=True,
        default=DEFAULT,
        show_default=True,
        help="The server's folder.",
    )(function)


def check_folder(folder: Path, *, make: bool = False, takes_server: bool = False) -> None:
    """Raise click.ClickException if this is not a server's folder, or this user may not use it.

    With `make` the folder may still lack a database. `takes_server`: the command has the option --server,
    which the error then recommends.
    """
    # Not Path.exists, which raises if a parent folder may not be entered.
    if os.path.exists(folder):  # noqa: PTH110
        if not folder.is_dir():
            raise click.ClickException(f"{folder} is a file: --data names the server's folder")
        if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            if os.statvfs(folder).f_flag & os.ST_RDONLY:
                raise click.ClickException(
                    f"{folder} is on a file system that is mounted read-only: the kernel's messages (dmesg) "
                    "say whether an error of its disk did that; remount it to be written"
                )
            raise click.ClickException(
                f"{folder} belongs to {_owner(folder)}: "
                + (
                    "ask the server with --server URL and a token in PEERWAY_JOBS_TOKEN"
                    if takes_server
                    else "run this as that user"
                )
            )
    if os.path.exists(folder / UNFINISHED):  # noqa: PTH110
        raise click.ClickException(
            f"a restore into {folder} did not finish: run `peerway jobs restore` there again"
        )
    if not make and not any(os.path.exists(folder / name) for name in ("jobs.db", ADDRESS)):  # noqa: PTH110
        raise click.ClickException(
            f"there is no database of jobs in {folder}: name the server's folder with --data"
            + (", or a server with --server" if takes_server else "; `peerway jobs serve` makes one")
        )


def _owner(folder: Path) -> str:
    try:
        return f"the user {folder.owner()}"
    except KeyError:
        return "another user"


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_since(text: str) -> float:
    """Read a duration such as "90s", "30m", "12h" or "7d", in seconds. Raises ValueError."""
    number, unit = text[:-1], text[-1:]
    if not number.isdecimal() or unit not in _UNITS:
        raise ValueError(f"a time is a number with s, m, h or d, such as 30d, not {text!r}")
    return float(number) * _UNITS[unit]


@contextmanager
def explaining(folder: Path) -> Iterator[None]:
    """Raise errors of the databases and files in the block as click.ClickException."""
    from peerway_jobs.store.disk import DiskFailed

    try:
        yield
    except DiskFailed as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        path = Path(error.filename) if isinstance(error.filename, str) else folder
        raise click.ClickException(f"{path}: {disk_space.why(path, error)}") from None
    except (sqlite3.Error, ValueError) as error:
        raise click.ClickException(str(error)) from None


@contextmanager
def monitor_at(
    folder: Path,
    rules: Path | None = None,
    *,
    make: bool = False,
    takes_server: bool = False,
    database: str | None = None,
) -> Iterator[Monitor]:
    """Open the monitor of a folder while the block runs. Parameters as for check_folder; `database` is an
    address of PostgreSQL that the folder does not name yet.

    Raises click.ClickException if it cannot be opened, or if its disk fails in the block.
    """
    from peerway_jobs.monitor import Monitor
    from peerway_jobs.rules.load import BadRules
    from peerway_jobs.store.disk import DiskFailed

    check_folder(folder, make=make, takes_server=takes_server)
    try:
        monitor = Monitor(folder, rules, database=database)
    except BadRules as error:
        raise click.ClickException(str(error)) from None
    except DiskFailed as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot open {folder}: {disk_space.why(folder, error)}") from None
    except (sqlite3.Error, ValueError) as error:
        raise click.ClickException(f"cannot open {folder}: {error}") from None
    try:
        yield monitor
    except DiskFailed as error:  # raised while the command writes
        raise click.ClickException(str(error)) from None
    finally:
        monitor.close()
