"""Types of options that are numbers. click's own types would say "integer range" in help and errors."""

from __future__ import annotations

import math
from typing import Any

import click

MOST = 1e6  # the bound of options that name none


class Whole(click.IntRange):
    """A whole number; N in the help."""

    name = "integer"

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        """The name of the value in help."""
        return "N"


class Number(click.FloatRange):
    """A finite number with two bounds; the metavar of an option says its unit."""

    name = "number"

    def __init__(self, min: float, max: float = MOST, *, min_open: bool = False) -> None:
        super().__init__(min, max, min_open=min_open)
        self._least, self._most = min, max

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As click's, and also refuse nan, which passes every comparison with a bound."""
        try:
            result = float(value)
        except (TypeError, ValueError):
            result = math.nan
        if not self._least <= result <= self._most or (self.min_open and result == self._least):
            bounds = f"{self._least:.10g} to {self._most:.10g}"
            bounds = f"above {bounds.replace(' to', ' and up to')}" if self.min_open else f"from {bounds}"
            self.fail(f"{value} is not a number {bounds}", param, ctx)
        return result
