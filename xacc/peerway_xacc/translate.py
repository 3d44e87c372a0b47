"""One source file becomes one generated file: preprocess, parse, map, generate, edit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peerway_xacc.analysis.paths import Communication
from peerway_xacc.analysis.unit import Stack, Unit
from peerway_xacc.codegen import clause_rules, foreign_acc, openacc, sequences
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Diagnostics, Place, Refused
from peerway_xacc.frontend.preprocess import Texts, active
from peerway_xacc.frontend.source import Statement
from peerway_xacc.frontend.syntax import Syntax
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import (
    arrays,
    coarray,
    communication,
    data,
    dataflow,
    declare,
    descriptors,
    gmove,
    initialisers,
    locks,
    loops,
    macros,
    merged,
    reflects,
    template_fix,
)
from peerway_xacc.lowering.sections import hidden, with_some_sizes

_MAPPING: dict[type, Callable[[Unit, Any], None]] = {
    d.Nodes: declare.nodes,
    d.Template: declare.template,
    d.Distribute: declare.distribute,
    d.TemplateFix: declare.template_fix,
    d.Align: declare.align,
    d.Shadow: declare.shadow,
    d.StaticDesc: declare.static_desc,
    d.Coarray: coarray.directive,
}
_COMMUNICATION: dict[type, Callable[[Unit, Any], None]] = {
    d.Reflect: reflects.reflect,
    d.Reduction: communication.reduction,
    d.Bcast: communication.bcast,
    d.Barrier: communication.barrier,
    d.WaitAsync: communication.wait_async,
    d.Gmove: gmove.gmove,
    d.ArrayOn: gmove.array_on,
    d.Post: communication.post,
    d.Lock: locks.lock,
    d.Wait: communication.wait,
}
_OF_HOST = ("data", "host_data", "enter data", "exit data", "update", "wait", "init", "shutdown", "set")
_STACKED: dict[type, Callable[[Unit, Stack, Any], None]] = {
    d.Loop: loops.loop,
    d.Task: loops.task,
    d.Tasks: lambda _unit, _stack, _made: None,
    d.Acc: openacc.compute,
}


@dataclass(frozen=True)
class Translated:
    """The generated text, and for --explain what was generated for each line of the source."""

    text: str
    explained: list[tuple[Place, str]]
    communications: list[tuple[Place, Communication]]
    has_main: bool


class HasErrors(Exception):
    """The program has errors; they are in the Diagnostics."""


def translate(
    file: str, preprocessor: list[str], arguments: list[str], diagnostics: Diagnostics, acc_left: bool = False
) -> Translated:
    """Translate a file. `preprocessor` is the C compiler with its options, `arguments` are libclang's.

    With `acc_left` the directives of acc stay, for an OpenACC compiler.
    """
    texts = Texts()
    unit, described, coarrays, transfers = _read(texts, file, preprocessor, arguments, diagnostics)
    text = macros.expanded(unit, preprocessor) if not diagnostics else None
    if text is not None:
        texts.put(file, text)
        unit, described, coarrays, transfers = _read(texts, file, preprocessor, arguments, diagnostics)
    unit.acc_left = acc_left
    dataflow.find(unit, described)
    unit.runs = reflects.runs_of(unit)
    coarray.generate(unit, coarrays, transfers)
    _executable(unit)
    initialisers.check(unit)
    arrays.generate(unit)
    descriptors.generate(unit, described)
    if not diagnostics:
        _set_up(unit)
    if diagnostics:
        raise HasErrors
    has_main = any(function.name == "main" for function in unit.syntax.functions)
    return Translated(unit.finish(), unit.explained, unit.communications, has_main)


def _read(
    texts: Texts, file: str, preprocessor: list[str], arguments: list[str], diagnostics: Diagnostics
) -> tuple[Unit, list[descriptors.Described], list[coarray.Declared], list[coarray.Transfer]]:
    """Read a file and what its directives declare."""
    try:
        pragmas = active(preprocessor, file, texts)
    except Refused as refused:
        diagnostics.add(refused)
        raise HasErrors from refused
    try:
        text = texts.of(file)
        coarrays, transfers = coarray.find(text)
        described = descriptors.find(text)
        visible = hidden(
            text, pragmas, [*(coarray.mark for coarray in coarrays), *(use.range for use in described)],
            [transfer.statement for transfer in transfers],
        )  # fmt: skip
        for declared in described:
            visible = visible[: declared.range.start] + "0" + visible[declared.range.start + 1 :]
    except Refused as refused:
        diagnostics.add(refused)
        raise HasErrors from refused
    syntax = Syntax(file, visible, arguments, texts)
    unit = Unit(file, texts, syntax, diagnostics)
    unit.parse(pragmas)
    syntax = unit.syntax = _sized(unit, syntax, visible, arguments)
    syntax.errors(diagnostics)
    if diagnostics:
        raise HasErrors
    unit.each(_MAPPING)
    return unit, described, coarrays, transfers


def _sized(unit: Unit, syntax: Syntax, visible: str, arguments: list[str]) -> Syntax:
    """The syntax with arrays of the file whose sizes only the run knows: one that is aligned becomes a
    pointer, so libclang, which knows little of what it refuses, gets it with some size.
    """
    aligned = {
        name.text
        for directive in unit.directives
        if isinstance(directive, d.Align)
        for name in directive.arrays
    }
    places = [place for place in syntax.sized_at_run_time() if unit.text.word(place) in aligned]
    starts = frozenset(unit.text.line_start(place.line) + place.column - 1 for place in places)
    if not starts:
        return syntax
    for start in starts:
        visible = with_some_sizes(visible, start)
    return Syntax(unit.file, visible, arguments, unit.texts, starts)


def _executable(unit: Unit) -> None:  # noqa: C901
    stacks: dict[int, Stack] = {}
    if not unit.acc_left:
        sequences.mark(unit)
    on_gpu = openacc.device_statements(unit)
    for acc_directive in unit.directives_in() if not unit.acc_left else ():
        if isinstance(acc_directive, d.Acc):
            try:
                merged.merge(acc_directive)
            except Refused as refused:
                unit.diagnostics.add(refused)
    for directive in unit.directives:
        try:
            _check_host(unit, on_gpu, directive)
            if _belongs(directive):
                _add(unit, stacks, directive)
            elif isinstance(directive, d.Acc):
                clause_rules.check(unit, directive)
                (foreign_acc if unit.acc_left else data).executable(unit, directive)
            elif type(directive) in _COMMUNICATION:
                if unit.function_of(directive) is None:
                    raise Refused(directive.place, "this directive must be in a function")
                _COMMUNICATION[type(directive)](unit, directive)
        except Refused as refused:
            unit.diagnostics.add(refused)
    _mark(unit, stacks)
    unit.edited = set(stacks)
    for stack in stacks.values():
        for directive in stack.directives:
            do = _STACKED.get(type(directive))
            try:
                if do:
                    do(unit, stack, directive)
            except Refused as refused:
                unit.diagnostics.add(refused)
    for generate in unit.kernels:
        try:
            generate()
        except Refused as refused:
            unit.diagnostics.add(refused)
    for stack in stacks.values():
        _emit(unit, stack)


def _check_host(unit: Unit, on_gpu: list[Statement], directive: d.Directive) -> None:
    """What only the host can do stands in no statement that a GPU executes, and in a function."""
    acc_of_host = isinstance(directive, d.Acc) and directive.construct in _OF_HOST
    if acc_of_host and directive.file == unit.file and unit.function_of(directive) is None:
        raise Refused(directive.place, "this directive must be in a function")
    host = acc_of_host or type(directive) in _COMMUNICATION or isinstance(directive, d.Task | d.Tasks)
    around = (
        [construct for construct in on_gpu if construct.start <= directive.start < construct.end]
        if directive.file == unit.file
        else []
    )
    if host and around:
        note = (unit.text.place(around[0].start), "the statement begins here")
        advice = "move it out of the statement that the GPU executes"
        raise Refused(directive.place, f"{_spelled(unit, directive)} runs on the host; {advice}", note)


def _spelled(unit: Unit, directive: d.Directive) -> str:
    """How the program names a directive of its own file: `xmp reflect`, `acc enter data`."""
    if isinstance(directive, d.Acc):
        return f"acc {directive.construct}"
    at = unit.text.line_start(directive.place.line) + directive.place.column - 1
    return f"xmp {unit.text.text[at : at + directive.place.length]}"


def _belongs(directive: d.Directive) -> bool:
    """Does a directive belong to the statement that follows?"""
    if isinstance(directive, d.Acc):
        return directive.construct in openacc.STATEMENT
    return isinstance(directive, d.Loop | d.Task | d.Tasks | d.Omp)


def _add(unit: Unit, stacks: dict[int, Stack], directive: d.Directive) -> None:
    function = unit.function_of(directive)
    if directive.file != unit.file:
        if isinstance(directive, d.Omp):
            return
        raise Refused(
            directive.place, "this directive in a header is not supported yet; put it into the source file"
        )
    if function is None:
        if isinstance(directive, d.Omp):
            return
        raise Refused(directive.place, "this directive must be in a function")
    statement = unit.syntax.statement_after(directive.file, directive.end, function)
    block = unit.syntax.enclosing_block(directive.file, directive.start)
    if statement is None or (block and statement.start >= block.end):
        if isinstance(directive, d.Omp):
            return
        raise Refused(directive.place, "expected a statement behind this directive")
    stacks.setdefault(statement.start, Stack(statement, function)).directives.append(directive)


def _mark(unit: Unit, stacks: dict[int, Stack]) -> None:
    """Before statements that write distributed arrays beside all constructs; directives stay with theirs."""
    directives = {directive.start for directive in unit.directives_in()}
    for start, arrays_ in unit.written.statements.items():
        text = " ".join(f"pwx_written({array.address});" for array in arrays_)
        at = stacks[start].directives[0].start if start in stacks else start
        if at in directives:
            text += f"\n#line {unit.text.place(at).line} {quoted(unit.file)}\n"
        unit.edits.before(at, text if at in directives else f"{text} ")


def _emit(unit: Unit, stack: Stack) -> None:
    """All that stands before a statement comes in the place of its last directive; OpenMP's own stay last."""
    if all(isinstance(directive, d.Omp) for directive in stack.directives):
        return
    own = []
    for directive in stack.directives:
        if isinstance(directive, d.Omp):
            own.append(directive.text)
            newlines = unit.text.text.count("\n", directive.start, directive.end)
            if directive is not stack.directives[-1]:
                unit.edits.replace(directive.start, directive.end, "\n" * newlines)
    lines = [*stack.before, *own, *stack.last]
    unit.edits.directive(stack.directives[-1].start, stack.directives[-1].end, lines)
    unit.placed.add(stack.directives[-1].start)


def _set_up(unit: Unit) -> None:
    """The descriptors before the first declaration, and behind the text the function that fills them."""
    start = unit.syntax.first_declaration(unit.file)
    for directive in unit.directives:
        if directive.file == unit.file and not isinstance(directive, d.Omp):
            start = min(start, directive.start)
            break
    start = unit.text.text.rfind("\n", 0, start) + 1
    line = unit.text.place(start).line
    here = f"#define PWX_HERE(line) &(const pwx_where){{{quoted(unit.file)}, line}}"
    headers = ["loops.h", "acc.h"] if unit.on_gpu else ["loops.h"]
    includes = [f"#include <peerway/xacc/{name}>" for name in headers]
    if unit.acc_left:
        routines = '#define PWX_ROUTINE _Pragma("acc routine seq")'
        includes = [routines, *includes, "#include <peerway/xacc/outside.h>", "#include <openacc.h>"]
    top = [*includes, here, *unit.top]
    unit.edits.before(start, "\n".join(top) + f"\n#line {line} {quoted(unit.file)}\n")
    hooks = template_fix.set_up(unit)
    unit.setup += unit.setup_last
    if unit.setup or unit.kernel_names or unit.one_sided or unit.has_zero:
        kernels = ", ".join(f"&{name}" for name in unit.kernel_names)
        listed = f"static pwx_kernel *const pwx__kernels[] = {{{kernels}, 0}};"
        add = ("pwx_gmove_one_sided(); " if unit.one_sided else "") + "pwx_unit_add(&pwx__unit);"
        add = ("pwx_data_zero(); " if unit.has_zero else "") + add
        unit.ending = "\n".join([
            *hooks, "", "static void pwx__set_up(void) {", *("  " + line for line in unit.setup), "}",
            *([listed] if kernels else []),
            f"static pwx_unit pwx__unit = {{pwx__set_up, 0, {'pwx__kernels' if kernels else '0'}}};",
            f"__attribute__((constructor)) static void pwx__add(void) {{ {add} }}", "",
        ])  # fmt: skip
