"""`peerway trace report`: show the analysis of a trace, on the terminal or as a page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import BadInput
from peerway_common.console import table_console
from peerway_common.terminal import say
from peerway_measure.cli.output import beside_text, cannot_write, ensure_replaceable
from peerway_measure.file_kinds import has_records, is_route_table
from peerway_trace.cli.input import read

if TYPE_CHECKING:
    from peerway_trace.curve import Curve


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    callback=beside_text,
    help="Also write an HTML page, which opens offline.",
)
@click.option(
    "--table",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Compare messages with the curves of this route table  [default: this machine's]",
)
@click.option(
    "--bench",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also compare with these records of `peerway bench`: single messages with its latency tests, bursts "
    "with its bandwidth tests, MPI messages with records of the same MPI (the peer openmpi, or apps/mpi).",
)
@click.option(
    "--bursts",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Also write all bursts, for each gap, as .parquet or .csv; any other name gets lines of JSON.",
)
def command(
    folder: Path, out: Path | None, table: Path | None, bench: Path | None, bursts: Path | None
) -> None:
    """Show the findings of the trace FOLDER: lost time by call site, messages by size, path and pair of
    ranks, bursts, and rates compared with the measured curve.
    """
    from peerway_trace.analysis import analyse
    from peerway_trace.page import render, show

    if out is not None:
        ensure_replaceable(out)
    if bursts is not None:
        ensure_replaceable(bursts, "--bursts")
    trace = read(folder)
    curves = _curves(table, bench)
    analysis = analyse(trace, curves)
    # Files come first: whoever reads what is printed may close the pipe early, as `head` does.
    if out is not None:
        from peerway_measure.report.page import write
        from peerway_trace.tables import by_advice

        try:
            write(out, render(trace, analysis))
        except OSError as error:
            raise cannot_write(out, error) from None
        result = len(by_advice(analysis.findings))
        say(f"{out}: {result} finding{'' if result == 1 else 's'}", err=True)
    if bursts is not None:
        from peerway_trace.burst_tables import export

        try:
            count = export(trace, curves, bursts)
        except OSError as error:
            raise cannot_write(bursts, error, "--bursts") from None
        say(f"{bursts}: {count:,} burst{'' if count == 1 else 's'}", err=True)
    show(table_console(), analysis)


def _curves(table: Path | None, bench: Path | None) -> list[Curve]:
    """The curves of the route table and of the records."""
    from peerway import _core
    from peerway_measure.report.routes import TableError
    from peerway_trace.curve import of_records, of_table

    if bench and is_route_table(bench):
        raise BadInput(
            f"--bench: {bench} is a route table; give it to --table, and to --bench records, as "
            "`peerway bench --out FILE` writes"
        )
    if table and has_records(table):
        raise BadInput(
            f"--table: {table} has records; give them to --bench, and to --table a route table, as "
            "`peerway tune --out FILE` writes"
        )
    file = table or Path(_core.default_table_file())
    try:
        curves = of_table(file) if table or file.exists() else []
        return [*curves, *(of_records(bench) if bench else [])]
    except (TableError, ValueError, KeyError) as error:
        raise BadInput(f"cannot read a curve: {error}") from error
    except OSError as error:
        raise BadInput(f"cannot read {error.filename}: {error.strerror}") from error
