"""`peerway jobs backup`: saves everything of a server."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_jobs.server_folder import check_folder, data_option, explaining


@click.command()
@click.argument("to", type=click.Path(path_type=Path))
@data_option
def command(to: Path, data: Path) -> None:
    """Save jobs, verdicts, people, tokens, rules, and the samples in the folder to the new folder TO.

    The server may run meanwhile. Jobs in PostgreSQL are saved, too, as a file of SQLite.
    """
    from peerway_jobs.backup import backup

    check_folder(data)
    with explaining(data):
        names = backup(data, to)
    say(f"saved {len(names)} files in {to}")
