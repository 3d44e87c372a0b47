"""`peerway trace stop`: switch recording off in a running job."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_trace.control import NoJob, processes, rings_of, stop


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def command(folder: Path) -> None:
    """Switch recording off in the running job of `peerway trace -o FOLDER`, until `peerway trace start`."""
    try:
        count = stop(rings_of(folder))
    except NoJob as error:
        raise click.ClickException(str(error)) from error
    say(
        f"peerway: trace: {processes(count)} nothing, and neither will processes that start later",
        err=True,
    )
