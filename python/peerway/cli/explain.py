"""`peerway explain`: why the route table takes which path for which size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peerway.units import bandwidth_text, time_text

if TYPE_CHECKING:
    from peerway.bench.session import Message

PLAIN_WIDTH = 120
SHAPES = ("contiguous", "blocks<=16", "blocks<=128", "blocks<=1024", "blocks<=8192", "blocks>8192")
LARGE = 16 << 20  # bytes from which a cost reads better as a bandwidth


def _device(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Accept "gpu0" and "cuda:0"."""
    if value is None or value in ("host", "host:malloc"):
        return value
    name = value.replace("gpu", "cuda:", 1) if value.startswith("gpu") else value
    kind, _, index = name.partition(":")
    if kind != "cuda" or not (index.isdecimal() or name == "cuda"):
        raise click.BadParameter(
            f"'{value}' is no device; there are host, host:malloc, gpu0, gpu1, ...", ctx, parameter
        )
    return name


@click.command()
@click.option(
    "--from", "source", callback=_device, metavar="DEVICE", help="Where the bytes are: host, gpu0, ..."
)
@click.option("--to", "target", callback=_device, metavar="DEVICE", help="Where they go.")
@click.option("--op", type=click.Choice(["put", "get"]), multiple=True, help="[default: both]")
@click.option(
    "--shape",
    type=click.Choice([*SHAPES, "all"]),
    default="contiguous",
    show_default=True,
    help="How the bytes lie: in one run, or in blocks of so many bytes.",
)
@click.option(
    "--table",
    "routes",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The route table  [default: this machine's]",
)
@click.option("--format", "form", type=click.Choice(["table", "json"]), default="table", show_default=True)
def command(
    source: str | None, target: str | None, op: Sequence[str], shape: str, routes: Path | None, form: str
) -> None:  # fmt: skip
    """Show which path a transfer takes for which size, what it costs, what comes next, and what cannot be
    used.

    Without --from and --to: every pair of kinds of memory that is here.
    """
    from peerway.bench import machine, progress, runner, shapes
    from peerway.bench.plan import Plan
    from peerway.bench.results import Results
    from peerway.bench.session import SessionFailed
    from peerway.tune import cases

    memories = [(source or target or "host", target or source or "host")]
    if source is None and target is None and machine.has_cuda():
        memories = [("host", "host"), ("cuda", "host"), ("host", "cuda"), ("cuda", "cuda")]
    tests = [f"{name}_latency" for name in op or ("put", "get")]
    plan = Plan(
        2,
        cases.make(memories, [shapes.contiguous(8)], tests),
        explain=list(SHAPES) if shape == "all" else [shape],
    )
    results = Results()
    try:
        with progress.shown("asking") as step:
            runner.run_paths(plan, results, step, {"PEERWAY_ROUTES": str(routes.resolve())} if routes else {})
    except (ValueError, SessionFailed) as error:
        raise click.ClickException(str(error).removeprefix("peerway: ")) from None
    if form == "json":
        click.echo(json.dumps(results.decisions, indent=1, ensure_ascii=False))
        return
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=PLAIN_WIDTH)
    from peerway import _core

    file = routes or Path(_core.config_value("routes") or _core.default_table_file())
    for decision in results.decisions:
        _print(console, decision, file)


def _print(console: Console, told: Message, file: Path) -> None:
    decision = told["decision"]
    console.print(Text(_title(told), style="bold"))
    console.print(Text(_origin(decision, file), style="dim"))
    console.print(_rows(decision))
    if decision["unavailable"]:
        console.print(_unavailable(decision["unavailable"]))
    for note in decision["notes"]:
        console.print(Text(f"note: {note}", style="dim"))
    console.print()


def _title(told: Message) -> str:
    decision = told["decision"]
    return f"{decision['op']} {told['source']} to {told['target']}, {decision['shape']} ({decision['pair']})"


def _origin(decision: dict[str, Any], file: Path) -> str:
    if not decision["measured"]:
        return "not measured: the order of preference decides; run `peerway tune`"
    return f"measured {decision['measured']} by {decision['tool']}, table {_short(file)}"


def _short(file: Path) -> str:
    try:
        return f"~/{file.relative_to(Path.home())}"
    except ValueError:
        return str(file)


def _rows(decision: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("size", "path", "cost", "next best", "why"):
        table.add_column(name, overflow="fold")
    for row in decision["rows"]:
        table.add_row(*map(Text, (_sizes(row), row["via"], _cost(row), _next(row), row["why"])))
    return table


def _sizes(row: dict[str, Any]) -> str:
    """The first and the last size; borders lie where two cost lines cross, so three digits of them say
    enough.
    """
    first = _about(row["from"])
    return f"{first} –" if row["to"] is None else f"{first} – {_about(row['to'] - 1)}"


def _about(size: int) -> str:
    for power, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << power:
            value = size / (1 << power)
            return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
    return f"{size} B"


def _cost(row: dict[str, Any]) -> str:
    return _between(row["from"], row["us_from"], row["shown_to"], row["us_to"])


def _next(row: dict[str, Any]) -> str:
    best = row["next"]
    if not best:
        return ""
    return f"{best['via']} {_between(row['from'], best['us_from'], row['shown_to'], best['us_to'])}"


def _between(first: int, us_first: float | None, last: int, us_last: float | None) -> str:
    """Times at both ends, or the bandwidth at the end where only that is of interest."""
    if us_first is None or us_last is None:
        return "not measured"
    if first >= LARGE and us_last > 0:
        return bandwidth_text(last / us_last)
    low, high = time_text(us_first), time_text(us_last)
    if low == high:
        return low
    same = low.split(" ")[1] == high.split(" ")[1]
    return f"{low.split(' ')[0] if same else low} – {high}"


def _unavailable(paths: Sequence[dict[str, str]]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for index, path in enumerate(paths):
        table.add_row(Text("unavailable" if index == 0 else "", style="dim"), path["path"], Text(path["why"]))
    return table
