"""One pass of a campaign, as `peerway campaign run` makes it: for all nodes, and for their health."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from peerway import room
from peerway.campaign.journal import Busy, Changed, Journal, NoLocks
from peerway.cli.ending import Ended, ended_by_signals
from peerway.cli.input import BadInput
from peerway.terminal import say

if TYPE_CHECKING:
    from peerway.campaign.plan import Plan
    from peerway.campaign.run import Left


def run_of(folder: Path) -> str:
    """How to make that pass, or to go on with it."""
    return f"`peerway campaign run {shlex.quote(str(folder))}`"


def tell(line: str) -> None:
    """On standard error. That its disk is full ends no campaign of days: there may be room again later."""
    with suppress(OSError):
        say(line, err=True)


def leave_errors() -> None:
    """At the end what standard error still does not take is lost, and is not to become the exit code."""
    try:
        sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


@contextmanager
def _told(journal: Journal) -> Iterator[None]:
    try:
        yield
    except (Busy, Changed) as error:
        raise BadInput(str(error)) from None
    except NoLocks as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        path = error.filename or journal.folder
        raise click.ClickException(
            f"cannot write {path}: {room.why(Path(path), error)}; mend that, and "
            f"{run_of(journal.folder)} goes on where it stopped"
        ) from None


def measure(plan: Plan, journal: Journal) -> Left:
    """One pass. Raises ClickException, and Exit where a signal ended it."""
    from peerway.campaign.run import Runner, starter
    from peerway.campaign.starters import Unusable

    try:
        with _told(journal), ended_by_signals(), journal.held():
            journal.begin(plan.text)
            return Runner(plan, journal, starter(plan, journal), tell).run()
    except Unusable as error:
        raise click.ClickException(str(error)) from None
    except Ended as end:
        tell(
            f"ended by {end.name}; running measurements go on, and "
            f"{run_of(journal.folder)} resumes the campaign"
        )
        raise Exit(end.code) from None
