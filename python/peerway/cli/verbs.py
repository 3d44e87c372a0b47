"""Groups of commands, whose commands are called verbs everywhere."""

from __future__ import annotations

import importlib
from typing import Any

import click

from peerway.nearest import meant


class VerbGroup(click.Group):
    """A group that calls its commands verbs, in the order in which they were added, which is that of their
    use, and names the nearest one for a word that is none.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(subcommand_metavar="VERB [ARGUMENTS]...", **settings)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs."""
        return list(self.commands)

    def about(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each verb and what it is for."""
        return [(name, self.commands[name].get_short_help_str(150)) for name in self.list_commands(ctx)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse a word that is no verb with the nearest one."""
        verbs = self.list_commands(ctx)
        if args[0] not in verbs and not args[0].startswith("-"):
            near = meant(args[0], verbs) or "."
            ctx.fail(f"there is no verb {args[0]}{near} `{ctx.command_path} --help` lists them.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs and what each is for."""
        with formatter.section("Verbs"):
            formatter.write_dl(self.about(ctx))


class Verbs(VerbGroup):
    """Verbs from a table, name -> what it is for, so that `--help` imports none of them. Each is `command` in
    a file of `package`.
    """

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

    def about(self, ctx: click.Context) -> list[tuple[str, str]]:
        """From the table."""
        return list(self.verbs.items())
