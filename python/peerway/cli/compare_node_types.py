"""The table by node type on the terminal, as CSV, as JSON or as a page: of `peerway compare` and of `peerway
campaign compare`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peerway.cli.input import BadInput
from peerway.cli.output import cannot_write
from peerway.compare.changes import unchanged
from peerway.compare.node_type_text import as_csv, lines
from peerway.compare.node_types import Row, of_one_side, rows
from peerway.printable import json_text, printable
from peerway.terminal import say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peerway.records import Record


def show_node_types(
    before: Sequence[Record], after: Sequence[Record], names: tuple[str, str], factors: Sequence[str],
    metric: str | None, form: str, out: Path | None,
) -> list[Row]:  # fmt: skip
    """Print the table; with `out` also write the page. Raises BadInput."""
    found = rows(before, after, factors, metric)
    if not found:
        raise BadInput(f"{names[0]} and {names[1]} have no test of one node type in common")
    if form == "csv":
        say(as_csv(found).removesuffix("\n"))
    elif form == "json":
        say(json_text([_as_json(row) for row in found], indent=1))
    else:
        for line in lines(found):
            say(line)
        asked = [name for name in factors if name != "campaign"]
        for line in unchanged([row.pair for row in found], asked):
            say(printable(line))
        for name, several in zip(names, of_one_side(before, after, factors), strict=True):
            for test in several:
                say(f"only {printable(name)} has {printable(test)}")
    if out:
        from peerway.report.node_types import render
        from peerway.report.page import write

        try:
            write(out, render(found, names[0], names[1], factors))
        except OSError as error:
            raise cannot_write(out, error) from None
    return found


def _as_json(row: Row) -> dict[str, Any]:
    return row.pair.key.as_dict() | {
        "node_type": row.node_type,
        "metric": row.metric.field,
        "n": [row.before.n, row.after.n],
        "mean": [row.before.mean, row.after.mean],
        "median": [row.before.median, row.after.median],
        "spread": [row.before.spread, row.after.spread],
        "mean_speedup_percent": row.mean_percent,
        "speedup_percent": row.percent,
        "interval_percent": [row.low, row.high],
        "p": row.p,
        "samples": list(row.samples),
        "rounds_a_sample": row.widened,
        "besides": list(row.besides),
        "verdict": row.verdict,
    }
