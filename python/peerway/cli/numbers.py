"""Numbers that options take: what click's own types call "integer range" in help and in errors."""

from __future__ import annotations

import math
from typing import Any

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

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what compares with nothing, so that it would be in every range."""
        found: float = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return found
