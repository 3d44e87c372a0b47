"""`peerway jobs history`: imports past jobs from sacct, Jobstats and Prometheus."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import parsed
from peerway_common.cli.verbs import VerbGroup
from peerway_common.printable import printable
from peerway_common.terminal import say
from peerway_jobs.lock_file import locked
from peerway_jobs.server_folder import check_folder, data_option, monitor_at, parse_since

if TYPE_CHECKING:
    from peerway_jobs.monitor import Monitor
    from peerway_jobs.store.runs import Run

_MOST_NAMED = 10  # lines that cannot be read
_STANDARD = Path("-")
_judge_option = click.option(
    "--judge/--no-judge", "judging", default=True, show_default=True, help="Judge the imported jobs."
)


@click.group("history", cls=VerbGroup)
def command() -> None:
    """Import past jobs, before any agent was there. Stop the server first."""


@command.command()
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True, dir_okay=False)
)
@_judge_option
@data_option
def sacct(files: tuple[Path, ...], judging: bool, data: Path) -> None:
    """Import jobs from FILES with the output of sacct, with the totals of Jobstats in AdminComment.

    The output is that of --parsable2 with a header, or of --json; "-" is standard input.
    """
    from peerway_jobs.history.importing import import_past
    from peerway_jobs.history.sacct import BadSacct, read

    with _stopped(data) as monitor:
        for file in files:
            try:
                past = read(_text(file))
            except BadSacct as error:
                raise click.ClickException(f"cannot import {file}: {error}") from None
            imported = import_past(monitor, past)
            say(
                f"{file}: {len(imported.runs)} jobs imported, {imported.known} known already, "
                f"{past.unfinished} not ended; {imported.with_totals} with totals of Jobstats, "
                f"{imported.with_cpu_time} with CPU time of sacct"
            )
            _name_unreadable(imported.unreadable)
            if judging:
                _judge(monitor, imported.runs)


@command.command()
@click.argument("url")
@click.option(
    "--since",
    callback=parsed(parse_since),
    default="30d",
    show_default=True,
    metavar="TIME",
    help="Jobs that ended in this time up to now.",
)
@click.option(
    "--step",
    callback=parsed(parse_since),
    default="60s",
    show_default=True,
    metavar="TIME",
    help="The time between two samples.",
)
@click.option(
    "--node-label",
    default="",
    help="The label with the node's name  [default: Hostname, hostname, or instance]",
)
@click.option(
    "--server-token-file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A file with the bearer token that Prometheus asks for.",
)
@_judge_option
@data_option
def prometheus(
    url: str,
    since: float,
    step: float,
    node_label: str,
    server_token_file: Path | None,
    judging: bool,
    data: Path,
) -> None:
    """Import what the node, DCGM and cgroup exporters of a Prometheus at URL measured of known jobs."""
    from peerway_jobs.history.prometheus import Prometheus, PrometheusFailed
    from peerway_jobs.history.replaying import replay_exporters

    if not 1 <= step <= 3600:
        raise click.UsageError("--step is 1s to 1h")
    if node_label and not node_label.replace("_", "a").isalnum():
        raise click.UsageError(f"--node-label {node_label!r} is no name of a label")
    try:
        server = Prometheus(url, _text(server_token_file).strip() if server_token_file else "")
    except ValueError as error:
        raise click.ClickException(str(error)) from None
    with _stopped(data) as monitor:
        try:
            replayed = replay_exporters(
                monitor, server, time.time() - since, int(step), node_label, _tell_day
            )
        except PrometheusFailed as error:
            raise click.ClickException(str(error)) from None
        say(
            f"{len(replayed.runs)} jobs had no measurements; {len(replayed.measured)} have some now, of "
            f"{replayed.days} days of nodes"
        )
        if judging:
            _judge(monitor, replayed.runs)


def _tell_day(day: str, nodes: int) -> None:
    from peerway_jobs.history.replaying import DAY_S
    from peerway_jobs.usage import date_text

    say(f"{date_text(int(day) * DAY_S)}: {nodes} nodes", err=True)


@contextmanager
def _stopped(data: Path) -> Iterator[Monitor]:
    """The monitor of a folder in which no server runs."""
    check_folder(data, make=True)
    with locked(data, "server", 0o700, slurm=False), monitor_at(data, make=True) as monitor:
        yield monitor


def _text(file: Path) -> str:
    try:
        raw = sys.stdin.buffer.read() if file == _STANDARD else file.read_bytes()
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror or error}") from None
    return raw.decode(errors="replace")


def _name_unreadable(reasons: Iterable[str]) -> None:
    several = list(reasons)
    for why in several[:_MOST_NAMED]:
        say(f"left out: {printable(why)}", err=True)
    if len(several) > _MOST_NAMED:
        say(f"and {len(several) - _MOST_NAMED} more", err=True)


def _judge(monitor: Monitor, runs: list[Run]) -> None:
    from peerway_jobs.history.importing import judge_all

    count = judge_all(monitor, runs)
    monitor.tidy()
    say(f"{count} jobs judged")
