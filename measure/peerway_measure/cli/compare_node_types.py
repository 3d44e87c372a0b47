"""The table by node type of `peerway compare` and `peerway campaign compare`: on the terminal, as CSV, as
JSON or as a page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from peerway_common.cli.options import BadInput
from peerway_common.printable import json_text, printable
from peerway_common.terminal import say
from peerway_measure.cli.output import cannot_write
from peerway_measure.compare.changes import unchanged, why_apart
from peerway_measure.compare.node_type_text import as_csv, lines
from peerway_measure.compare.node_types import Row, of_one_side, pairs_of, rows

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from peerway_measure.compare.sides import Sides
    from peerway_measure.records import Record


def show_node_types(
    before: Sequence[Record], after: Sequence[Record], names: tuple[str, str], sides: Sides,
    factors: Sequence[str], metric: str | None, form: str, out: Path | None,
) -> list[Row]:  # fmt: skip
    """Print the table; with `out` also write the page. `names` are the names of the files or campaigns of the
    two sides. Raises BadInput.
    """
    table = rows(before, after, factors, metric)
    if not table:
        pairs = pairs_of(before, after, factors)
        why = "" if any(p.before and p.after for p in pairs) else f": {why_apart(pairs, ('node_type',))}"
        raise BadInput(f"{sides.heading(names)} have no test of one node type in common{why}")
    if form == "csv":
        say(as_csv(table, sides).removesuffix("\n"))
    elif form == "json":
        say(json_text([_as_json(row, sides) for row in table], indent=1))
    else:
        for line in lines(table, sides):
            say(line)
        stated = [name for name in factors if name != "campaign"]
        for line in unchanged([row.pair for row in table], stated):
            say(printable(line))
        for name, several in zip(sides.alone(names), of_one_side(before, after, factors), strict=True):
            for test in several:
                say(f"only {printable(name)} has {printable(test)}")
    if out:
        from peerway_measure.report.node_types import render
        from peerway_measure.report.page import write

        try:
            write(out, render(table, names, sides, factors))
        except OSError as error:
            raise cannot_write(out, error) from None
    return table


def _as_json(row: Row, sides: Sides) -> dict[str, Any]:
    return row.pair.key.as_dict() | {
        "node_type": row.node_type,
        "sides": list(sides),
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
