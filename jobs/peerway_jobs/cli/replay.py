"""`peerway jobs replay`: judges past jobs by other rules."""

from __future__ import annotations

import time
from pathlib import Path

import click

from peerway_common.cli.numbers import Whole
from peerway_common.cli.options import parsed
from peerway_common.console import table_console
from peerway_common.printable import json_text
from peerway_common.terminal import say
from peerway_jobs.server_folder import data_option, monitor_at, parse_since


@click.command()
@click.option(
    "--rules",
    "file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The rules to try.",
)
@click.option(
    "--since",
    callback=parsed(parse_since),
    default="7d",
    show_default=True,
    metavar="TIME",
    help="Jobs that ended in this time up to now: 90s, 30m, 12h, 30d.",
)
@click.option("-n", "most", type=Whole(1), default=1000, show_default=True, help="Maximum number of jobs.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@data_option
def command(file: Path, since: float, most: int, as_json: bool, data: Path) -> None:
    """Judge past jobs by other rules and show what would change. This changes no verdict."""
    from rich.table import Table

    from peerway_jobs.replay import replayed
    from peerway_jobs.rules.load import BadRules, read_rules

    try:
        rules = read_rules(file)
    except BadRules as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror or error}") from None
    for note in rules.notes:
        say(note, err=True)
    with monitor_at(data) as monitor:
        comparison = replayed(monitor, rules, time.time() - since, most)
    if as_json:
        say(json_text(comparison, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("rule", "in force", "with these"):
        table.add_column(name, justify="left" if name == "rule" else "right")
    for name, (before, after) in comparison["findings"].items():
        table.add_row(name, str(before), str(after))
    for key, name in (
        ("freed_gpu_hours", "GPU-hours that could be freed"),
        ("freed_core_hours", "core-hours that could be freed"),
    ):
        table.add_row(name, *(f"{value:.1f}" for value in comparison[key]))
    table_console().print(table)
    more = f"; only the newest {most}, there are more" if comparison["more"] else ""
    say(f"{comparison['judged']} jobs judged{more}, {comparison['changed']} with another verdict")
    for each in comparison["jobs"]:
        gone, new = (", ".join(each[key]) or "-" for key in ("gone", "new"))
        say(
            f"  {each['job']} {each['user']}: {each['state'][0]} -> {each['state'][1]}; "
            f"gone: {gone}; new: {new}"
        )
