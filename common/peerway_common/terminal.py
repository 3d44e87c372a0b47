"""The terminal, or what stands in its place: the one way to print. Whatever text comes here, from records,
tables, plugins or the system, none of it is obeyed: neither by the terminal nor, as markup, by rich.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from peerway_common.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.segment import Segment

PLAIN_WIDTH = 120  # of tables that go to a file or a pipe


class Terminal(Console):
    """A console on which text is only text."""

    def __init__(self, *, stderr: bool = False, plain_width: int | None = None) -> None:
        """`plain_width`: that of what is not a terminal; rich's own default without it."""
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if plain_width and not self.is_terminal:
            self.width = plain_width

    def render_str(self, text: str, **options: Any) -> Text:
        """Plain text, safe to show; rich makes its texts of strings here."""
        return super().render_str(printable(text, lines=True), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What rich draws of a renderable; a text is made safe before."""
        return super().render(_safe(renderable), options)


def table_console() -> Terminal:
    """Standard output, as wide as the terminal is."""
    return Terminal(plain_width=PLAIN_WIDTH)


def say(text: str, *, err: bool = False) -> None:
    """Print a text of one or more lines."""
    click.echo(printable(text, lines=True), err=err)


def _safe(renderable: RenderableType) -> RenderableType:
    if not isinstance(renderable, Text) or renderable.plain.isprintable():
        return renderable
    plain = printable(renderable.plain, lines=True)
    return renderable if plain == renderable.plain else Text(plain, style=renderable.style)
