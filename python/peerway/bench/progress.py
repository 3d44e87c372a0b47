"""How far a measurement is, on standard error: a bar on a terminal, else a line whenever the test changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from peerway.terminal import Terminal

if TYPE_CHECKING:
    from peerway.bench.results import Step


@contextmanager
def shown(title: str) -> Iterator[Step]:
    """Show progress while the block runs; it calls the step that is given."""
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield _lines(console, title)
        return
    columns = (
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("{task.fields[what]}", style="dim", markup=False),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task(title, total=None, what="starting")

        def step(what: str, done: int, total: int) -> None:
            progress.update(task, completed=done, total=total or None, what=what)

        yield step


def _lines(console: Terminal, title: str) -> Step:
    said = ""

    def step(what: str, done: int, total: int) -> None:
        nonlocal said
        first = what.split(" ")[0]
        if first and first != said:
            said = first
            console.print(f"{title}: {first} ({done}/{total})")

    return step
