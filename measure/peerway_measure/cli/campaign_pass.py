"""One pass of a campaign, for `peerway campaign run` and its health mode."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from peerway_common import disk_space
from peerway_common.cli.options import BadInput
from peerway_common.console import Terminal
from peerway_common.ending import Ended, ended_by_signals
from peerway_common.terminal import say
from peerway_measure.campaign.journal import Busy, Changed, Journal, NoLocks

if TYPE_CHECKING:
    from peerway_measure.campaign.plan import Plan
    from peerway_measure.campaign.run import Progress, Show, Unfinished

_REDRAWN_S = 0.25


def run_of(folder: Path) -> str:
    """The command that makes or continues this pass."""
    return f"`peerway campaign run {shlex.quote(str(folder))}`"


def tell(line: str) -> None:
    """Print a line on standard error. A full disk there does not end a campaign of days, because there may be
    space again later.
    """
    with suppress(OSError):
        say(line, err=True)


def leave_errors() -> None:
    """At the end, discard what standard error still does not accept, so that it does not change the exit
    code.
    """
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@contextmanager
def _shown() -> Iterator[Show]:
    """Show a bar on a terminal. Otherwise, such as in the log of a service, there are only the lines of
    tell().
    """
    from peerway_measure.bench.progress import bar

    console = Terminal(stderr=True)
    if not console.is_terminal:
        yield lambda _: None
        return
    # Drawn without a thread: keepers are forked from this process, which is safe only without threads.
    progress = bar(console, thread=False)
    task = progress.add_task("measuring", total=None, stage="starting", ends=0.0)
    drawn = -_REDRAWN_S

    def show(state: Progress) -> None:
        nonlocal drawn
        if time.monotonic() - drawn < _REDRAWN_S:
            return
        drawn = time.monotonic()
        progress.update(task, completed=state.done, total=state.total, stage=_stage(state), ends=state.ends)
        with suppress(OSError):  # a terminal that closes does not end a campaign of days, either
            progress.refresh()

    with suppress(OSError):
        progress.start()
    try:
        yield show
    finally:
        with suppress(OSError):
            progress.stop()


def _stage(state: Progress) -> str:
    first = state.running[0] if state.running else "waiting"
    more = f" and {len(state.running) - 1} more" if len(state.running) > 1 else ""
    return first + more + (f", {state.given_up} given up" if state.given_up else "")


@contextmanager
def _reported_errors(journal: Journal) -> Iterator[None]:
    try:
        yield
    except (Busy, Changed) as error:
        raise BadInput(str(error)) from None
    except NoLocks as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        path = error.filename or journal.folder
        raise click.ClickException(
            f"cannot write {path}: {disk_space.why(Path(path), error)}; fix that, and "
            f"{run_of(journal.folder)} goes on where it stopped"
        ) from None


def measure(plan: Plan, journal: Journal) -> Unfinished:
    """Make one pass. Raises ClickException, and Exit if a signal ended it."""
    from peerway_measure.campaign.run import Runner, starter
    from peerway_measure.campaign.starters import Unusable

    try:
        with _reported_errors(journal), ended_by_signals(), journal.held():
            journal.begin(plan.text)
            with _shown() as show:
                return Runner(plan, journal, starter(plan, journal), tell, show).run()
    except Unusable as error:
        raise click.ClickException(str(error)) from None
    except Ended as end:
        tell(
            f"ended by {end.name}; running measurements go on, and "
            f"{run_of(journal.folder)} resumes the campaign"
        )
        raise Exit(end.code) from None
