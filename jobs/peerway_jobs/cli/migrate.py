"""`peerway jobs migrate`: moves jobs from SQLite to PostgreSQL, or back."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_jobs.lock_file import locked
from peerway_jobs.server_folder import check_folder, data_option, explaining


@click.command()
@click.option(
    "--to",
    required=True,
    metavar="URL|sqlite",
    help="An empty database such as postgresql://db.example.org/peerway, or sqlite for the folder.",
)
@data_option
def command(to: str, data: Path) -> None:
    """Move the jobs of a server's folder to PostgreSQL, or back. The server must not run.

    All of it is moved, or nothing.
    """
    from peerway_jobs.backup import migrate
    from peerway_jobs.store.postgres import is_postgres

    check_folder(data)
    if to != "sqlite" and not is_postgres(to):
        raise click.UsageError(f"--to is sqlite, or an address that begins with postgresql://, not {to!r}")
    with explaining(data), locked(data, "server", 0o700):
        copied = migrate(data, to)
    rows = copied.rows
    say(f"moved {rows['jobs']:,} runs, {rows['verdicts']:,} verdicts and {rows['people']:,} people")
    for column, count in sorted(copied.left_out.items()):
        say(f"{count:,} values of {column} were damaged, and are left out", err=True)
