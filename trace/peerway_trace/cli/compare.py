"""`peerway trace compare`: what changed between two traces."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import BadInput
from peerway_common.console import table_console
from peerway_common.units import size_text, time_text
from peerway_trace.cli.input import read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console

    from peerway_trace.comparison import Change, Group
    from peerway_trace.store import Trace

MOST = 20  # groups that only one side has: the first


def _more(side: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The option for more traces of one side."""
    return click.option(
        f"--{side}",
        f"more_{side}",
        multiple=True,
        metavar="FOLDER",
        type=click.Path(path_type=Path),
        help=f"Another trace of the side {side}; may be given several times.",
    )


@click.command()
@click.argument("before", type=click.Path(path_type=Path))
@click.argument("after", type=click.Path(path_type=Path))
@_more("before")
@_more("after")
@click.option("--all", "everything", is_flag=True, help="Also show what did not change.")
def command(
    before: Path, after: Path, more_before: tuple[Path, ...], more_after: tuple[Path, ...], everything: bool
) -> None:
    """Show which operations at which call sites, and which messages, became faster or slower between the
    traces BEFORE and AFTER. Messages are grouped by path or communicator, pair of ranks and size.

    A sample is the median over a tenth of one rank's calls. The statistics are those of `peerway compare`:
    Mann and Whitney's test, corrected for the number of groups. Runs of one program differ, too, so there is
    a verdict only where each side has several traces (--before, --after); the test then counts how much the
    runs of a side differ. Trace both sides in turn: what changes with time would else look like the
    difference. Calls and total times are means over the runs.
    """
    from rich.text import Text

    from peerway_trace.comparison import alone, compare, compare_messages, messages_alone

    folders = (before, *more_before), (after, *more_after)
    sides = [_events(folder) for folder in folders[0]], [_events(folder) for folder in folders[1]]
    console = table_console()
    for folder, trace in zip([*folders[0], *folders[1]], [*sides[0], *sides[1]], strict=True):
        if status := trace.about.get("status"):
            console.print(Text(f"{folder}: the command ended with status {status}."))
    for line in _unlike(*sides):
        console.print(Text(line))
    for line in _no_verdict(*sides):
        console.print(Text(line))
    calls = ("operation at a call site", "operations at a call site")
    _show(console, calls, ("operation", "call site"), compare(*sides), everything)
    _tell(console, alone(*sides), _at)
    groups = ("group of messages", "groups of messages")
    _show(console, groups, ("path or communicator", "ranks"), compare_messages(*sides), everything)
    _tell(console, messages_alone(*sides), lambda path, pair: f"messages by {path} from rank {pair}")


def _no_verdict(before: Sequence[Trace], after: Sequence[Trace]) -> Iterator[str]:
    """Why there is no verdict on a difference, and how to get one."""
    from peerway_trace.comparison import confounded

    if min(len(before), len(after)) == 1:
        yield (
            "no verdict: a side has one trace, and runs of one program differ. What differs by more than "
            "calls within a run do is marked ?. Trace both sides several times, in turn, and give the other "
            "traces with --before and --after."
        )
    elif confounded(before, after):
        yield (
            "confounded with time, marked (time): one side was traced after the other, and what changed "
            "meanwhile (clocks, temperature, other work) looks like a difference. Trace both sides in turn, "
            "or compare traces of one side with each other (A/A): they show what time alone does."
        )


def _unlike(before: Sequence[Trace], after: Sequence[Trace]) -> Iterator[str]:
    """Differences that make the sides hard to compare."""
    from peerway_trace.tables import count_text

    counts = [sorted({len(trace.ranks) for trace in side}) for side in (before, after)]
    if counts[0] != counts[1]:
        lines = [" or ".join(count_text(count, "rank", "ranks") for count in side) for side in counts]
        yield (
            f"{lines[0]} before and {lines[1]} after: calls and total times are those of all ranks, and the "
            "same work is shared by another number of them."
        )


def _events(folder: Path) -> Trace:
    """Read a trace that has events. Raises BadInput."""
    trace = read(folder)
    if len(trace):
        return trace
    level = trace.about["level"]
    why = "nothing was recorded"
    if level != "full":
        why = f"it was recorded with --level {level}, which keeps sums alone"
    raise BadInput(f"{folder} has no events to compare: {why}")


def _show(
    console: Console, nouns: tuple[str, str], titles: tuple[str, str], changes: list[Change], everything: bool
) -> None:
    """Print what changed; `what` is the noun in singular and plural. Also print how much did not change."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from peerway_trace.comparison import FEWEST
    from peerway_trace.tables import count_text

    shown = [change for change in changes if everything or change.apart]
    if shown:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for name in titles:
            table.add_column(name)
        for name in ("size", "calls", "before", "after", "speed-up", "95 %", "in all"):
            table.add_column(name, justify="right")
        for change in shown:
            table.add_row(*_cells(change))
        console.print(table)
    unknown = sum(change.low is None for change in changes if not change.apart)
    if unknown and not everything:
        differ = "differs" if unknown == 1 else "differ"
        text = f"{count_text(unknown, *nouns)} {differ} too much between the runs of a side for a verdict"
        console.print(Text(f"{text}; give more traces."))
    hidden = len(changes) - len(shown) - (0 if everything else unknown)
    if hidden:
        verb, them = ("differs", "it") if hidden == 1 else ("differ", "them")
        no_difference = f"{verb} by no more than calls within a run do"
        if any(change.verdict == "no difference" for change in changes):
            no_difference = "shows no difference" if hidden == 1 else "show no difference"
        console.print(Text(f"{count_text(hidden, *nouns)} {no_difference}; --all lists {them}."))
    if not changes:
        console.print(Text(f"no {nouns[0]} occurs {FEWEST} times on both sides; fewer are not compared."))


def _tell(console: Console, groups: tuple[list[Group], list[Group]], text: Callable[[str, str], str]) -> None:
    """Print what only one side has: the first of them, and how many."""
    from rich.text import Text

    for several, side in zip(groups, ("before", "after"), strict=True):
        for first, second, size in several[:MOST]:
            console.print(Text(f"only {side}: {text(first, second)}, {_size(size)}"))
        if len(several) > MOST:
            console.print(Text(f"only {side}: {len(several) - MOST:,} more"))


def _at(operation: str, place: str) -> str:
    return f"{operation} at {place}" if place else operation


def _size(size_class: int) -> str:
    return "no bytes" if size_class == 0 else f"to {size_text(1 << size_class >> 1)}"


def _cells(change: Change) -> list[str]:
    from peerway_measure.compare.table import signed, speedup_text

    percent = interval = ""
    if change.speedup is not None:
        mark = {"confounded with time": " (time)", "unknown": " ?"}.get(change.verdict, "")
        percent = speedup_text(change.speedup) + mark if change.apart else "no difference" * (not mark)
    if change.low is not None and change.high is not None:
        interval = f"[{signed(change.low)}, {signed(change.high)}]"
    difference = (change.total_ns[1] - change.total_ns[0]) / 1e3
    return [
        change.operation, change.place, _size(change.size_class),
        f"{change.calls[0]:,} / {change.calls[1]:,}",
        time_text(change.median_ns[0] / 1e3), time_text(change.median_ns[1] / 1e3), percent, interval,
        f"{'+' if difference > 0 else ''}{time_text(difference)}",
    ]  # fmt: skip
