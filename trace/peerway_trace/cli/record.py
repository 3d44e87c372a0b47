"""`peerway trace -- COMMAND`: run a command and record it."""

from __future__ import annotations

import importlib.util
import math
import re
import time
from pathlib import Path

import click

from peerway.cli.run import find
from peerway_common.cli.numbers import Number, Whole
from peerway_common.cli.options import parsed
from peerway_common.printable import shell_word
from peerway_common.terminal import say
from peerway_trace import memory
from peerway_trace.control import Window
from peerway_trace.mpi import MpiError, compiler_of, library
from peerway_trace.record import RecordError, Request, record
from peerway_trace.store import Trace


def _ranks(text: str) -> str:
    """Check a list of ranks. Raises ValueError."""
    if text and not re.fullmatch(r"\d+(,\d+)*", text):
        raise ValueError(f"{text} is not a list of ranks; write them as 0,3,12")
    return text


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "-o",
    "--out",
    type=click.Path(path_type=Path),
    help="The folder of the trace  [default: trace-PROGRAM-TIME]",
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
    type=Whole(64, 1 << 30),
    default=1 << 18,
    show_default=True,
    help="How many events a thread keeps, its last ones; 32 bytes each.",
)
@click.option(
    "--ranks",
    default="",
    metavar="LIST",
    callback=parsed(_ranks),
    help="Record only these ranks, separated by commas  [default: all]",
)
@click.option(
    "--region",
    default="",
    metavar="NAME",
    help="Record a process only while it is in a region of this name  [default: always]",
)
@click.option(
    "--from",
    "begin",
    type=Number(0),
    default=0.0,
    metavar="SECONDS",
    help="Start recording so long after the command starts  [default: at once]",
)
@click.option(
    "--for",
    "seconds",
    type=Number(0),
    metavar="SECONDS",
    help="Record for this time  [default: to the end]",
)
@click.option(
    "--rings",
    metavar="FOLDER",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Keep events in this folder while the program runs, if half of it or 4 GiB stay free; other hosts "
    "keep theirs in the folder of the trace  [default: /dev/shm]",
)
@click.option("--stopped", is_flag=True, help="Record nothing until `peerway trace start`.")
@click.option(
    "--mpicc",
    metavar="COMMAND",
    help="The compiler of the MPI whose calls to record; none: record no MPI calls "
    " [default: the mpicc beside the mpirun in COMMAND, if there is one]",
)
@click.argument("command_line", nargs=-1, required=True, type=click.UNPROCESSED, metavar="COMMAND...")
def command(
    *,
    out: Path | None,
    level: str,
    events: int,
    ranks: str,
    region: str,
    begin: float,
    seconds: float | None,
    rings: Path | None,
    stopped: bool,
    mpicc: str | None,
    command_line: tuple[str, ...],
) -> int:
    """Run COMMAND and record every operation of its ranks: peerway trace -- peerway run -n 4 -- ./program.

    It also records every MPI call of unmodified MPI programs: peerway trace -- mpirun -n 4 ./program. The
    program is not rebuilt. The exit status is the command's. The events of a killed rank are kept.
    """
    find(command_line[0])
    folder = out or Path(f"trace-{_program(command_line)}-{time.strftime('%Y%m%d-%H%M%S')}")
    window = Window(math.inf if stopped else begin, seconds)
    try:
        compiler = mpicc or compiler_of(list(command_line))
        preload = library(compiler) if compiler not in (None, "none") else None
        _say_what_is_missing(folder)
        rings = rings or _memory(events)
        status, trace = record(
            Request(list(command_line), folder, level, events, preload, ranks, region, window, rings)
        )
    except (RecordError, MpiError) as error:
        raise click.ClickException(str(error)) from error
    summarize(trace, folder)
    return status


def _memory(events: int) -> Path | None:
    """The memory for events, if there is enough. Says if there is not, and what others have left there."""
    for line in memory.left_behind():
        say(f"peerway: trace: {line}", err=True)
    reason = memory.why_not(memory.MEMORY, events)
    if not reason:
        return memory.MEMORY
    say(
        f"peerway: trace: {reason}: events are kept in the folder of the trace, whose file system may "
        "disturb the program. Lower --events, or name a folder in memory with --rings",
        err=True,
    )
    return None


def _say_what_is_missing(folder: Path) -> None:
    """Name missing packages before a long job rather than after it; it is recorded nevertheless."""
    if importlib.util.find_spec("pyarrow") is None:
        say(
            f"peerway: trace: pyarrow, which makes the trace, is not installed: the events will stay in "
            f"{folder / 'rings'}. `pip install peerway-trace`, then "
            f"`peerway trace collect {shell_word(folder)}`",
            err=True,
        )


def _program(words: tuple[str, ...]) -> str:
    """The word that names the program best: the first after the last `--`, otherwise the first of all."""
    last = max((i for i, word in enumerate(words) if word == "--"), default=-1)
    return Path(words[last + 1] if last + 1 < len(words) else words[0]).name


def summarize(trace: Trace, folder: Path) -> None:
    """Say on standard error what was recorded, and what was not."""
    from peerway_trace.tables import count_text

    who = f"{count_text(len(trace.ranks), 'rank', 'ranks')}, " if trace.ranks else ""
    full = trace.about["level"] == "full"
    count = len(trace) if full else int(trace.sums["count"].sum())
    if trace.threads:
        say(
            f"peerway: trace: {who}{count_text(len(trace.threads), 'thread', 'threads')}, "
            f"{count_text(count, 'event', 'events')}; "
            f"`peerway trace report {shell_word(folder)}` reads them",
            err=True,
        )
    else:
        say(
            "peerway: trace: nothing was recorded: no process of the command made a Peerway context, "
            "called MPI or named a region. If it is an MPI program, name its compiler with --mpicc",
            err=True,
        )
    if trace.dropped:
        say(
            f"peerway: trace: {trace.dropped:,} {'event is' if trace.dropped == 1 else 'events are'} lost, "
            "mostly the first of a thread: a thread keeps its last ones; --events sets how many",
            err=True,
        )
    for line in [*trace.about["lost"], *trace.about.get("notes", [])]:
        say(f"peerway: trace: {line}", err=True)
