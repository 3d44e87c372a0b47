"""`peerway jobs usage`: allocated hours by application and node type, for `peerway worth`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common import atomic_file
from peerway_common.cli.options import parsed
from peerway_common.terminal import say
from peerway_jobs.server_folder import data_option, monitor_at, parse_since

if TYPE_CHECKING:
    from peerway_jobs.store.connection import Connection

STANDARD = Path("-")


def _patterns(
    ctx: click.Context, parameter: click.Parameter, several: tuple[str, ...]
) -> list[tuple[str, str]]:
    pairs = []
    for text in several:
        name, equals, pattern = text.partition("=")
        if not (name and equals and pattern):
            raise click.BadParameter(
                f"{text!r} has no name or no pattern; write NAME=PATTERN, such as lqcd='lqcd*'",
                ctx, parameter,
            )  # fmt: skip
        pairs.append((name, pattern))
    return pairs


@click.command()
@click.option(
    "--since", callback=parsed(parse_since), default="365d", show_default=True, metavar="TIME",
    help="The time up to last midnight (UTC): 30d, 365d.",
)  # fmt: skip
@click.option(
    "--application", "patterns", multiple=True, metavar="NAME=PATTERN", callback=_patterns,
    help="Jobs whose name fits PATTERN (*, ?, [abc]) are of this application; the first that fits counts  "
    "[default: the job's name]",
)  # fmt: skip
@click.option("--notices", is_flag=True, help="Hours of users before and after their first notice instead.")
@click.option(
    "--window", callback=parsed(parse_since), metavar="TIME",
    help="With --notices: so long before and after  [default: 30d]",
)  # fmt: skip
@click.option(
    "-o", "--out", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False), default="-",
    help="The CSV file to write  [default: the terminal]",
)  # fmt: skip
@data_option
def command(
    since: float, patterns: list[tuple[str, str]], notices: bool, window: float | None, out: Path, data: Path
) -> None:
    """Write allocated GPU-hours and core-hours by application, account, project and node type, as CSV.

    `peerway worth --usage` reads the file, and `peerway worth --notices` the one with --notices.
    """
    from peerway_jobs.usage import DAY_S, around_notices, notices_csv, usage, usage_csv

    if notices and patterns:
        raise click.UsageError("--application is not for --notices, which sums up all jobs of a user")
    if window is not None and not notices:
        raise click.UsageError("--window needs --notices")
    if min(since, window or DAY_S) < DAY_S:
        raise click.UsageError("--since and --window are at least one day: 1d")
    with monitor_at(data) as monitor:
        base, now = monitor.jobs.reader, time.time()
        if notices:
            around = around_notices(base, window or 30 * DAY_S, now)
            text, damaged = notices_csv(around), 0
            if not around:
                raise click.ClickException(
                    "no notice was sent a day ago or earlier, so there is nothing to compare; "
                    "`peerway jobs serve --mail FILE` sends notices"
                )
        else:
            end = now // DAY_S * DAY_S
            begin = _begin(base, end - since // DAY_S * DAY_S)
            hours, damaged = usage(base, begin, end, patterns)
            if not hours:
                raise click.ClickException(
                    f"no job ran in the {since // DAY_S:.0f} days up to last midnight; name a longer --since"
                )
            text = usage_csv(hours, begin, end)
    if damaged:
        say(
            f"peerway: {damaged} damaged rows of jobs are left out; `peerway jobs doctor` names them",
            err=True,
        )
    if out == STANDARD:
        say(text.removesuffix("\n"))
        return
    try:
        atomic_file.replace(out, text)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror or error}") from None


def _begin(base: Connection, wanted: float) -> float:
    """The beginning of the time: `wanted`, or the day on which the first job began that is known here. Hours
    of a part of the time, scaled as if they were those of all of it, would be too few.
    """
    from peerway_jobs.usage import DAY_S, date_text, oldest_start

    oldest = oldest_start(base)
    if oldest is None or oldest < wanted + DAY_S:
        return wanted
    say(f"peerway: the first job here began on {date_text(oldest)}; the hours are since then", err=True)
    return oldest // DAY_S * DAY_S
