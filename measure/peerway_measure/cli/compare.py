"""`peerway compare`: what changed between two files of records, and whether it is more than noise."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from peerway_common.cli.numbers import Number
from peerway_common.cli.options import BadInput, format_option
from peerway_common.console import table_console
from peerway_common.printable import json_text
from peerway_common.terminal import say
from peerway_measure.cli.compare_node_types import show_node_types
from peerway_measure.cli.factors import HELP, check, chosen, parse
from peerway_measure.cli.input import SKIP_TRUNCATED, read_records
from peerway_measure.cli.output import beside_text
from peerway_measure.compare.changes import changes, stated, why_apart
from peerway_measure.compare.groups import ENVIRONMENT, IDENTITY, Pair, pair_up
from peerway_measure.compare.metric import METRICS
from peerway_measure.compare.runs import MOST_RUNS, runs_of
from peerway_measure.compare.sides import Sides, sides_of
from peerway_measure.compare.statistics import Comparison, compare_all
from peerway_measure.compare.table import notes, one_line, show, show_one_sided

if TYPE_CHECKING:
    from collections.abc import Sequence


_MAY_BE_SLOWER = ("slower", "unknown", "confounded with time")
_FIELDS = (*IDENTITY, *ENVIRONMENT)


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@click.option("--by", type=click.Choice(_FIELDS), multiple=True, help="One row for each value of this field.")
@click.option(
    "--metric", type=click.Choice(list(METRICS)), help="Metric to compare  [default: the test's own]"
)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME",
    help=HELP,
)
@click.option(
    "--table",
    "kind",
    type=click.Choice(["groups", "node-type"]),
    default="groups",
    show_default=True,
    help="node-type: one row per node type, to report the effect of an upgrade.",
)
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    callback=beside_text,
    help="With --table node-type: write an HTML page that plots all samples.",
)
@format_option("table", "json", "csv")
@click.option(
    "--fail-on-slowdown",
    type=Number(0, 100),
    metavar="PERCENT",
    help="Exit with 1 if a group is slower by more than this, beyond noise.",
)
@SKIP_TRUNCATED
@click.pass_context
def command(
    ctx: click.Context,
    before: Path,
    after: Path,
    by: tuple[str, ...],
    metric: str | None,
    factors: tuple[str, ...],
    kind: str,
    out: Path | None,
    form: str,
    fail_on_slowdown: float | None,
    skip_truncated: bool,
) -> None:
    """Compare the records of BEFORE with those of AFTER (JSON lines, as `peerway bench --out` writes).

    Records of the same test, path, shape, size, ranks and devices are one group. A sample is a run of the
    ranks: `peerway bench --repeat 7` makes seven. For each group: the number of runs, the median of both
    sides and half the distance of their quartiles, the speed-up (positive is better) with its 95 % interval,
    and the p-value of the Mann-Whitney test, corrected for the number of groups. A group whose corrected
    p-value is above 0.05 shows "no difference". A difference between sides that were measured one after the
    other is "confounded with time", marked (time): measure both sides in turn, run by run.
    """
    values = parse(factors)
    factors = tuple(values)
    for factor in factors:
        if factor in by:
            raise click.UsageError(
                f"--factor {factor} excludes --by {factor}: a field changed, or it is a row"
            )
    sides = (read_records([before], skip_truncated), read_records([after], skip_truncated))
    same = before.samefile(after) and not any(values.values())
    check(factors, (*sides[0], *sides[1]))
    sides, called = chosen(values, sides, (before, after)), sides_of(values)
    if kind == "node-type":
        show_node_types(*sides, (before.stem, after.stem), called, factors, metric, form, out)
        return
    if form == "csv" or out:
        raise click.UsageError("--format csv and -o need --table node-type")
    pairs = pair_up(*sides, by, factors)
    _refuse_too_many(pairs, before, after)
    comparisons = compare_all(pairs, metric)
    if not comparisons:
        raise BadInput(_nothing_in_common(before, after, pairs, metric))
    if same:
        say(f"peerway: both sides are the same file, {before}: nothing can differ", err=True)
    warned = changes(pairs, factors)
    slow = _slowdowns(comparisons, fail_on_slowdown)
    if form == "json":
        say(json_text(_as_json(pairs, comparisons, warned, called), indent=1))
    else:
        _print(pairs, comparisons, warned, by, factors, called)
    if slow:
        confounded = sum(c.verdict == "confounded with time" for c in slow)
        time = f", {confounded} of them confounded with time" if confounded else ""
        say(
            f"peerway: {len(slow)} of {len(comparisons)} groups got slower by more than "
            f"{fail_on_slowdown:g} %{time}",
            err=True,
        )
        ctx.exit(1)


def _refuse_too_many(pairs: Sequence[Pair], before: Path, after: Path) -> None:
    for pair in pairs:
        for file, side in ((before, pair.before), (after, pair.after)):
            if len(side) > MOST_RUNS and (runs := len(runs_of(side))) > MOST_RUNS:
                raise BadInput(
                    f"{file} has {runs:,} runs of one group ({one_line(pair.key)}), and a comparison takes "
                    f"at most {MOST_RUNS:,}; tell groups apart with --by, or give fewer records"
                )


def _print(
    pairs: Sequence[Pair],
    comparisons: Sequence[Comparison],
    warned: Sequence[str],
    by: Sequence[str],
    factors: Sequence[str],
    called: Sides,
) -> None:
    console = table_console()
    if factors:
        console.print(Text(stated(pairs, factors), style="bold"))
    for line in warned:
        console.print(Text(f"warning: {line}", style="yellow"))
    show(console, comparisons, by, called)
    show_one_sided(console, pairs, called)


def _slowdowns(comparisons: Sequence[Comparison], percent: float | None) -> list[Comparison]:
    """The groups that became slower by more than `percent`, beyond noise. With too few runs to know the
    noise, the value alone counts. Slowdowns that are confounded with time count, too.
    """
    if percent is None:
        return []
    worst = 1 - percent / 100
    return [
        c for c in comparisons if c.speedup is not None and c.speedup < worst and c.verdict in _MAY_BE_SLOWER
    ]


def _nothing_in_common(before: Path, after: Path, pairs: Sequence[Pair], metric: str | None) -> str:
    if metric and any(pair.before and pair.after for pair in pairs):
        return f"no group of {before} and {after} has {metric} on both sides"
    groups = sum(bool(pair.before) for pair in pairs)
    why = f"{before} ({groups} groups) and {after} ({len(pairs) - groups} groups) have no group in common"
    return f"{why}: {why_apart(pairs)}"


def _as_json(
    pairs: Sequence[Pair], comparisons: Sequence[Comparison], warned: Sequence[str], called: Sides
) -> dict[str, Any]:
    def group(c: Comparison) -> dict[str, Any]:
        percent = None if c.speedup is None else (c.speedup - 1) * 100
        interval = None if c.low is None or c.high is None else [(c.low - 1) * 100, (c.high - 1) * 100]
        return c.pair.key.as_dict() | {
            "metric": c.metric.field, "before": asdict(c.before), "after": asdict(c.after),
            "speedup_percent": percent, "interval_percent": interval, "p": c.p, "p_adjusted": c.p_adjusted,
            "verdict": c.verdict, "in_turn": c.in_turn, "samples": c.samples,
        }  # fmt: skip

    return {
        "sides": called._asdict(),
        "groups": [group(c) for c in comparisons],
        "only_before": [pair.key.as_dict() for pair in pairs if not pair.after],
        "only_after": [pair.key.as_dict() for pair in pairs if not pair.before],
        "warnings": list(warned),
        "notes": notes(comparisons),
    }
