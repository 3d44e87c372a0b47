"""`peerway trace collect`: make a trace from the rings that a job has left."""

from __future__ import annotations

import socket
from pathlib import Path

import click

from peerway import _core
from peerway_trace import job_file, memory
from peerway_trace.cli.record import summarize
from peerway_trace.collect import collect


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def command(folder: Path) -> None:
    """Make a trace from FOLDER/rings, which `peerway trace` leaves if it is killed or its disk is full."""
    if not (folder / "rings").is_dir():
        raise click.ClickException(f"{folder} has no folder rings: there is nothing to collect")
    if memory.in_use(folder / "rings"):
        raise click.ClickException(
            f"the `peerway trace` that records to {folder} still runs, and makes the trace when its command "
            "ends"
        )
    try:
        about, readings = job_file.read(folder / "rings")
        readings.setdefault(socket.gethostname(), []).append(_core.trace_clock())
        trace = collect(folder, about, readings)
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name}, which writes traces, is not installed: pip install peerway-trace"
        ) from error
    except OSError as error:
        raise click.ClickException(
            f"the trace cannot be written: {error.strerror or error}; make room and try again"
        ) from error
    job_file.remove(folder / "rings")
    summarize(trace, folder)
