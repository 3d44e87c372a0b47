"""Runs `peerway storage`: finds the engines, measures, and shows the results."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from peerway.cli.hosts import Hosts
from peerway_common.cli.options import BadInput
from peerway_common.terminal import say
from peerway_measure.record_output import WriteFailed
from peerway_measure.storage.request import BadRequest, Request

if TYPE_CHECKING:
    from peerway_measure.bench.results import Results


def engines(words: list[str]) -> list[str]:
    from peerway_measure.storage.engines import ENGINES

    names = [name for word in words for name in ENGINES if name == word or name.startswith(f"{word}/")]
    for word in words:
        if not any(name == word or name.startswith(f"{word}/") for name in ENGINES):
            raise click.UsageError(f"there is no engine '{word}'; there are {', '.join(ENGINES)}")
    for name in names:
        if why := ENGINES[name].missing():
            raise click.ClickException(f"the engine {name} cannot be used: {why}")
    return names


def look(request: Request) -> None:
    """Check that the folder exists. The check has the time limit of an operation, because a mount may hang.
    Raises click.ClickException.
    """
    from peerway_measure.storage.operation import OperationFailed, operate

    try:
        operate("list", request.limit_s, place=request.place)
    except OperationFailed as error:
        raise click.ClickException(str(error)) from None


def run(request: Request, hosts: Hosts, results: Results) -> str:
    """Measure everything. Returns what ended it early, or ""."""
    from peerway_measure.bench.session import PlanRefused, SessionFailed
    from peerway_measure.storage.operation import OperationFailed
    from peerway_measure.storage.session import measure_here, measure_on

    try:
        if hosts.named:
            measure_on(
                replace(request, launch=hosts.words()), len({host.name for host in hosts.named}), results
            )
        else:
            measure_here(request, results)
    except (BadRequest, PlanRefused) as error:
        raise BadInput(str(error)) from None
    except (OperationFailed, SessionFailed, WriteFailed) as error:
        return str(error)
    return ""


def show(results: Results, form: str) -> None:
    from rich.text import Text

    from peerway_common.console import Terminal
    from peerway_measure.storage.table import rows

    if form == "table":
        for line in rows(results.records):
            say(line)
    notes = Terminal(stderr=True)
    for note in results.notes:
        notes.print(Text(f"note: {note}", style="dim"), soft_wrap=True)
