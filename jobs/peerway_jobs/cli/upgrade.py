"""`peerway jobs upgrade`: migrates a database to the installed version, after a backup."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_jobs.lock_file import locked
from peerway_jobs.server_folder import check_folder, data_option, explaining
from peerway_jobs.store.schema import VERSIONS


@click.command()
@click.option(
    "--backup",
    "to",
    type=click.Path(path_type=Path),
    help="The new file for the backup  [default: jobs-before-VERSION.db in the folder]",
)
@data_option
def command(to: Path | None, data: Path) -> None:
    """Save the database of jobs, then migrate it to the installed version. No server may use it."""
    from peerway_jobs.backup import upgrade

    check_folder(data)
    to = to or data / f"jobs-before-{len(VERSIONS)}.db"
    if to.exists():
        raise click.ClickException(f"{to} exists already: name another file with --backup, or move it")
    with explaining(data), locked(data, "server", 0o700):
        before, after = upgrade(data, to)
    if before == after:
        say(f"the database is of version {after} already")
    else:
        say(f"the database was of version {before} and is of version {after} now; {to} has it as it was")
