"""Numbers that options take: what click's own types call "integer range" in help and in errors."""

from __future__ import annotations

import click


class Whole(click.IntRange):
    """A whole number; N in the help."""

    name = "integer"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """Say how the help writes it."""
        return "N"


class Number(click.FloatRange):
    """Any number; an option that takes one names its unit by its metavar."""

    name = "number"
