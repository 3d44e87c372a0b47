"""The only way to print lines to a terminal or a file. Text from records, tables, plugins or the system
cannot control the terminal. What needs rich is in console.py, because rich takes 30 ms to import.
"""

from __future__ import annotations

import click

from peerway_common.printable import printable


def say(text: str, *, err: bool = False) -> None:
    """Print a text of one or more lines."""
    click.echo(printable(text, lines=True), err=err)
