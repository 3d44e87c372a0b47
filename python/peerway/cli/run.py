"""`peerway run`: start a program as several ranks on this host."""

from __future__ import annotations

import os
import shutil

import click

from peerway.launch.places import Place, assign, read_host
from peerway.launch.supervisor import Job
from peerway.launch.supervisor import run as run_job

NOT_EXECUTABLE, NOT_FOUND = 126, 127  # as a shell has it


class CannotRun(click.ClickException):
    """The program cannot be started."""

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


@click.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.option("-n", "--ranks", type=click.IntRange(1, 4096), required=True, help="How many ranks to start.")
@click.option("--prefix", is_flag=True, help="Begin each line of output with the rank that wrote it.")
@click.option(
    "--grace",
    type=click.FloatRange(0, 86400),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="When a rank has died: how long the others may go on, to notice it and to save what they have.",
)
@click.option(
    "--bind",
    type=click.Choice(["auto", "none"]),
    default="auto",
    show_default=True,
    help="auto: each rank to cores of its own, near its GPU or on one NUMA node.",
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    ranks: int, prefix: bool, grace: float, bind: str, program: str, arguments: tuple[str, ...]
) -> int:
    """Start PROGRAM as N ranks on this host: peerway run -n 4 -- ./program its arguments.

    Rank 0 gets the standard input, the others none. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed to
    all ranks; a second SIGINT or SIGTERM ends them. The exit code is that of the first rank that failed (128 and the
    signal's number for a signal). With GPUs, rank r uses number r modulo their number (PEERWAY_DEVICE).
    """
    executable = find(program)
    host = read_host(visible=os.environ.get("CUDA_VISIBLE_DEVICES"))
    places = assign(ranks, host)
    if bind == "none":
        places = [Place(gpu=place.gpu) for place in places]
    try:
        return run_job(Job([executable, *arguments], places, prefix, grace))
    except OSError as error:
        raise CannotRun(f"{program} cannot be run: {error.strerror or error}", NOT_EXECUTABLE) from error


def find(program: str) -> str:
    """The file to execute. Raises CannotRun when there is none, or when it may not be executed."""
    if found := shutil.which(program):
        return found
    if os.path.isdir(program):
        raise CannotRun(f"{program} is a folder, not a program", NOT_EXECUTABLE)
    if os.path.exists(program) and os.sep in program:
        hint = f"start it as: python {program}" if program.endswith(".py") else f"chmod +x {program}"
        raise CannotRun(f"{program} is not executable; {hint}", NOT_EXECUTABLE)
    if os.path.exists(program):
        raise CannotRun(f"{program} was not found in PATH; did you mean ./{program}?", NOT_FOUND)
    where = "does not exist" if os.sep in program else "was not found in PATH"
    raise CannotRun(f"{program} {where}", NOT_FOUND)
