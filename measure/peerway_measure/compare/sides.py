"""The names of the two sides of a comparison: before and after, or the values of a factor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Sides(NamedTuple):
    """The names of both sides in the columns of tables."""

    before: str = "before"
    after: str = "after"

    def heading(self, names: tuple[str, str]) -> str:
        """Both names for a heading. `names` are those of the files or campaigns."""
        if self == BEFORE_AFTER:
            return f"{names[0]} and {names[1]}"
        if names[0] == names[1]:
            return f"{names[0]}: {self.before} and {self.after}"
        return f"{names[0]} ({self.before}) and {names[1]} ({self.after})"

    def alone(self, names: tuple[str, str]) -> tuple[str, str]:
        """Each name for use in a sentence without the other."""
        return names if self == BEFORE_AFTER else (self.before, self.after)


BEFORE_AFTER = Sides()


def sides_of(factors: Mapping[str, tuple[str, str] | None]) -> Sides:
    """The names "block=64K" and "block=1M", for factors whose values choose the sides; otherwise before and
    after.
    """
    chosen = {name: values for name, values in factors.items() if values}
    if not chosen:
        return BEFORE_AFTER
    return Sides(*(" ".join(f"{name}={values[side]}" for name, values in chosen.items()) for side in (0, 1)))
