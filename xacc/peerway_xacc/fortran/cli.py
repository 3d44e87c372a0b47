"""`peerway fc`: compile a Fortran program with directives of XcalableMP."""

from __future__ import annotations

import os

import click

from peerway_xacc.cli import Compiler
from peerway_xacc.command_line import FORTRAN, BadCommand, read


@click.command(cls=Compiler, options_metavar="")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="FILE.f90... [OPTION]...")
def command(*, words: tuple[str, ...]) -> int:
    """Compile Fortran with directives: peerway fc prog.f90 -O2 -o prog, then peerway run -n 4 ./prog.

    The Fortran compiler is $FC or gfortran. Its options -c, -S, -o, -D, -I and all others work as usual.
    Options of peerway fc:

    \b
    --emit, --emit=FILE         only write the generated text, to standard output or FILE
    --explain                   say what was generated for each directive
    --openacc-backend=COMPILER  leave the acc directives to gfortran, nvfortran, ...
    """
    try:
        command_line = read(list(words), dict(os.environ), FORTRAN)
    except BadCommand as bad:
        raise click.UsageError(str(bad)) from bad
    from peerway_xacc.fortran.driver import run

    return run(command_line)
