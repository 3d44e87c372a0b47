"""Groups of commands, which Peerway calls verbs."""

from __future__ import annotations

import importlib
import importlib.util
from dataclasses import dataclass
from typing import Any

import click

from peerway_common.suggestion import did_you_mean


class VerbGroup(click.Group):
    """A group that calls its commands verbs and keeps them in the order in which they were added. For a wrong
    verb it suggests the nearest one.
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
        """Refuse a wrong verb, and suggest the nearest one."""
        verbs = self.list_commands(ctx)
        if args[0] not in verbs and not args[0].startswith("-"):
            near = did_you_mean(args[0], verbs) or "."
            ctx.fail(f"there is no verb {args[0]}{near} `{ctx.command_path} --help` lists them.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs and what each is for."""
        with formatter.section("Verbs"):
            formatter.write_dl(self.about(ctx))


@dataclass(frozen=True)
class Verb:
    """A verb that is imported only when it is used: `command` in the module."""

    help: str
    module: str
    distribution: str = ""  # the distribution with the module, if it may be missing
    extra: str = ""  # the distribution's extra that only some uses of the verb need

    @property
    def requirement(self) -> str:
        """The argument of pip for everything that the verb needs, quoted for a shell."""
        return f"'{self.distribution}[{self.extra}]'" if self.extra else self.distribution


def in_package(package: str, helps: dict[str, str]) -> dict[str, Verb]:
    """The table of verbs whose modules are files of a package, with the first line of the help of each."""
    return {name: Verb(text, f"{package}.{name.replace('-', '_')}") for name, text in helps.items()}


class Verbs(VerbGroup):
    """Verbs from a table, so that `--help` imports none of them."""

    def __init__(self, verbs: dict[str, Verb], **settings: Any) -> None:
        super().__init__(**settings)
        self.verbs = verbs

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All verbs, in the order of the table."""
        return list(self.verbs)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a verb, imported now; None if there is no such verb. Raises ClickException if its
        distribution is not installed.
        """
        verb = self.verbs.get(cmd_name)
        if verb is None:
            return None
        package = verb.module.partition(".")[0]
        if verb.distribution and importlib.util.find_spec(package) is None:
            raise click.ClickException(
                f"`{ctx.command_path} {cmd_name}` is part of {verb.distribution}, which is not installed; "
                f"run pip install {verb.distribution}"
            )
        command = importlib.import_module(verb.module).command
        assert isinstance(command, click.Command)
        return command

    def about(self, ctx: click.Context) -> list[tuple[str, str]]:
        """Each verb with its help, from the table."""
        return [(name, verb.help) for name, verb in self.verbs.items()]
