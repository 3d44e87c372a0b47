"""`peerway trace shares`: which share of an application's time its transfers take."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.cli.options import BadInput
from peerway_common.terminal import say
from peerway_measure.cli.output import cannot_write, ensure_replaceable, write_directly
from peerway_trace.cli.input import read
from peerway_trace.store import BadTrace


@click.command()
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--application", required=True, metavar="NAME", help="The application, as in the usage.")
@click.option("--node-type", default="", metavar="NAME", help="Its type of nodes  [default: all types]")
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    default="-",
    help="The CSV file to write.",
)
def command(folders: tuple[Path, ...], application: str, node_type: str, out: Path) -> None:
    """Write which share of the time of the traces FOLDERS is in transfers, by operation, path and size.

    Give several traces of an application, so that `peerway worth` knows how much the shares vary.
    """
    from peerway_common import atomic_file
    from peerway_trace.shares import as_csv, shares

    ensure_replaceable(out)
    names = _names(folders)
    traces = {}
    for folder, name in zip(folders, names, strict=True):
        try:
            trace = read(folder)
            traces[name] = shares(trace)
        except BadTrace as error:
            raise BadInput(f"{folder}: {error}") from None
        if status := trace.about.get("status"):
            say(
                f"peerway: the command of {folder} ended with status {status}; its shares may not be those "
                "of a complete run",
                err=True,
            )
    text = as_csv(traces, application, node_type)
    if not write_directly(out, text):
        try:
            atomic_file.replace(out, text)
        except OSError as error:
            raise cannot_write(out, error) from None
        for name, several in traces.items():
            say(f"{name}: {sum(s.share for s in several):.1%} of its time in transfers", err=True)


def _names(folders: tuple[Path, ...]) -> list[str]:
    """The names of the folders; with their paths if two are the same."""
    names = [folder.resolve().name for folder in folders]
    if len(set(names)) < len(names):
        names = [str(folder.resolve()) for folder in folders]
    if len(set(names)) < len(names):
        raise BadInput("a trace is named twice, and would count twice; name each once")
    return names
