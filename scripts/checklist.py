"""A checklist that runs: each point is a function, and its outcome (ok, skipped or FAILED) is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from steps import StepError, say

if TYPE_CHECKING:
    from collections.abc import Callable


class Skipped(Exception):
    """A point cannot be checked here; the message says what is missing."""


class Checklist:
    """Runs the points and remembers their outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[tuple[str, str, str]] = []  # point, outcome, detail

    def check(self, point: str, function: Callable[[], str]) -> bool:
        """Run a point, a function that returns a line of detail or raises. Returns whether it is ok."""
        say(f"{point}:")
        try:
            outcome, detail = "ok", function()
        except Skipped as reason:
            outcome, detail = "skipped", str(reason)
        except StepError as error:
            outcome, detail = "FAILED", str(error)
        self.outcomes.append((point, outcome, detail))
        return outcome == "ok"

    def count(self, outcome: str) -> int:
        """The number of points with this outcome."""
        return sum(entry[1] == outcome for entry in self.outcomes)

    def lines(self) -> list[str]:
        """The whole list with one line per point, and the counts."""
        width = max(len(point) for point, _, _ in self.outcomes)
        points = [f"{outcome:<8}{point:<{width}}  {detail}" for point, outcome, detail in self.outcomes]
        counts = ", ".join(f"{self.count(outcome)} {outcome}" for outcome in ("ok", "FAILED", "skipped"))
        return [*points, counts]
