"""`peerway config`: every setting, its value in force and where it came from."""

from __future__ import annotations

import click
from rich.table import Table

from peerway.printable import json_text
from peerway.terminal import Terminal, say

FIELDS = ("name", "type", "default", "help", "value", "origin", "problem")


@click.command()
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
@click.pass_context
def command(ctx: click.Context, form: str) -> None:
    """Print every setting, its value in force and where it came from.

    A setting NAME is given as the environment variable PEERWAY_NAME, or as "name" in the JSON object of
    ~/.config/peerway/config.json; the environment wins. The status is 1 when a value cannot be used.
    """
    from peerway import _core

    settings = [{name: getattr(setting, name) for name in FIELDS} for setting in _core.settings()]
    if form == "json":
        say(json_text(settings, indent=1))
    else:
        Terminal().print(table_of(settings))
    problems = [setting["problem"] for setting in settings if setting["problem"]]
    for problem in problems:
        say(problem, err=True)
    ctx.exit(1 if problems else 0)


def table_of(settings: list[dict[str, str]]) -> Table:
    """Give the settings as a table, what was set by hand in bold."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("setting", "value", "from", "what it does"):
        table.add_column(title)
    for setting in settings:
        by_default = setting["origin"].startswith("the default")
        value = setting["value"] or ("(cannot be used)" if setting["problem"] else "(derived)")
        origin = "default" if by_default else setting["origin"]
        table.add_row(setting["name"], value, origin, setting["help"], style="" if by_default else "bold")
    return table
