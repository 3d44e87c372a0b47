"""Options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

MEMORIES = ("host", "host:malloc", "cuda")


def parsed(parse: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Make an option's callback of a parser that raises ValueError."""

    def callback(ctx: click.Context, parameter: click.Parameter, value: str | None) -> Any:
        try:
            return None if value is None else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, parameter) from None

    return callback


def memories(text: str) -> list[tuple[str, str]]:
    """Read "host,cuda,host-cuda": pairs of memories to measure, source first."""
    found = []
    for part in text.split(","):
        source, dash, target = part.partition("-")
        for name in (source, target) if dash else (source,):
            if name not in MEMORIES:
                raise ValueError(
                    f"'{name}' is no memory to measure; there are {', '.join(MEMORIES)}, "
                    "or two such as host-cuda"
                )
        found.append((source, target if dash else source))
    return list(dict.fromkeys(found))
