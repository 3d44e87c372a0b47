"""Finds the loops whose trip count the host knows before they begin."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.copying import Copier
from peerway_xacc.device_loops.heads import Head
from peerway_xacc.device_loops.scalars import Compute, is_volatile
from peerway_xacc.frontend.source import Function, Range, Use, Variable, used_in
from peerway_xacc.frontend.tokens import scan


@dataclass(frozen=True)
class TripCount:
    """What the host counts a loop's iterations with: a counter that only the loop's step changes."""

    counter: Variable
    in_body: bool  # whether the body reads the counter


def trip_count_of(
    unit: Mapped, compute: Compute, function: Function, head: Head, changed: Iterable[Variable]
) -> TripCount | None:
    """How to count a loop that only its condition ends; None if the host cannot know the trip count.

    `changed` are the variables that the loop changes. All that the condition and the step read, besides the
    counter, must be loop-invariant.
    """
    parts = (head.condition, head.step)
    uses = [use for part in parts for use in used_in(function.uses, part)]
    stepped = {id(use.variable): use.variable for use in used_in(function.uses, head.step) if use.written}
    endless = head.condition.start == head.condition.end
    if endless or len(stepped) != 1 or _calls(function, parts):
        return None
    if any(use.written for use in used_in(function.uses, head.condition)):
        return None
    counter = next(iter(stepped.values()))
    variable = {id(each) for each in changed} - {id(counter)}
    if any(id(use.variable) in variable or not _is_invariant(unit, compute, use) for use in uses):
        return None
    in_body = [use for use in used_in(function.uses, head.body) if use.variable is counter]
    if any(use.written for use in in_body):
        return None
    # libclang sees neither directives nor assignments of sections
    names = {span.text for span in scan(unit.text.text, head.body.start, head.body.end)}
    return TripCount(counter, bool(in_body) or counter.name in names)


def _calls(function: Function, parts: Iterable[Range]) -> bool:
    return any(
        mark.kind == "call" and part.start <= mark.start < part.end
        for mark in function.marks for part in parts
    )  # fmt: skip


def _is_invariant(unit: Mapped, compute: Compute, use: Use) -> bool:
    """Is a variable one that only the host's own text can change: no kernel, no pointer, and no signal?"""
    variable = use.variable
    plain = variable.scalar and variable.pointee is None
    reached = any(each.address or each.aliased for each in variable.uses)
    computed = any(each.written and compute.around(each.range.start) for each in variable.uses)
    return plain and not reached and not computed and not is_volatile(unit, variable)


def counting_loop(unit: Mapped, function: Function, head: Head, trips: TripCount, name: str) -> str:
    """The text that counts the iterations of the next batch into a variable of this name.

    It executes the loop's condition and step with a copy of the counter: so it counts every kind of loop. The
    host does that much faster than a GPU iterates.
    """
    copier = Copier(unit, function.uses, {id(trips.counter): f"{name}_at"})

    def text(part: Range) -> str:
        return "".join(each.text for each in copier.text(part))

    begin = f"{trips.counter.spelling} {name}_at = {trips.counter.name}"
    condition = f"{name} < PWX_MOST_OF_BATCH && ({text(head.condition)})"
    return f" long {name} = 0; for ({begin}; {condition};{text(head.step)}) {name}++;"
