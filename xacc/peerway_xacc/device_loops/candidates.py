"""Finds the loops of the host that may run on the GPU: those that compute on it."""

from __future__ import annotations

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Function, Range, Statement
from peerway_xacc.frontend.tokens import scan


def loops_of(unit: Mapped, function: Function) -> list[Statement]:
    """The loops of a function, outer ones first."""
    if function.file != unit.file:
        return []
    return [
        statement for statement in unit.syntax.statements_in(function)
        if statement.kind == "for" or _first_word(unit, statement) == "while"
    ]  # fmt: skip


def _first_word(unit: Mapped, statement: Statement) -> str:
    spans = scan(unit.text.text, statement.start, min(statement.end, statement.start + 10))
    return spans[0].text if spans else ""


def may_compute(unit: Mapped, function: Function, inside: Range, seen: set[str]) -> bool:
    """Does a range have a loop of acc, itself or in a function of the file that it calls?"""
    if any(isinstance(directive, d.Acc) and directive.construct.endswith(" loop")
           for directive in unit.directives_in(inside)):  # fmt: skip
        return True
    names = {
        mark.name for mark in function.marks
        if mark.kind == "call" and inside.start <= mark.start < inside.end and mark.name not in seen
    }  # fmt: skip
    seen |= names
    return any(
        may_compute(unit, called, called.body, seen)
        for called in unit.syntax.functions if called.name in names and called.file == unit.file
    )  # fmt: skip


def has_directives(unit: Mapped, statement: Statement) -> bool:
    """Do directives belong to a loop, or is it in a loop or a task of xmp?"""
    for directive in unit.directives_in():
        function = unit.function_of(directive)
        if not isinstance(directive, d.Acc | d.Loop | d.Task | d.Tasks | d.Omp) or function is None:
            continue
        of = unit.syntax.statement_after(directive.file, directive.end, function)
        if of is None or not of.start <= statement.start < of.end:
            continue
        if of.start == statement.start or not isinstance(directive, d.Acc):
            return True
    return False
