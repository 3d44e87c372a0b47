"""`peerway trace start`: switch recording on in a running job."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_trace.control import NoJob, processes, rings_of, start


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Switch recording on in the running job of `peerway trace -o FOLDER`."""
    try:
        count = start(rings_of(folder))
    except NoJob as error:
        raise click.ClickException(str(error)) from error
    say(f"peerway: trace: {processes(count)}, and so will processes that start later", err=True)
