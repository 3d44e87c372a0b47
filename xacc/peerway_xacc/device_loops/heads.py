"""Reads a loop of the host: the parts of its head, and the test in the middle that may leave it."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis.blocks import Item
from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.frontend.source import Function, Range, Statement, used_in
from peerway_xacc.frontend.tokens import Span, closing, scan


@dataclass(frozen=True)
class Head:
    """The parts of a loop's head; those of a `while` but for the condition are empty."""

    initial: Range
    condition: Range
    step: Range
    body: Range


@dataclass(frozen=True)
class Exit:
    """The test in the middle of a loop, and the value that the function returns if it is met."""

    condition: Range
    value: Range | None  # None: break; empty: return without a value
    number: int  # of the item that it is


def head_of(unit: Mapped, statement: Statement) -> Head:
    """Read the head of a `for` or a `while`. Raises StaysOnHost."""
    start, end = statement.start, statement.end
    spans = scan(unit.text.text, start, end)
    if spans[0].text not in ("for", "while") or spans[1].text != "(":
        raise StaysOnHost(start, "it comes out of a macro")
    close = closing(spans, 1)
    body = Range(spans[close].end, end)
    if spans[close + 1].text == "{":
        body = Range(spans[close + 1].end, end - 1)
    inner = spans[2:close]
    if spans[0].text == "while":
        nothing = Range(start, start)
        return Head(nothing, Range(inner[0].start, inner[-1].end), nothing, body)
    marks = [number for number, span in enumerate(inner) if span.text == ";"]
    if len(marks) != 2:
        raise StaysOnHost(start, "its head is unusual")
    parts = [inner[: marks[0]], inner[marks[0] + 1 : marks[1]], inner[marks[1] + 1 :]]
    ranges = [Range(part[0].start, part[-1].end) if part else Range(start, start) for part in parts]
    return Head(ranges[0], ranges[1], ranges[2], body)


def exit_of(unit: Mapped, function: Function, head: Head, items: list[Item]) -> Exit | None:
    """The test in the middle, if there is one. Raises StaysOnHost if there are more."""
    exits: list[Exit] = []
    for number, item in enumerate(items):
        if item.statement is not None and not item.directives:
            spans = scan(unit.text.text, item.statement.start, item.statement.end)
            leaves = _leaves(spans, number) if spans and spans[0].text == "if" else None
            exits += [leaves] if leaves else []
    if len(exits) > 1:
        raise StaysOnHost(items[exits[1].number].start, "a second test leaves it")
    if exits and exits[0].value is not None:
        _check_value(function, head, exits[0].value)
    return exits[0] if exits else None


def _leaves(spans: list[Span], number: int) -> Exit | None:
    """An if statement as a test that leaves the loop; None if it is another one."""
    close = closing(spans, 1)
    behind = [span for span in spans[close + 1 :] if span.text not in ("{", "}")]
    condition = Range(spans[2].start, spans[close - 1].end)
    if [span.text for span in behind] == ["break", ";"]:
        return Exit(condition, None, number)
    if not behind or behind[0].text != "return" or sum(span.text == ";" for span in behind) != 1:
        return None
    return Exit(condition, Range(behind[0].end, behind[-1].start), number)


def _check_value(function: Function, head: Head, value: Range) -> None:
    """Refuse a returned value that needs a variable of the body, which the host does not have then."""
    for use in used_in(function.uses, value):
        if head.body.start <= use.variable.declarator.start < head.body.end:
            raise StaysOnHost(use.range.start, f"it returns '{use.variable.name}', declared inside")
    if any(mark.kind == "call" and value.start <= mark.start < value.end for mark in function.marks):
        raise StaysOnHost(value.start, "it returns what a function gives")
