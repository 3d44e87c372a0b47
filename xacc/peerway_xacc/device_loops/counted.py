"""Finds out whether the host knows, before a loop begins, how often it will be executed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.copying import Copier
from peerway_xacc.device_loops.heads import Head
from peerway_xacc.device_loops.scalars import Compute
from peerway_xacc.frontend.source import Function, Range, Variable, used_in
from peerway_xacc.frontend.tokens import scan


@dataclass(frozen=True)
class Count:
    """How a loop counts: its condition and its step need the counter, and values that stay as they are."""

    counter: Variable
    in_body: bool  # whether the body uses the counter


def count_of(
    unit: Mapped, compute: Compute, function: Function, head: Head, changed: Iterable[Variable]
) -> Count | None:
    """How a loop without a test counts; None if the host cannot know it. `changed` are the variables that the
    loop changes.
    """
    parts = (head.condition, head.step)
    uses = [use for part in parts for use in used_in(function.uses, part)]
    written = {id(use.variable): use.variable for use in uses if use.written}
    endless = head.condition.start == head.condition.end
    if endless or len(written) != 1 or any(use.written for use in used_in(function.uses, head.condition)):
        return None
    counter = next(iter(written.values()))
    others = {id(variable) for variable in changed} - {id(counter)}
    calls = any(mark.kind == "call" and part.start <= mark.start < part.end
                for mark in function.marks for part in parts)  # fmt: skip
    stays = all(
        use.variable.scalar and use.variable.pointee is None and id(use.variable) not in others
        and not any(each.written and compute.around(each.range.start) for each in use.variable.uses)
        for use in uses
    )  # fmt: skip
    in_body = list(used_in(function.uses, head.body))
    if calls or not stays or any(use.written and use.variable is counter for use in in_body):
        return None
    # libclang sees neither directives nor assignments of sections
    names = {span.text for span in scan(unit.text.text, head.body.start, head.body.end)}
    return Count(counter, counter.name in names or any(use.variable is counter for use in in_body))


def counting(unit: Mapped, function: Function, head: Head, count: Count, to: str) -> str:
    """The text with which the host counts the next iterations, into a variable of this name: all that are
    left, or as many as the library executes at once. The host counts much faster than a GPU iterates.
    """
    copier = Copier(unit, function.uses, {id(count.counter): f"{to}_at"})

    def text(part: Range) -> str:
        return "".join(each.text for each in copier.text(part))

    begin = f"{count.counter.spelling} {to}_at = {count.counter.name}"
    condition = f"{to} < PWX_MOST_ITERATIONS && ({text(head.condition)})"
    return f" long {to} = 0; for ({begin}; {condition};{text(head.step)}) {to}++;"
