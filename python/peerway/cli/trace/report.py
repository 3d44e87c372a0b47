"""`peerway trace report`: what a trace says, on the terminal or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway.cli.input import BadInput
from peerway.cli.trace.input import read
from peerway.terminal import say, table_console

if TYPE_CHECKING:
    from peerway.trace.curve import Curve


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Also write a page; it opens offline.")
@click.option(
    "--table",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The route table whose curves messages are judged by [default: this machine's].",
)
@click.option(
    "--bench",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Records of `peerway bench` to judge by, such as those of the peer openmpi for messages of MPI.",
)
def command(folder: Path, out: Path | None, table: Path | None, bench: Path | None) -> None:
    """Show the findings of FOLDER, a trace: lost time by the place that called, messages by size, path and
    pair, bursts, and rates against the measured curve.
    """
    from peerway.trace.analysis import analyse
    from peerway.trace.page import render, show

    trace = read(folder)
    analysis = analyse(trace, _curves(table, bench))
    show(table_console(), analysis)
    if out is not None:
        from peerway.report.page import write

        try:
            write(out, render(trace, analysis))
        except OSError as error:
            raise BadInput(f"cannot write {out}: {error.strerror or error}; name another file") from None
        found = len(analysis.findings)
        say(f"{out}: {found} finding{'' if found == 1 else 's'}", err=True)


def _curves(table: Path | None, bench: Path | None) -> list[Curve]:
    """Those of the route table and of the records."""
    from peerway import _core
    from peerway.report.routes import TableError
    from peerway.trace.curve import of_records, of_table

    file = table or Path(_core.default_table_file())
    try:
        curves = of_table(file) if table or file.exists() else []
        return [*curves, *(of_records(bench) if bench else [])]
    except (TableError, ValueError, KeyError) as error:
        raise BadInput(f"no curve can be read: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {error.filename}: {error.strerror}") from error
