"""`peerway jobs restore`: makes a server's folder of a backup."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_jobs.lock_file import locked
from peerway_jobs.server_folder import data_option, explaining


@click.command()
@click.argument("saved", metavar="FROM", type=click.Path(path_type=Path, exists=True, file_okay=False))
@click.option("--database", metavar="URL", help="Put the jobs into this empty database of PostgreSQL.")
@data_option
def command(saved: Path, database: str | None, data: Path) -> None:
    """Fill the empty server's folder from the backup FROM, which may be of an older version."""
    from peerway_jobs.backup import restore

    with explaining(data), locked(data, "server", 0o700):
        restore(data, saved, database)
    say(f"restored {data} from {saved}; start the server there")
