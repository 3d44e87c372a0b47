"""Progress of a measurement on standard error: a bar on a terminal, otherwise a line whenever the test
changes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from peerway_common.console import Terminal

if TYPE_CHECKING:
    from peerway_measure.bench.results import Step


class _TimeLeft(ProgressColumn):
    """The remaining time: until the task's known end, or estimated from the pace of the last cases."""

    def render(self, task: Task) -> Text:
        """Format the remaining time for the bar."""
        ends = task.fields["ends"]
        remaining = ends - time.time() if ends else task.time_remaining
        return Text("" if remaining is None else f"{time_left(remaining)} left")


def time_left(seconds: float) -> str:
    """65 -> "1:05", 3700 -> "1:01:40"."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def bar(console: Terminal, *, thread: bool = True) -> Progress:
    """A bar whose tasks have the fields `what`, which is being measured, and `ends`, the end of the time (0:
    unknown). Without a `thread` it is drawn only by refresh().
    """
    return Progress(
        TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), _TimeLeft(),
        TextColumn("{task.fields[stage]}", style="dim", markup=False),
        console=console, transient=True, auto_refresh=thread,
    )  # fmt: skip


@contextmanager
def shown(title: str, ends: float = 0) -> Iterator[Step]:
    """Show progress while the block runs. The block gets a function to report each step. `ends` is the time
    by which everything must be done, in seconds since 1970.
    """
    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield _lines(console, title)
        return
    with bar(console) as progress:
        task = progress.add_task(title, total=None, stage="starting", ends=ends)

        def step(stage: str, done: int, total: int) -> None:
            progress.update(task, completed=done, total=total or None, stage=stage)

        yield step


def _lines(console: Terminal, title: str) -> Step:
    last = ""

    def step(stage: str, done: int, total: int) -> None:
        nonlocal last
        first = stage.split(" ")[0]
        if first and first != last:
            last = first
            console.print(f"{title}: {first} ({done}/{total})")

    return step
