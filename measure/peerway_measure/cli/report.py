"""`peerway report`: a page with plots from records."""

from __future__ import annotations

from pathlib import Path

import click

from peerway_common.cli.options import BadInput
from peerway_common.terminal import say
from peerway_measure.cli.input import SKIP_TRUNCATED, read_records
from peerway_measure.cli.output import cannot_write
from peerway_measure.record_output import STANDARD


@click.command()
@click.argument("files", type=click.Path(path_type=Path), nargs=-1, required=True)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The page to write; - is standard output.",
)
@click.option(
    "--table",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Mark where this route table (of `peerway tune`) changes its path, and list unavailable paths.",
)
@SKIP_TRUNCATED
def command(files: tuple[Path, ...], out: Path, table: Path | None, skip_truncated: bool) -> None:
    """Make a self-contained page from the records in FILES (JSON lines, as `peerway bench --out` writes).

    The page begins with a headline: whether the automatic choice is the fastest, and how other tools compare.
    Then it plots time and bandwidth by size for every path and tool, shows a map of the device pairs, and
    lists the machine and the commands that made the records. Several files share the plots; the last one has
    solid lines. The page opens offline in any browser.
    """
    from peerway_measure.report.page import render, together, write
    from peerway_measure.report.routes import TableError, read_table

    records = together({file: read_records([file], skip_truncated) for file in files})
    try:
        routes = read_table(table) if table else None
    except TableError as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise BadInput(f"cannot read {table}: {error.strerror or error}") from None
    page = render(records, routes)
    try:
        if out == STANDARD:
            say(page.removesuffix("\n"))
        else:
            write(out, page)
    except OSError as error:
        raise cannot_write(out, error) from None
    say(f"{out}: {len(records)} records, {len(page.encode()) / 1e6:.1f} MB", err=True)
