"""`peerway cc`: compile a C program with directives of XcalableMP, XcalableACC and OpenACC."""

from __future__ import annotations

import os

import click

from peerway_xacc.command_line import BadCommand, read


class Compiler(click.Command):
    """A command that takes a C compiler's options: click would read `-march=native` as `-m -a -r -c -h`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Pass all words on unchanged, unless the first one asks for help."""
        if args and args[0] not in ("-h", "--help"):
            ctx.params["words"] = tuple(args)
            return []
        return super().parse_args(ctx, args)


@click.command(cls=Compiler, options_metavar="")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="FILE.c... [OPTION]...")
def command(*, words: tuple[str, ...]) -> int:
    """Compile C with directives: peerway cc prog.c -O2 -o prog, then peerway run -n 4 ./prog.

    The C compiler is $CC or gcc. Its options -c, -S, -o, -D, -I and all others work as usual. Options of
    peerway cc:

    \b
    --emit, --emit=FILE         only write the generated C, to standard output or FILE
    --explain                   say what was generated for each directive
    --openacc-backend=COMPILER  leave the acc directives to gcc, nvc, ...
    """
    try:
        command_line = read(list(words), dict(os.environ))
    except BadCommand as bad:
        raise click.UsageError(str(bad)) from bad
    from peerway_xacc.driver import run  # libclang is loaded only here

    return run(command_line)
