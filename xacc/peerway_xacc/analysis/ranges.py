"""Computes the range of an expression in a loop: a constant range, or a range relative to the loop's index.

If a range cannot be determined, the answer is None, never a guess.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peerway_xacc.frontend.constant import LEVELS, NotConstant, applied, value_of
from peerway_xacc.frontend.tokens import scan

_MACROS = 100  # the most macros expanded in one expression, since a macro may name itself


@dataclass(frozen=True)
class Range:
    """The integers from `low` to `high`, both included; with `of_index`, relative to the loop's index."""

    low: int
    high: int
    of_index: bool = False


@dataclass(frozen=True)
class Names:
    """What names mean: `range_of` gives the range of a variable, `text_of` the text of a macro.

    `ends` bound the values of the index, both included, if known. `signed` means that no value becomes
    unsigned.
    """

    range_of: Callable[[str], Range | None]
    text_of: Callable[[str], str | None]
    ends: tuple[int, int] | None
    signed: bool


def range_of(text: str, names: Names) -> Range | None:
    """The range of an expression, or None if unknown."""
    reader = _Reader(names, [span.text for span in scan(text)])
    try:
        value = reader.choice()
    except (NotConstant, ZeroDivisionError, RecursionError):
        return None
    return value if not reader.rest else None


class _Reader:
    """Parses and evaluates an expression from its first token to its last."""

    def __init__(self, names: Names, rest: list[str]) -> None:
        self.names, self.rest = names, rest
        self.macros = _MACROS

    def choice(self) -> Range:
        """`a ? b : c`: one of both if `a` is constant, else the range that covers both."""
        value = self._binary(0)
        if self.rest[:1] != ["?"]:
            return value
        condition = self._plain(value)
        self.rest = self.rest[1:]
        yes = self._unless(condition == Range(0, 0))
        if self.rest[:1] != [":"]:
            raise NotConstant
        self.rest = self.rest[1:]
        constant = condition.low == condition.high
        no = self._unless(constant and condition.low != 0)
        if yes is None or no is None:
            chosen = no if yes is None else yes
            assert chosen is not None
            return chosen
        if yes.of_index != no.of_index:
            yes, no = self._plain(yes), self._plain(no)
        return Range(min(yes.low, no.low), max(yes.high, no.high), yes.of_index)

    def _unless(self, skipped: bool) -> Range | None:
        """The next branch of a choice; None for one that is never chosen, which may contain anything."""
        if not skipped:
            return self.choice()
        depth = 0
        while self.rest and not (depth == 0 and self.rest[0] in (":", ")", ",")):
            depth += (self.rest[0] in ("(", "?")) - (self.rest[0] in (")", ":"))
            self.rest = self.rest[1:]
        return None

    def _binary(self, level: int) -> Range:
        if level == len(LEVELS):
            return self._single()
        lhs = self._binary(level + 1)
        while self.rest and self.rest[0] in LEVELS[level]:
            operator, self.rest = self.rest[0], self.rest[1:]
            lhs = self._signed(self._combined(operator, lhs, self._binary(level + 1)))
        return lhs

    def _combined(self, operator: str, lhs: Range, right: Range) -> Range:
        if operator == "-" and right.of_index:
            right = self._plain(right)
        if operator in ("+", "-"):
            if lhs.of_index and right.of_index:
                lhs, right = self._plain(lhs), self._plain(right)
            low, high = (right.low, right.high) if operator == "+" else (-right.high, -right.low)
            return Range(lhs.low + low, lhs.high + high, lhs.of_index or right.of_index)
        lhs, right = self._plain(lhs), self._plain(right)
        if lhs.low == lhs.high and right.low == right.high:
            value = applied(operator, lhs.low, right.low)
            return Range(value, value)
        if operator == "*":
            corners = [a * b for a in (lhs.low, lhs.high) for b in (right.low, right.high)]
            return Range(min(corners), max(corners))
        if operator not in ("/", "%") or right.low != right.high or right.low <= 0 or lhs.low < 0:
            raise NotConstant
        if operator == "/":
            return Range(lhs.low // right.low, lhs.high // right.low)
        return lhs if lhs.high < right.low else Range(0, right.low - 1)

    def _single(self) -> Range:
        if not self.rest:
            raise NotConstant
        head, self.rest = self.rest[0], self.rest[1:]
        if head == "+":
            return self._single()
        if head == "-":
            value = self._plain(self._single())
            return self._signed(Range(-value.high, -value.low))
        if head == "(":
            value = self.choice()
            if self.rest[:1] != [")"]:
                raise NotConstant
            self.rest = self.rest[1:]
            return value
        known = self.names.range_of(head)
        if known is not None:
            return known
        text = self.names.text_of(head) if self.macros else None
        if text is not None:
            self.macros -= 1
            self.rest = [*(span.text for span in scan(text)), *self.rest]
            return self._single()
        number = None if "u" in head.lower() else value_of([head])
        if number is None:
            raise NotConstant
        return Range(number, number)

    def _plain(self, value: Range) -> Range:
        """The range as constants.

        Raises NotConstant if it depends on the index and its values are unknown.
        """
        if not value.of_index:
            return value
        if self.names.ends is None:
            raise NotConstant
        return Range(value.low + self.names.ends[0], value.high + self.names.ends[1])

    def _signed(self, value: Range) -> Range:
        if not self.names.signed and value.low < 0:
            raise NotConstant
        return value
