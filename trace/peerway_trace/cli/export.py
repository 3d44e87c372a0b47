"""`peerway trace export`: a trace in the format of another tool."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from peerway_common.cli.options import BadInput
from peerway_common.terminal import say
from peerway_measure.cli.output import cannot_write, ensure_replaceable
from peerway_trace.cli.input import read
from peerway_trace.store import BadTrace


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(["perfetto", "otf2"]),
    required=True,
    help="perfetto: one file for ui.perfetto.dev; otf2: a folder for Vampir, Scalasca and otf2-print.",
)
@click.option(
    "-o", "--out", type=click.Path(path_type=Path), required=True, help="The file or folder to write."
)
def command(folder: Path, form: str, out: Path) -> None:
    """Write the trace FOLDER in the format of another tool."""
    if out.exists():
        raise BadInput(f"{out} exists; name another with -o, or remove it")
    ensure_replaceable(out)
    trace = read(folder)
    try:
        if form == "perfetto":
            from peerway_trace.export.perfetto import export
        else:
            from peerway_trace.export.otf2_archive import export
        with _draft(out) as beside:
            export(trace, beside)
    except BadTrace as error:
        raise BadInput(f"{folder}: {error}") from error
    except OSError as error:
        raise cannot_write(out, error) from error
    say(f"{out}: {len(trace):,} events", err=True)


@contextmanager
def _draft(out: Path) -> Iterator[Path]:
    """Give a temporary name next to `out`, for a file or a folder that is renamed to `out` when it is
    complete. An incomplete one would be refused the next time because it exists.
    """
    beside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        yield beside
        beside.rename(out)
    finally:
        if beside.is_dir():
            shutil.rmtree(beside, ignore_errors=True)
        else:
            beside.unlink(missing_ok=True)
