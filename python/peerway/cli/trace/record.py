"""`peerway trace -- COMMAND`: run a command and record it."""

from __future__ import annotations

import re
import time
from pathlib import Path

import click

from peerway.cli.options import parsed
from peerway.terminal import say
from peerway.trace.mpi import MpiError, compiler_of, library
from peerway.trace.record import RecordError, Request, record
from peerway.trace.store import Trace


def _ranks(text: str) -> str:
    """Check a list of ranks. Raises ValueError."""
    if text and not re.fullmatch(r"\d+(,\d+)*", text):
        raise ValueError(f"{text} is no list of ranks; write them as 0,3,12")
    return text


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="The folder of the trace [default: trace-PROGRAM-TIME].",
)
@click.option(
    "--level",
    type=click.Choice(["counters", "profile", "full"]),
    default="full",
    show_default=True,
    help="counters: sums of each operation; profile: also by path, peer and size; full: every operation.",
)
@click.option(
    "--events",
    type=click.IntRange(64, 1 << 30),
    default=1 << 18,
    show_default=True,
    help="How many of its last events a thread keeps, 32 bytes each.",
)
@click.option(
    "--ranks",
    default="",
    metavar="LIST",
    callback=parsed(_ranks),
    help="The only ranks that record, separated by commas [default: all].",
)
@click.option(
    "--mpicc",
    metavar="COMMAND",
    help="The compiler of the MPI whose calls are recorded; none: of no MPI "
    "[default: the one beside the mpirun of COMMAND, if it names one].",
)
@click.argument("command_line", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def command(
    *,
    out: Path | None,
    level: str,
    events: int,
    ranks: str,
    mpicc: str | None,
    command_line: tuple[str, ...],
) -> int:
    """Run COMMAND and record every operation of its ranks: peerway trace -- peerway run -n 4 -- ./program.

    Of unmodified MPI programs every call of MPI: peerway trace -- mpirun -n 4 ./program. Nothing is rebuilt.
    The exit status is the command's. A rank that is killed leaves what it had recorded.
    """
    folder = out or Path(f"trace-{_program(command_line)}-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        compiler = mpicc or compiler_of(list(command_line))
        preload = library(compiler) if compiler not in (None, "none") else None
        status, trace = record(Request(list(command_line), folder, level, events, preload, ranks))
    except (RecordError, MpiError) as error:
        raise click.ClickException(str(error)) from error
    summarize(trace, folder)
    return status


def _program(words: tuple[str, ...]) -> str:
    """The word that names the program best: what follows the last `--`, else the first."""
    last = max((i for i, word in enumerate(words) if word == "--"), default=-1)
    return Path(words[last + 1] if last + 1 < len(words) else words[0]).name


def summarize(trace: Trace, folder: Path) -> None:
    """Say on standard error what was recorded, and what was not."""
    ranks = [rank for rank in trace.ranks if rank >= 0]
    who = f"{len(ranks)} ranks, " if ranks else ""
    full = trace.about["level"] == "full"
    count = len(trace) if full else int(trace.sums["count"].sum())
    say(
        f"peerway: trace: {who}{len(trace.threads)} threads, {count:,} events; "
        f"`peerway trace report {folder}` reads them",
        err=True,
    )
    if not trace.threads:
        say(
            "peerway: trace: nothing was recorded: no process of the command made a context of Peerway, "
            "called MPI or named a region. Does it run an MPI that --mpicc must name?",
            err=True,
        )
    if trace.dropped:
        say(
            f"peerway: trace: {trace.dropped:,} events are lost, most of them the first of their thread, "
            "which keeps its last ones; --events says how many",
            err=True,
        )
    for line in trace.about["lost"]:
        say(f"peerway: trace: {line}", err=True)
