"""Finds sequences: adjacent acc loops, reflects, reductions and gmoves, which may become a graph.

What counts as a sequence matters only for speed: the run-time library launches what it recorded before
anything else uses the GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from peerway_xacc.analysis.blocks import items_of
from peerway_xacc.codegen import openacc
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.source import Function, Range, Statement
from peerway_xacc.frontend.tokens import quoted, scan
from peerway_xacc.lowering.c_text import at
from peerway_xacc.lowering.unit import Unit

_LOOPS = ("parallel loop", "kernels loop", "serial loop")
_HOST = ("async", "if", "self", "wait", "reduction")  # the host takes part, or another queue
_DECLARING = (d.Align, d.Shadow, d.StaticDesc)
_VALUE = ("name", "number")
_IN_ARGUMENTS = (*"+-/*%.,&", "->")


@dataclass(frozen=True)
class _Part:
    """A part of a sequence: from its first directive, or its call, to its end."""

    start: int
    end: int
    directive: d.Directive | None  # the last directive; None for a call


def mark(unit: Unit) -> None:
    """Put the calls around each sequence of the file."""
    finder = _Finder(unit)
    for function in unit.syntax.functions:
        if function.file != unit.file:
            continue
        for run in finder.runs(function):
            _wrap(unit, run)


def _wrap(unit: Unit, run: list[_Part]) -> None:
    name = unit.output.new_name("sequence")
    unit.output.top.append(f"static pwx_sequence {name};")
    unit.output.on_gpu = True
    file = quoted(unit.file)
    first, last = unit.text.place(run[0].start), unit.text.place(run[-1].end)
    line = f"\n#line {first.line} {file}\n" if run[0].directive else " "
    unit.output.edits.before(run[0].start, f"pwx_sequence_begin();{line}")
    end = f"pwx_sequence_end(&{name}, {at(first)});"
    if run[-1].directive is not None and run[-1].end == run[-1].directive.end:
        # a _Pragma has other text after it on its line
        rest = unit.text.text[run[-1].end : run[-1].end + 1] not in ("\n", "")
        following = f"{last.line} {file}\n" if rest else f"{last.line + 1} {file}"
        unit.output.edits.next_to(run[-1].end, f"\n{end}\n#line {following}")
    else:
        unit.output.edits.behind(run[-1].end, f" {end}")
    graph = "one launch of a CUDA graph where they come again with the same arguments"
    if not unit.text.is_inserted(run[0].start):
        unit.output.explained.append(
            (first, f"a sequence of {len(run)} parts up to line {last.line}: {graph}")
        )


class _Finder:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.functions = {
            function.name: function for function in unit.syntax.functions if function.file == unit.file
        }
        self.known: dict[str, bool] = {}  # whether a function does only what a sequence may contain
        self.on_gpu = openacc.device_statements(unit)

    def runs(self, function: Function) -> list[list[_Part]]:
        """The sequences in a function, each within one block."""
        runs_ = []
        for block in self._blocks(function):
            run: list[_Part] = []
            for part in self._parts(block):
                if part is not None and run and not scan(self.unit.text.text, run[-1].end, part.start):
                    run.append(part)
                    continue
                runs_.append(run)
                run = [part] if part is not None else []
            runs_.append(run)
        return [run for run in runs_ if len(run) > 1]

    def _blocks(self, function: Function) -> list[Statement]:
        """The blocks of a function that the host executes, the function's own first."""
        blocks = self.unit.syntax.blocks_in(self.unit.file, Range(function.body.start, function.body.end))
        return [
            block
            for block in blocks
            if not any(shared.start <= block.start and block.end <= shared.end for shared in self.on_gpu)
        ]

    def _parts(self, block: Statement) -> list[_Part | None]:
        """The statements of a block, in order; None for one that cannot be part of a sequence."""
        parts: list[_Part | None] = []
        for item in items_of(self.unit, Range(block.start + 1, block.end - 1)):
            statement, directives = item.statement, item.directives
            last = directives[-1] if directives else None
            if statement is not None:
                fits = _launches(statement, directives) if directives else self._calls(statement)
                parts.append(_Part(item.start, statement.end, last) if fits else None)
            elif last is not None and not isinstance(last, _DECLARING):
                parts.append(_Part(last.start, item.end, last) if _communicates(last) else None)
        return parts

    def _calls(self, statement: Statement) -> bool:
        """Is a statement a call, with plain arguments, of a function that consists of parts of sequences?"""
        tokens = scan(self.unit.text.text, statement.start, statement.end)
        texts = [token.text for token in tokens]
        if len(tokens) < 4 or tokens[0].kind != "name" or texts[1] != "(" or texts[-2:] != [")", ";"]:
            return False
        plain = all(token.kind in _VALUE or token.text in _IN_ARGUMENTS for token in tokens[2:-2])
        return plain and self._only_launches(texts[0])

    def _only_launches(self, name: str) -> bool:
        function = self.functions.get(name)
        if function is None or name in self.unit.syntax.constants:
            return False
        if name not in self.known:
            self.known[name] = False  # if it calls itself
            blocks = self._blocks(function)
            parts = self._parts(blocks[0]) if blocks else []
            self.known[name] = bool(parts) and None not in parts
        return self.known[name]


def _communicates(directive: d.Directive) -> bool:
    if isinstance(directive, d.Reflect):
        plain = directive.kind in ("reflect", "reflect_do") and not directive.nowait
        return plain and directive.accelerator and not directive.asynchronous
    return (
        (isinstance(directive, d.Reduction) or _is_collective(directive))
        and directive.accelerator
        and not directive.asynchronous
    )


def _is_collective(directive: d.Directive) -> TypeGuard[d.Gmove]:
    return isinstance(directive, d.Gmove) and directive.mode == "collective"


def _launches(statement: Statement, directives: list[d.Directive]) -> bool:
    """Is this an acc loop whose launch the host need not wait for?"""
    acc = [directive for directive in directives if isinstance(directive, d.Acc)]
    rest = [directive for directive in directives if not isinstance(directive, d.Acc)]
    return (
        statement.kind == "for"
        and len(acc) == 1
        and acc[0].construct in _LOOPS
        and not acc[0].all(*_HOST)
        and all(
            isinstance(directive, d.Loop) and not directive.reduced and not directive.widening
            for directive in rest
        )
    )
