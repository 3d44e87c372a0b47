"""`peerway mpirun`: start an unmodified MPI program over the plugin of any NIC."""

from __future__ import annotations

import click

from peerway.launch.mpi import MpiError, check_program, command_over_nic, find_launcher, replace_process
from peerway_common.cli.numbers import Whole


@click.command(context_settings={"allow_interspersed_args": False})
@click.option(
    "--nic",
    required=True,
    metavar="PLUGIN[?OPTIONS]",
    help="The NIC: the short name or the file of its plugin, and options for the plugin.",
)
@click.option("-n", "--ranks", type=Whole(1, 4096), required=True, help="How many ranks to start.")
@click.option(
    "--mpirun",
    "launcher",
    default=None,
    metavar="COMMAND",
    help="The mpirun of the MPI that the program was built with  [default: the first in PATH]",
)
@click.option(
    "--launcher-option",
    "extra",
    multiple=True,
    metavar="WORD",
    help="An option to pass to that mpirun; may be repeated.",
)
@click.argument("program")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def command(
    *,
    nic: str,
    ranks: int,
    launcher: str | None,
    extra: tuple[str, ...],
    program: str,
    arguments: tuple[str, ...],
) -> int:
    """Start PROGRAM, built with Open MPI or MPICH, as N ranks over a NIC's plugin.

    Messages and collectives go over the NIC: peerway mpirun --nic torus -n 8 -- ./program its arguments.
    The windows of MPICH do, too. Those of Open MPI mostly use shared memory or TCP, because its component for
    windows over NICs has faults; OMPI_MCA_osc=ucx,sm takes them over the NIC.
    Nothing is rebuilt. Peerway finds out which MPI the mpirun belongs to, and sets environment variables
    for the ranks only.
    """
    try:
        result = find_launcher(launcher)
        check_program(result, program)
        words, environment = command_over_nic(result, nic, ranks, [*extra], [program, *arguments])
        return replace_process(words, environment)
    except MpiError as error:
        raise click.ClickException(str(error)) from error
