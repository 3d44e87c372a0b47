"""Places the code for templates that are fixed at run time: arrays get memory, functions get pointers.

If the template is fixed before a function is called, the function has its pointer at its start. If the
function itself fixes the template, or calls a function that does, the pointer comes after that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peerway_xacc.analysis.mapping import DistributedArray, TemplateOf
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Function, Range
from peerway_xacc.lowering.c_text import at
from peerway_xacc.lowering.unit import Unit

_OF_RUN_TIME = ("xmp_", "xmpc_", "acc_", "omp_")


@dataclass(frozen=True)
class Spot:
    """Where a pointer is declared (after a statement, or in place of a template_fix), and its scope."""

    directive: d.TemplateFix | None
    offset: int
    reach: Range


def spots(
    unit: Unit, function: Function, template: TemplateOf, uses: list[int]
) -> tuple[list[Spot], list[int]]:
    """Places after the code that fixes a template, to declare pointers for these uses; and unreached uses."""
    spots_: list[Spot] = []
    unplaced = []
    fixing = _fixing(unit, function, template)
    for use in sorted(uses):
        if any(spot.reach.start <= use < spot.reach.end for spot in spots_):
            continue
        candidates = (
            _spot(unit, start, directive, use) for start, directive in reversed(fixing) if start < use
        )
        spot = next((candidate for candidate in candidates if candidate), None)
        if spot:
            spots_.append(spot)
        else:
            unplaced.append(use)
    return spots_, unplaced


def _spot_for_local(unit: Unit, array: DistributedArray, uses: list[Range]) -> Spot | None:
    """Where in its block a local array gets memory, if not at its declaration; else None."""
    assert array.function is not None
    assert array.template is not None
    fixing = _fixing(unit, array.function, array.template)
    if not fixing or fixing[0][0] < array.last_directive:
        return None
    first = min((use.start for use in uses), default=array.scope.end)
    before = [fixed for fixed in fixing if fixed[0] < first] or fixing
    spot = _spot(unit, *before[-1], array.scope.end - 1)
    if spot and first < spot.reach.start:
        use = min(uses, key=lambda use: use.start)
        note = (unit.text.place(before[-1][0]), "its template is fixed here")
        place = unit.text.place(use.start, use.end)
        raise Refused(place, f"'{array.name}' is used before its template is fixed", note)
    return spot


def put_local(unit: Unit, array: DistributedArray, declared: list[str], lines: list[str]) -> None:
    """Put a local array's declarations at its last directive, and its memory where its template is fixed."""
    unit.output.put_at(array.last_directive, declared)
    assert array.variable is not None
    assert array.template is not None
    spot = None
    if array.waits and array.function:
        uses = [use.range for use in array.variable.uses if use.function is array.function]
        spot = _spot_for_local(unit, array, uses)
    if spot:
        put(unit, spot, lines)
    else:
        unit.output.put_at(array.last_directive, lines)


def put(unit: Unit, spot: Spot, lines: list[str]) -> None:
    """Put lines at a spot."""
    if spot.directive:
        unit.output.put_at(spot.offset, lines)
    else:
        unit.output.edits.next_to(spot.offset, f" {' '.join(lines)}")


def _spot(unit: Unit, start: int, directive: d.TemplateFix | None, use: int) -> Spot | None:
    """The place after the statement at `start`, in the innermost block that also contains the use."""
    block = [
        statement for statement in unit.syntax.around(unit.file, start)
        if statement.kind == "block" and statement.start < use < statement.end
    ][-1]  # fmt: skip
    for statement in unit.syntax.children(unit.file, Range(block.start + 1, block.end - 1)):
        if statement.start <= start < statement.end:
            if use < statement.end:
                return None  # the statement that fixes it also uses it
            return Spot(None, statement.end, Range(statement.end, block.end))
    return Spot(directive, start, Range(start, block.end))


def _fixing(unit: Unit, function: Function, template: TemplateOf) -> list[tuple[int, d.TemplateFix | None]]:
    """The places in a function that may fix a template, template_fix and calls, in the order of the text."""
    may = _may_fix(unit, template)
    fixing: list[tuple[int, d.TemplateFix | None]] = [
        (mark.start, None) for mark in function.marks
        if mark.kind == "call" and mark.name != function.name and may(mark.name)
    ]  # fmt: skip
    fix = unit.fixes.get(id(template))
    if fix and unit.function_of(fix) is function:
        fixing.append((fix.start, fix))
    return sorted(fixing, key=lambda entry: entry[0])


def _may_fix(unit: Unit, template: TemplateOf) -> Callable[[str], bool]:
    """A predicate on names of functions: may this function fix a template?

    If this file does not fix it, any function of another file may.
    """
    fix = unit.fixes.get(id(template))
    functions = {function.name: function for function in unit.syntax.functions if function.file == unit.file}
    of_fix = unit.function_of(fix) if fix else None
    known = {of_fix.name} if of_fix else set()

    def may(name: str) -> bool:
        elsewhere = fix is None and name not in functions and not name.startswith(_OF_RUN_TIME)
        return name in known or elsewhere

    while more := {
        name
        for name, function in functions.items()
        if name not in known and any(mark.kind == "call" and may(mark.name) for mark in function.marks)
    }:
        known |= more
    return may


def set_up(unit: Unit) -> list[str]:
    """The functions that give arrays memory when their templates are fixed, as lines to follow the text."""
    lines = []
    for template in unit.scopes.templates():
        deferred = unit.output.when_fixed.get(id(template), [])
        of_header = template.place.file != unit.file
        if not template.opened or template.function or not (deferred or of_header):
            continue
        if deferred and not of_header and id(template) not in unit.fixes:
            unit.diagnostics.add(
                Refused(template.place, f"template '{template.name}' is not fixed in this file")
            )
            continue
        call = "0"
        if deferred:
            call = f"pwx__fixed_{template.name}"
            lines += ["", f"static void {call}(void) {{", *("  " + line for line in deferred), "}"]
        unit.output.setup_last.append(f"pwx_when_fixed({template.address}, {call}, {at(template.place)});")
    return lines
