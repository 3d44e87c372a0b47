"""Checks restrictions of loops.

A distributed loop cannot be left early, because other nodes would not leave it, and cannot change its index.
A loop whose iterations run in parallel cannot be left early either.
"""

from __future__ import annotations

import re

from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.parsed import Parsed
from peerway_xacc.frontend.source import Mark

_LEFT_BY_BREAK = re.compile(r"(for|while|do|switch)\b")
_GOTO = re.compile(r"goto\s+(\w+)")


def check(unit: Parsed, loop: For) -> None:
    """Refuse a jump out of a distributed loop, and a change of its index. Raises Refused."""
    check_end(unit, loop, "leaves a distributed loop, in which other nodes would go on")
    function = unit.syntax.function_at(unit.file, loop.statement.start)
    assert function is not None
    index = loop.header.index
    variable = unit.syntax.variable(index, unit.file, loop.body.start)
    for use in function.uses:
        changed = use.written and not use.address and use.variable is variable
        if changed and loop.body.start <= use.range.start < loop.body.end:
            raise Refused(
                unit.text.place(use.range.start, use.range.end),
                f"'{index}' is changed inside its loop, which is distributed over nodes by '{index}'",
            )


def check_end(unit: Parsed, loop: For, why_not: str) -> None:
    """Refuse the first jump out of the loop. Raises Refused; `why_not` completes the message."""
    function = unit.syntax.function_at(unit.file, loop.statement.start)
    assert function is not None
    for mark in function.marks:
        if loop.body.start <= mark.start < loop.body.end and _leaves(unit, loop, mark):
            raise Refused(
                unit.text.place(mark.start, mark.start + len(mark.kind)),
                f"{mark.kind} {why_not}",
                (unit.text.place(loop.statement.start, loop.statement.start + 3), "the loop is this one"),
            )


def _leaves(unit: Parsed, loop: For, mark: Mark) -> bool:
    if mark.kind == "return":
        return True
    text = unit.text.text
    if mark.kind == "goto":
        match = _GOTO.match(text, mark.start)
        label = rf"\b{match[1]}\s*:(?!:)" if match else r"(?!)"
        return not re.search(label, text[loop.body.start : loop.body.end])
    return mark.kind == "break" and not any(
        statement.start > loop.statement.start and _LEFT_BY_BREAK.match(text, statement.start)
        for statement in unit.syntax.around(unit.file, mark.start)
    )
