"""`peerway trace compare`: what changed between two traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway.cli.trace.input import read
from peerway.terminal import table_console
from peerway.units import size_text, time_text

if TYPE_CHECKING:
    from peerway.trace.comparison import Change, Group


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Also what shows no difference.")
def command(before: Path, after: Path, everything: bool) -> None:
    """Tell which operations at which places became faster or slower from BEFORE to AFTER, two traces.

    A sample is the median of one rank's calls in a tenth of its calls; the statistics are those of `peerway
    compare`: Mann and Whitney's test, corrected for the number of groups. Calls within one run depend on each
    other more than runs do: a difference that matters deserves several traces.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from peerway.trace.comparison import alone, compare

    sides = read(before), read(after)
    changes = compare(*sides)
    shown = [one for one in changes if everything or one.verdict in ("faster", "slower")]
    console = table_console()
    if shown:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in ("operation", "place"):
            table.add_column(name)
        for name in ("size", "calls", "before", "after", "speed-up", "95 %", "all calls"):
            table.add_column(name, justify="right")
        for one in shown:
            table.add_row(*_cells(one))
        console.print(table)
    hidden = len(changes) - len(shown)
    if hidden or not shown:
        console.print(Text(f"{hidden} operations at a place show no difference; --all lists them."))
    for groups, side in zip(alone(*sides), ("before", "after"), strict=True):
        for line in _only(groups, side):
            console.print(Text(line))


def _only(groups: list[Group], side: str) -> list[str]:
    return [f"only {side}: {_at(operation, place)}, {_size(size)}" for operation, place, size in groups]


def _at(operation: str, place: str) -> str:
    return f"{operation} at {place}" if place else operation


def _size(size_class: int) -> str:
    return "no bytes" if size_class == 0 else f"to {size_text(1 << size_class >> 1)}"


def _cells(one: Change) -> list[str]:
    percent = interval = ""
    if one.speedup is not None:
        percent = f"{(one.speedup - 1) * 100:+.3g} %" if one.verdict != "no difference" else "no difference"
    if one.low is not None and one.high is not None:
        interval = f"[{(one.low - 1) * 100:+.3g}, {(one.high - 1) * 100:+.3g}]"
    difference = (one.total_ns[1] - one.total_ns[0]) / 1e3
    return [
        one.operation, one.place, _size(one.size_class), f"{one.calls[0]:,} / {one.calls[1]:,}",
        time_text(one.median_ns[0] / 1e3), time_text(one.median_ns[1] / 1e3), percent, interval,
        f"{'+' if difference > 0 else ''}{time_text(difference)}",
    ]  # fmt: skip
