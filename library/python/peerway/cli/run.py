"""`peerway run`: start a program as several ranks on this host."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import click

from peerway.cli.hosts import Hosts, hosts_options
from peerway.launch.supervisor import Job
from peerway.launch.supervisor import run as run_job
from peerway_common.cli.numbers import Number, Whole


class NotFound(click.ClickException):
    """There is no such program."""

    exit_code = 127  # as in a shell


class NotExecutable(click.ClickException):
    """There is such a file, but it cannot be executed."""

    exit_code = 126


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "--ranks", type=Whole(1, 4096), required=True, help="How many ranks to start.")
@click.option("--prefix", is_flag=True, help="Begin each line of output with the rank that wrote it.")
@click.option(
    "--grace",
    type=Number(0, 86400),
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
@hosts_options
@click.option(
    "--tracebacks", is_flag=True, help="Show also the Python tracebacks with which ranks answer an interrupt."
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    *,
    ranks: int,
    prefix: bool,
    grace: float,
    bind: str,
    hosts: Hosts,
    tracebacks: bool,
    program: str,
    arguments: tuple[str, ...],
) -> int:
    """Start PROGRAM as N ranks: peerway run -n 4 -- ./program its arguments.

    On this host, on those of --hosts, or on the nodes of the Slurm allocation that this is run in. Ranks on
    other hosts are started by ssh or srun, in this folder and with this environment.

    Rank 0 gets the standard input, the others none. SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed
    to all ranks; a second SIGINT or SIGTERM ends them. The exit code is that of the first rank that failed
    (128 and the signal's number for a signal; 130 after Ctrl-C). Lines of ranks never mix, and a Python
    traceback that several ranks write is shown once. With GPUs, rank r of a host uses number r modulo the
    number of those that it sees, or the one that PEERWAY_DEVICE names.
    """
    executable = find(program)
    with contextlib.ExitStack() as held:
        places = hosts.places(ranks, bind, held)
        job = Job([executable, *arguments], places, prefix, grace, tracebacks, release=held.close)
        try:
            return run_job(job)
        except OSError as error:
            raise NotExecutable(f"{program} cannot be run: {error.strerror or error}") from error


def find(program: str) -> str:
    """Find the file to execute. Raises NotFound or NotExecutable."""
    if result := shutil.which(program):
        return result
    if Path(program).is_dir():
        raise NotExecutable(f"{program} is a folder, not a program")
    if Path(program).exists() and os.sep in program:
        hint = f"start it as: python {program}" if program.endswith(".py") else f"chmod +x {program}"
        raise NotExecutable(f"{program} is not executable; {hint}")
    if Path(program).exists():
        start = f"python {program}" if program.endswith(".py") else f"./{program}"
        raise NotFound(f"{program} was not found in PATH; did you mean {start}?")
    where = "does not exist" if os.sep in program else "was not found in PATH"
    raise NotFound(f"{program} {where}")
