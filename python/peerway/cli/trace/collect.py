"""`peerway trace collect`: a trace of the rings that a job has left."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path

import click

from peerway import _core
from peerway.cli.trace.record import summarize
from peerway.trace.collect import collect


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def command(folder: Path) -> None:
    """Make a trace of FOLDER/rings, which `peerway trace` left when it was ended or its disk was full."""
    if not (folder / "rings").is_dir():
        raise click.ClickException(f"{folder} has no folder rings: there is nothing to collect")
    try:
        about = {"command": [], "level": "", "began": "", "seconds": 0.0, "status": None}
        trace = collect(folder, about, {socket.gethostname(): [_core.trace_clock()]})
    except OSError as error:
        raise click.ClickException(
            f"the trace cannot be written: {error}; make room and try again"
        ) from error
    shutil.rmtree(folder / "rings")
    summarize(trace, folder)
