"""Options that verbs of several products share, and the error for input that a verb cannot use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from peerway_common.suggestion import did_you_mean

Decorated = TypeVar("Decorated", bound=Callable[..., Any])


class BadInput(click.ClickException):
    """Input that a verb cannot use. It exits with 2, so that it differs from a finding (1)."""

    exit_code = 2


class Name(click.Choice[str]):
    """One of many names; the error for a wrong name suggests the nearest one."""

    def get_invalid_choice_message(self, value: Any, ctx: click.Context | None) -> str:
        """List the names, or suggest one."""
        suggestion = did_you_mean(value, self.choices) or "."
        return f"there is no {value}{suggestion} There are {', '.join(self.choices)}"


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Make the callback of an option from a parser that raises ValueError."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, parameter) from None

    return callback


def names(text: str) -> list[str]:
    """Read "a,b". Raises ValueError if there is no name."""
    result = [name.strip() for name in text.split(",") if name.strip()]
    if not result:
        raise ValueError(f"'{text}' has no name; write one or more, separated by commas, or leave it out")
    return result


def format_option(*forms: str) -> Callable[[Decorated], Decorated]:
    """The option --format; the first format is the default."""
    return click.option(
        "--format", "form", type=click.Choice(forms), default=forms[0], show_default=True,
        help="How to write the result.",
    )  # fmt: skip
