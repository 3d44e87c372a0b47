"""Groups of commands: their verbs in the order in which one needs them, and the nearest for a word that is
none. One kind knows its verbs from a table, so that `--help` imports none of them.
"""

from __future__ import annotations

import importlib
from typing import Any

import click

from peerway.nearest import meant


class Ordered(click.Group):
    """Verbs in the order in which they were added."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(subcommand_metavar="VERB [ARGUMENTS]...", **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse a word that is no verb with the nearest one."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            near = meant(args[0], known) or "."
            ctx.fail(f"there is no verb {args[0]}{near} `{ctx.command_path} --help` lists them.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs and what each is for."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, each.get_short_help_str(200)) for name, each in self.commands.items()])


class Verbs(Ordered):
    """Verbs from a table, name -> what it is for. Each is `command` in a file of `package`."""

    def __init__(self, package: str, verbs: dict[str, str], **settings: Any) -> None:
        super().__init__(**settings)
        self.package = package
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb, imported now; None for a word that is no verb."""
        if cmd_name not in self.verbs:
            return None
        command = importlib.import_module(f"{self.package}.{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs and what each is for, from the table."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(self.verbs.items()))
