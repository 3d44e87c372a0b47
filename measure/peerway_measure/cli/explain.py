"""`peerway explain`: why the route table takes which path for which size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.exceptions import Exit
from rich.console import Console
from rich.table import Table
from rich.text import Text

from peerway_common.cli.options import BadInput, format_option
from peerway_common.console import table_console
from peerway_common.ending import Ended, ended_by_signals
from peerway_common.printable import json_text
from peerway_common.terminal import say
from peerway_common.units import about_text, bandwidth_text, time_text
from peerway_measure.bench.collective_choice import KIND_NUMBERS, ORDERS, Collective
from peerway_measure.cli.options import need_devices, table_environment, table_option
from peerway_measure.memories import GPU_KINDS, MEMORIES, is_gpu

if TYPE_CHECKING:
    from peerway_measure.bench.session import Message

OPS = ("put", "get", "send")
SHAPES = ("contiguous", "blocks-16", "blocks-128", "blocks-1024", "blocks-8192", "blocks-large")
LARGE = 16 << 20  # from this size on, costs are shown as bandwidths


def _device(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Accept "gpu0" as well as "cuda:0": a GPU of the first kind that is here."""
    if value is None or value in MEMORIES:
        return value
    name = value
    if value.startswith("gpu"):
        from peerway_measure.bench import machine

        kind = next(iter(machine.gpu_kinds()), GPU_KINDS[0])
        name = value.replace("gpu", f"{kind}:", 1)
    if not is_gpu(name) or not name.partition(":")[2].isdecimal():
        raise click.BadParameter(
            f"'{value}' is not a device; there are host, host:malloc, gpu0, gpu1, ...", ctx, parameter
        )
    return name


@click.command()
@click.option("--from", "source", callback=_device, metavar="DEVICE", help="Source memory: host, gpu0, ...")
@click.option("--to", "target", callback=_device, metavar="DEVICE", help="Target memory.")
@click.option(
    "--op",
    type=click.Choice(OPS),
    multiple=True,
    help="Operation; may be repeated. send is for plans; on a GPU its size is that of all sends of the plan  "
    "[default: all]",
)
@click.option(
    "--shape",
    type=click.Choice([*SHAPES, "all"]),
    default="contiguous",
    show_default=True,
    help="Memory layout: contiguous, or in blocks of at most this many bytes.",
)
@click.option(
    "--collective",
    "kind",
    type=click.Choice(list(KIND_NUMBERS)),
    help="Show the methods of this collective among --ranks ranks of this host, instead of transfers. Sizes "
    "are those of the array, or of the part of each rank.",
)
@click.option(
    "--ranks",
    type=click.IntRange(1, 4096),
    metavar="N",
    default=2,
    show_default=True,
    help="How many ranks take part in --collective.",
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="group",
    show_default=True,
    help="In which order --collective may combine operands.",
)
@table_option("The route table")
@format_option("table", "json")
def command(
    source: str | None,
    target: str | None,
    op: Sequence[str],
    shape: str,
    kind: str | None,
    ranks: int,
    order: str,
    routes: Path | None,
    form: str,
) -> None:
    """Show which path a transfer takes for which size, what it costs, what comes next, and what cannot be
    used.

    Without --from and --to: every pair of kinds of memory that is here. With --collective: which method a
    collective is estimated to do best by.
    """
    from peerway import _core
    from peerway_measure.bench import machine

    memories = machine.memory_pairs()
    if source or target:
        memories = [(source or target or "host", target or source or "host")]
    need_devices(name for pair in memories for name in pair)
    shapes = list(SHAPES) if shape == "all" else [shape]
    collective = None
    if kind:
        collective, op, shapes = Collective(kind, ranks, order), ("send",), ["contiguous"]
        memories = [(near, far) for near, far in memories if near == far or (is_gpu(near) and is_gpu(far))]
        if not memories:
            raise BadInput("a collective has memory of one kind at all ranks; give --from and --to alike")
    results = decisions(memories, op or OPS, shapes, table_environment(routes), collective)
    if form == "json":
        say(json_text(results, indent=1))
        return
    console = table_console()
    file = routes or Path(_core.config_value("routes") or _core.default_table_file())
    for decision in results:
        _print(console, decision, file)


def decisions(
    memories: Sequence[tuple[str, str]],
    ops: Sequence[str],
    shapes: list[str],
    environment: dict[str, str],
    collective: Collective | None = None,
) -> list[Message]:
    """The routes that two ranks with such memories would take, or the methods of a collective, as these ranks
    report them.
    """
    from peerway_measure.bench import progress, runner
    from peerway_measure.bench.plan import Plan
    from peerway_measure.bench.results import Results
    from peerway_measure.bench.session import PlanRefused, SessionFailed
    from peerway_measure.bench.shapes import contiguous
    from peerway_measure.tune import cases

    probes = cases.make(memories, [contiguous(8)], [f"{op}_latency" for op in ops])
    results = Results()
    try:
        with ended_by_signals(), progress.shown("asking") as step:
            plan = Plan(2, probes, explain=shapes, collective=collective)
            runner.run_paths(plan, results, step, environment)
    except PlanRefused as error:
        raise BadInput(str(error)) from None
    except SessionFailed as error:
        raise click.ClickException(str(error)) from None
    except Ended as end:
        raise Exit(end.code) from None
    for note in results.notes:
        say(f"note: {note}", err=True)
    return results.decisions


def _print(console: Console, message: Message, file: Path) -> None:
    decision = message["decision"]
    console.print(Text(_title(message), style="bold"))
    if decision["measured"]:  # otherwise a note says that there is no table
        whose = "comes with Peerway" if decision["builtin"] else f"table {_file_name(file)}"
        measured = f"measured {decision['measured']} by {decision['tool']}, {whose}"
        console.print(Text(measured, style="dim"))
    console.print(_rows(decision))
    if decision["unavailable"]:
        console.print(_unavailable(decision["unavailable"]))
    for note in decision["notes"]:
        console.print(Text(f"note: {note}", style="dim"))
    console.print()


def _title(message: Message) -> str:
    decision = message["decision"]
    memories = f"{message['source']} to {message['target']}"
    return f"{decision['op']} {memories}, {decision['shape']} ({decision['pair']})"


def _file_name(file: Path) -> str:
    try:
        return f"~/{file.relative_to(Path.home())}"
    except ValueError:
        return str(file)


def _rows(decision: dict[str, Any]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("size", "path", "cost", "spread", "next best", "margin", "why"):
        table.add_column(name, overflow="fold")
    for row in decision["rows"]:
        cells = (_sizes(row), row["via"], _cost(row), _spread(row), _next_best(row), _margin(row), row["why"])
        table.add_row(*map(Text, cells))
    return table


def _sizes(row: dict[str, Any]) -> str:
    """The first and the last size of a row. The ends of a row are where two cost curves cross, so three
    digits are precise enough.
    """
    first = about_text(row["from"])
    return f"{first} –" if row["to"] is None else f"{first} – {about_text(row['to'] - 1)}"


def _cost(row: dict[str, Any]) -> str:
    return _between(row["from"], row["us_from"], row["shown_to"], row["us_to"])


def _next_best(row: dict[str, Any]) -> str:
    best = row["next"]
    if not best:
        return ""
    return f"{best['via']} {_between(row['from'], best['us_from'], row['shown_to'], best['us_to'])}"


def _spread(row: dict[str, Any]) -> str:
    """Half of the interquartile range relative to the median, at the size of the row where it is largest."""
    return "" if row["spread"] is None else f"±{row['spread']:.0%}".replace("%", " %")


def _margin(row: dict[str, Any]) -> str:
    """By how much the next best path costs more, at the sizes where the two are closest and
    furthest apart.
    """
    if not row["next"]:
        return ""
    least, most = (f"{100 * part:+.0f}" for part in row["next"]["margin"])
    return f"{least} %" if least == most else f"{least} to {most} %"


def _between(first: int, us_first: float | None, last: int, us_last: float | None) -> str:
    """The times at both ends, or only the bandwidth at the last if that is what matters."""
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
    reasons: dict[str, list[str]] = {}
    for path in paths:
        reasons.setdefault(path["why"], []).append(path["path"])
    for index, (why, names) in enumerate(reasons.items()):
        table.add_row(Text("" if index else "unavailable", style="dim"), "\n".join(names), Text(why))
    return table
