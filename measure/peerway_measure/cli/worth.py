"""`peerway worth`: how many hours a year a change frees."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import BadInput, parsed
from peerway_common.console import table_console
from peerway_common.printable import json_text
from peerway_common.terminal import say
from peerway_measure.campaign.journal import Unreadable
from peerway_measure.cli.factors import check, chosen, parse
from peerway_measure.cli.input import SKIP_TRUNCATED, read_records
from peerway_measure.cli.output import beside_text, cannot_write, ensure_replaceable
from peerway_measure.worth.assumptions import KINDS, Assumptions
from peerway_measure.worth.assumptions import parse as parse_assumptions
from peerway_measure.worth.csv_file import BadFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from peerway_measure.records import Record
    from peerway_measure.worth.hours import Field, Worth
    from peerway_measure.worth.notices import Effect
    from peerway_measure.worth.speedups import SpeedUp

_FILE = click.Path(path_type=Path)


def _assumed(ctx: click.Context, parameter: click.Parameter, several: tuple[str, ...]) -> Assumptions:
    values: Assumptions = parsed(lambda _: parse_assumptions(several))(ctx, parameter, "")
    return values


@click.command()
@click.option("--usage", type=_FILE, multiple=True, help="Allocated hours, as `peerway jobs usage` writes.")
@click.option(
    "--shares",
    type=_FILE,
    multiple=True,
    help="Shares of time, as `peerway trace shares` writes.",
)
@click.option("--before", type=_FILE, help="A campaign, or a file of records, of before the change.")
@click.option("--after", type=_FILE, help="The same of after it.")
@click.option("--factor", "factors", multiple=True, metavar="NAME", help="What was meant to change.")
@click.option("--node-type", default="", metavar="NAME", help="The type of records that name none.")
@click.option("--stated", type=_FILE, multiple=True, help="Stated figures by application and node type.")
@click.option("--notices", type=_FILE, help="Hours around notices, as `peerway jobs usage --notices` writes.")
@click.option(
    "--by", type=click.Choice(["application", "node_type", "account", "project"]), default="application",
    show_default=True, help="Add up the rows by this column of the usage.",
)  # fmt: skip
@click.option("--resource", type=click.Choice(["gpu", "core"]), default="gpu", show_default=True,
              help="Hours of GPUs or of cores.")  # fmt: skip
@click.option(
    "--assume", "assumed", multiple=True, metavar="NAME=VALUE", callback=_assumed,
    help=f"Switch an assumption: {', '.join(KINDS)}.",
)  # fmt: skip
@click.option("-o", "--out", type=_FILE, callback=beside_text, help="Also write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@SKIP_TRUNCATED
def command(
    usage: tuple[Path, ...], shares: tuple[Path, ...], before: Path | None, after: Path | None,
    factors: tuple[str, ...], node_type: str, stated: tuple[Path, ...], notices: Path | None, by: Field,
    resource: str, assumed: Assumptions, out: Path | None, as_json: bool, skip_truncated: bool,
) -> None:  # fmt: skip
    """Compute how many hours a year a change frees, by application and node type.

    It joins speed-ups (--before, --after) with the shares of time that applications spend in transfers
    (--shares) and with their allocated hours (--usage). What is missing makes rows unknown, and the table
    names the command that measures it. --notices compares users before and after a notice.
    """
    if (before is None) != (after is None):
        raise click.UsageError("give both --before and --after, or neither")
    if (factors or node_type) and before is None:
        raise click.UsageError("--factor and --node-type need --before and --after")
    if not (shares or stated or notices):
        raise click.UsageError(
            "give --shares or --stated (what became faster, and for whom), or --notices; "
            "docs/measure/worth.md has examples"
        )
    if out is not None:
        ensure_replaceable(out)
    try:
        known = (
            _speedups(before, after, factors, node_type, assumed, skip_truncated)
            if before and after
            else None
        )
        worth = _worth(usage, shares, stated, known, by, resource, assumed) if shares or stated else None
        effect = _effect(notices, resource, assumed) if notices else None
    except (BadFile, Unreadable) as error:
        raise BadInput(str(error)) from None
    except OSError as error:
        raise BadInput(f"cannot read {error.filename}: {error.strerror or error}") from None
    if out is not None:
        from peerway_measure.report.page import write
        from peerway_measure.report.worth import render

        try:
            write(out, render(worth, effect, by, resource, assumed))
        except OSError as error:
            raise cannot_write(out, error) from None
    if as_json:
        from peerway_measure.worth.as_json import document

        say(json_text(document(worth, effect, by, resource, assumed), indent=1))
    else:
        _print(worth, effect, by, resource, assumed)


def _speedups(
    before: Path, after: Path, factors: tuple[str, ...], node_type: str, assumed: Assumptions, skip: bool
) -> list[SpeedUp]:
    """The speed-ups between two campaigns or files."""
    from peerway_measure.worth.speedups import speedups

    values = parse(factors)
    both = _records(before, node_type, skip), _records(after, node_type, skip)
    check(values, (*both[0], *both[1]))
    if before.samefile(after) and not any(values.values()):
        raise BadInput(
            f"--before and --after are the same, {before}, so nothing can have changed; name the records of "
            "after the change, or two values of a factor with --factor NAME=VALUE:VALUE"
        )
    sides = chosen(values, both, (before, after))
    known = speedups(*sides, (*values, "campaign"), assumed)
    if not known:
        raise BadInput(
            f"{before} and {after} have no test of one node type in common; "
            f"`peerway compare {before} {after} --table node-type` says why"
        )
    return known


def _records(path: Path, node_type: str, skip_truncated: bool) -> list[Record]:
    if path.is_dir():
        from peerway_measure.cli.campaign import records_of

        return records_of(path)
    from dataclasses import replace

    from peerway_measure.records import NODE_TYPE

    return [
        r if r.node_type or not node_type else replace(r, extra={**r.extra, NODE_TYPE: node_type})
        for r in read_records([path], skip_truncated)
    ]


def _worth(
    usage: Sequence[Path], shares: Sequence[Path], stated: Sequence[Path], known: Sequence[SpeedUp] | None,
    by: Field, resource: str, assumed: Assumptions,
) -> Worth:  # fmt: skip
    from peerway_measure.worth import hours
    from peerway_measure.worth import shares as share_files
    from peerway_measure.worth import usage as usage_files
    from peerway_measure.worth.model import Inputs

    accounts = usage_files.read(usage, resource) if usage else None
    inputs = Inputs(known, share_files.read(shares), share_files.read_stated(stated))
    return hours.worth(accounts, inputs, by, assumed)


def _effect(path: Path, resource: str, assumed: Assumptions) -> Effect:
    from peerway_measure.worth import notices

    return notices.effect(notices.read(path, resource), assumed)


def _print(
    worth: Worth | None, effect: Effect | None, by: Field, resource: str, assumed: Assumptions
) -> None:
    from rich.table import Table

    from peerway_measure.worth import text

    console, a_year = table_console(), assumed.year == "scaled"

    def show(head: Sequence[str], rows: Sequence[Sequence[str]], words: int) -> None:
        table = Table(box=None, pad_edge=False)
        for number, name in enumerate(head):
            table.add_column(name, justify="left" if number < words else "right")
        for row in rows[: text.MOST_ROWS]:
            table.add_row(*row)
        console.print(table)
        for line in text.more(len(rows) - text.MOST_ROWS, "row"):
            say(line)
        console.print()

    if worth:
        show(text.head(resource, a_year=a_year), [text.cells(row) for row in worth.rows], 2)
        if text.names_of(worth, by):
            show(text.sum_head(by, resource, a_year=a_year), [text.sum_cells(s) for s in worth.sums], 1)
        say(text.total_sentence(worth.total, resource, a_year=a_year))
        for line in text.notes(worth.rows):
            say(f"note: {line}")
        say("")
    for line in text.effect_lines(effect, resource) if effect else ():
        say(line)
    if effect:
        say("")
    lines = text.assumption_lines(assumed, notices=effect is not None, transfers=worth is not None)
    say("assumptions (--assume NAME=VALUE switches one):")
    wide = max(len(name) for name, _ in lines)
    for name, sentence in lines:
        say(f"  {name:{wide}}  {sentence}")
