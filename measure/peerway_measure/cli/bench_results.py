"""Shows the results of `peerway bench`, and decides whether it reports a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from peerway_common.console import Terminal, table_console
from peerway_common.terminal import say
from peerway_measure.bench.kinds import LIMITS

if TYPE_CHECKING:
    from peerway_measure.bench.results import Results


def show(results: Results, form: str, stat: str) -> None:
    """Print the notes and the records, unless the records were printed as they came."""
    from peerway_measure.bench.osu import as_osu

    if form == "osu":
        say(as_osu(results.records).removesuffix("\n"))
    elif form == "table":
        _show_tables(results, None if stat == "p50" else f"{stat}_us")
    notes = Terminal(stderr=True)
    for note in results.notes:
        notes.print(Text(f"note: {note}", style="dim"), soft_wrap=not notes.is_terminal)


def _show_tables(results: Results, statistic: str | None) -> None:
    from peerway_measure.bench import table

    console = table_console()
    for block in table.blocks(results.records):
        console.print(Text(table.title(block, statistic), style="bold"))
        for part in table.tables(block, console.width, statistic):
            console.print(part)
        console.print()


def problem_of(results: Results, continued: bool) -> str:
    """Why the benchmark fails although it ran to its end; "" if it does not. If it is `continued`, there may
    have been nothing left to measure.
    """
    wrong = sum(not record.validated for record in results.records)
    if wrong:
        return f"{wrong} of {len(results.records)} results moved wrong data; they are marked"
    if not continued and all(record.via in LIMITS for record in results.records):
        return "nothing could be measured; the notes above say why"
    return ""
