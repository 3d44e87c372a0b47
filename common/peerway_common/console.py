"""The only way to print tables and progress to a terminal or a file. Text from records, tables, plugins or
the system cannot control the terminal, and rich does not interpret it as markup.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.text import Text

from peerway_common.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.segment import Segment

PLAIN_WIDTH = 120  # the width of tables in a file or a pipe


class Terminal(Console):
    """A console that prints text unchanged and safely."""

    def __init__(self, *, stderr: bool = False, plain_width: int | None = None) -> None:
        """`plain_width`: the width if it is not a terminal; by default that of rich."""
        super().__init__(stderr=stderr, highlight=False, markup=False, emoji=False)
        if plain_width and not self.is_terminal:
            self.width = plain_width

    def render_str(self, text: str, **options: Any) -> Text:
        """Make text safe to show; rich calls this for strings."""
        return super().render_str(printable(text, lines=True), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Draw a renderable with rich; a text is made safe first."""
        return super().render(_safe(renderable), options)


def table_console() -> Terminal:
    """Standard output, as wide as the terminal."""
    return Terminal(plain_width=PLAIN_WIDTH)


def _safe(renderable: RenderableType) -> RenderableType:
    if not isinstance(renderable, Text) or renderable.plain.isprintable():
        return renderable
    plain = printable(renderable.plain, lines=True)
    return renderable if plain == renderable.plain else Text(plain, style=renderable.style)
