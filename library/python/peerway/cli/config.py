"""`peerway config`: every setting, its value in force and where it came from."""

from __future__ import annotations

import click
from rich.table import Table

from peerway.errors import Error
from peerway_common.cli.options import format_option
from peerway_common.console import Terminal
from peerway_common.printable import json_text
from peerway_common.terminal import say

FIELDS = ("name", "type", "default", "help", "value", "origin", "problem")


@click.command()
@format_option("table", "json")
@click.pass_context
def command(ctx: click.Context, form: str) -> None:
    """Print every setting, its value in force and where it came from.

    A setting NAME is given as the environment variable PEERWAY_NAME, or as "name" in the JSON object of
    ~/.config/peerway/config.json; the environment wins. Where none is given and the default is empty, the
    value is derived: it is shown with what it was derived from. Then follows what was found on this machine.
    The status is 1 when a value cannot be used.
    """
    from peerway import _core, derived
    from peerway.settings import settings as all_settings

    settings = [{name: getattr(setting, name) for name in FIELDS} for setting in all_settings()]
    for setting in settings:
        # A value that cannot be used has no other in its place, and what is derived would not be in force.
        result = None if setting["value"] or setting["problem"] else derived.derive(setting["name"])
        setting["derived"], setting["derived_from"] = result or ("", "")
    for name, (use, result) in derived.machine().items():
        row = {**dict.fromkeys(FIELDS, ""), "name": name, "type": "found", "help": use}
        settings.append({**row, "derived": result.value, "derived_from": result.source})
    if form == "json":
        say(json_text(settings, indent=1))
    else:
        Terminal().print(table_of(settings))
    problems = [setting["problem"] for setting in settings if setting["problem"]]
    try:
        _core.check_settings()
    except Error as error:  # a variable that is not a setting has no row
        problems.append(str(error))
    problems = list(dict.fromkeys(problems))
    for problem in problems:  # an unknown key makes all settings of its file unusable, so it is reported once
        say(problem, err=True)
    ctx.exit(1 if problems else 0)


def table_of(settings: list[dict[str, str]]) -> Table:
    """Give the settings as a table, what was set by hand in bold."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in ("setting", "value", "from", "what it does"):
        table.add_column(title, overflow="fold")
    for setting in settings:
        result = bool(setting["derived"])
        by_hand = not result and not setting["origin"].startswith("the default")
        value = setting["derived"] or setting["value"] or ("(cannot be used)" if setting["problem"] else "")
        origin = setting["derived_from"] if result else setting["origin"] if by_hand else "default"
        table.add_row(setting["name"], value, origin, setting["help"], style="bold" if by_hand else "")
    return table
