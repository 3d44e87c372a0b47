"""Collects what a kernel needs before its text: the types, macros and functions that it names."""

from __future__ import annotations

import re
from itertools import pairwise

from peerway_xacc.codegen import mathematics
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.frontend.source import Function, Range, Variable, used_in
from peerway_xacc.frontend.tokens import quoted, scan
from peerway_xacc.lowering.unit import Unit

# The prelude or CUDA C++ defines these, in place of macros of C's headers.
_KNOWN = {
    "complex",
    "I",
    "_Complex_I",
    "NULL",
    "INFINITY",
    "NAN",
    "HUGE_VAL",
    "bool",
    "true",
    "false",
    "offsetof",
    "assert",
    "restrict",
}
_HEAD = """#define restrict __restrict__
#define _Bool bool
#define NULL nullptr
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fc00000)
"""


class Unsupported(Exception):
    """No kernel can be generated for a loop, so it runs on CPUs. `place` is what the reason is about."""

    def __init__(self, why: str, place: Place | None = None) -> None:
        super().__init__(why)
        self.place = place


def around(unit: Unit, body: str, of: Function, inside: Range) -> str:
    """The declarations that a kernel needs before it; `body` is a range of the function `of`."""
    wanted = _words(body)
    functions = _functions(unit, _named(unit, body, of, inside))
    texts = {id(function): _text_of(unit, function) for function in functions}
    tables = _tables(unit, functions)
    for text in [*texts.values(), *tables]:
        wanted |= _words(text)
    macros, types = _macros_and_types(unit, wanted)
    prototypes = [_prototype(texts[id(function)]) for function in functions]
    lines = [*mathematics.of_c(unit, wanted), *macros, *types, *tables, *prototypes, *texts.values()]
    return _HEAD + "".join(f"{line}\n" for line in lines)


_COMPLEX = re.compile(r"\b(?:(float|double)\s+(?:_Complex|complex)|(?:_Complex|complex)\s+(float|double))\b")


def in_device_code(unit: Unit, text: str) -> str:
    """Turn C text into C++ for a GPU: complex numbers become a class with the same layout in memory."""
    if "I" in unit.texts.defines and "_Complex_I" in unit.texts.defines and "I" in _words(text):
        text = f"#define I _Complex_I\n{text}"
    return _literals(_COMPLEX.sub(lambda match: f"pwx_complex<{match[1] or match[2]}>", text))


_MACRO_HEAD = re.compile(r"#[ \t]*define[ \t]+\w+(?:\([^)\n]*\))?[ \t]*\Z")


def _literals(text: str) -> str:
    """Replace compound literals of structs, `(pair){1, 2}`, which C++ does not have."""
    spans = scan(text)
    edits: list[tuple[int, int, str]] = []
    for number, span in enumerate(spans):
        before = spans[number - 1] if number else span
        called = before.text in (")", "]") or (before.kind == "name" and before.text != "return")
        if span.text != "(" or (called and not _MACRO_HEAD.search(text, 0, span.start)):
            continue
        at = number + 1
        while at < len(spans) and spans[at].kind == "name":
            at += 1
        if at == number + 1 or [literal.text for literal in spans[at : at + 2]] != [")", "{"]:
            continue
        depth = 0
        for end in range(at + 1, len(spans)):
            depth += (spans[end].text == "{") - (spans[end].text == "}")
            if depth == 0:
                name = text[spans[number + 1].start : spans[at - 1].end]
                edits.append((span.start, spans[at + 1].start, f"pwx_literal<{name}>("))
                edits.append((spans[end].end, spans[end].end, ")"))
                break
    for start, stop, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[stop:]
    return text


def _words(text: str) -> set[str]:
    return {span.text for span in scan(text) if span.kind == "name"}


def _named(unit: Unit, text: str, of: Function, inside: Range) -> set[str]:
    """The names in a text that may be functions: no members, and a variable only if its name is called."""
    spans = scan(text)
    words = {
        span.text
        for before, span in pairwise([spans[0], *spans] if spans else [])
        if span.kind == "name" and before.text not in (".", "->")
    }
    variables = {use.variable.name for use in used_in(of.uses, inside)}
    variables |= {variable.name for variable, function in unit.syntax.locals if function is of}
    called = {mark.name for mark in of.marks if inside.start <= mark.start < inside.end}
    return words - (variables - called)


def _functions(unit: Unit, wanted: set[str]) -> list[Function]:
    """The program's functions that are named, and those that these name, in the order of the text."""
    known = {function.name: function for function in unit.syntax.functions}
    functions: dict[str, Function] = {}
    expanded = _expansions(unit, wanted)
    open_names = sorted((wanted | expanded) & set(known))
    while open_names:
        name = open_names.pop()
        if name in functions:
            continue
        function = known[name]
        _check(unit, function)
        functions[name] = function
        text = unit.texts.of(function.file).text[function.body.start : function.body.end]
        inside = _named(unit, text, function, function.body)
        open_names += sorted((inside | _expansions(unit, inside)) & set(known))
    return sorted(
        functions.values(),
        key=lambda function: (function.file == unit.file, function.file, function.whole.start),
    )


def _check(unit: Unit, function: Function) -> None:
    for use in function.uses:
        variable = use.variable
        place = unit.texts.of(function.file).place(use.range.start, use.range.end)
        subject = f"{function.name}, which it calls,"
        if unit.scopes.of_variable(variable):
            raise Unsupported(f"{subject} uses the distributed array {variable.name}", place)
        if variable.file_scope and not _is_table(variable):
            why = "a variable of the file that is not const with a value; pass it as an argument"
            raise Unsupported(f"{subject} uses {variable.name}, {why}", place)
        if not variable.file_scope and variable.static:
            raise Unsupported(f"{subject} has the static variable {variable.name}", place)


def _is_table(variable: Variable) -> bool:
    """Is this a constant at file scope, which device code can have, too?"""
    return variable.constant and variable.initialised and variable.pointee is None and not variable.external


def _tables(unit: Unit, functions: list[Function]) -> list[str]:
    """The file-scope constants that functions use, with their values; one that others need comes first."""
    waiting = [use.variable for function in functions for use in function.uses if use.variable.file_scope]
    tables: dict[str, tuple[int, str]] = {}
    while waiting:
        variable = waiting.pop()
        if variable.name in tables or not _is_table(variable):
            continue
        text = unit.texts.of(variable.file).text
        start, end = variable.declarator.start, variable.declarator.end
        sizes = "".join(f"[{size}]" for size in variable.sizes)
        value = text[text.index("=", start) : end]
        line = f"static __device__ const {variable.spelling} {variable.name}{sizes} {value};"
        tables[variable.name] = start, line
        for name in _words(value):
            waiting += unit.syntax.globals.get(name, [])
    return [line for _, line in sorted(tables.values())]


def _text_of(unit: Unit, function: Function) -> str:
    """A function's definition as device code, without its directives."""
    text = unit.texts.of(function.file)
    edits = Edits(text)
    blank_directives(unit, edits, function.whole)
    whole = edits.part(function.whole.start, function.whole.end)
    brace = function.body.start - function.whole.start
    head = re.sub(r"\b(static|extern|inline|__inline__|__inline)\b", "", whole[:brace])
    line = text.place(function.whole.start).line
    return f"#line {line} {quoted(function.file)}\nstatic __device__ {head.strip()} {whole[brace:]}"


def _prototype(text: str) -> str:
    head = text[text.index("\n") + 1 :]
    return head[: head.index("{")].strip() + ";"


def blank_directives(unit: Unit, edits: Edits, inside: Range) -> None:
    """Remove the directives in a range of the edited file; other lines stay where they are."""
    source = edits.source
    for directive in unit.directives_in(inside, source.file):
        newlines = source.text.count("\n", directive.start, directive.end)
        edits.replace(directive.start, directive.end, "\n" * newlines)


def _expansions(unit: Unit, names: set[str]) -> set[str]:
    """All names in the expansions of macros with these names."""
    defines = unit.texts.defines
    expanded: set[str] = set()
    waiting = [name for name in names if name in defines and not _is_generic(defines[name])]
    while waiting:
        for word in _words(defines[waiting.pop()].split(None, 1)[1]):
            if word not in expanded:
                expanded.add(word)
                if word in defines:
                    waiting.append(word)
    if any("##" in defines[name] for name in expanded | names if name in defines):
        expanded |= unit.texts.own_macros  # ## may form any of them
    return expanded


def _is_generic(define: str) -> bool:
    """Is this a macro of tgmath.h? C++ has overloaded functions instead."""
    return "__TGMATH" in define


def expands_to_variables(unit: Unit, text: str, offset: int) -> bool:
    """Does an expression, after expansion of its macros, name variables, functions or enum constants?"""
    names = _words(text)
    return any(
        unit.syntax.variable(name, unit.file, offset) is not None
        or name in unit.syntax.functions_known
        or name in unit.syntax.constants
        for name in names | _expansions(unit, names)
    )


def _macros_and_types(unit: Unit, wanted: set[str]) -> tuple[list[str], list[str]]:
    """The #defines and type declarations that these names need, in the order of the program."""
    names = wanted | _expansions(unit, wanted)
    chosen: dict[int, str] = {}
    growing = True
    while growing:
        growing = False
        for number, declared in enumerate(unit.syntax.types):
            if number not in chosen and declared.names & names:
                text = unit.texts.of(declared.file).text[declared.range.start : declared.range.end]
                chosen[number] = text + ";"
                more = _words(text)
                names |= more | _expansions(unit, more)
                growing = True
    macros = [
        unit.texts.defines[name]
        for name in sorted(names & set(unit.texts.defines))
        if name not in _KNOWN and not _is_generic(unit.texts.defines[name])
    ]
    return macros, [chosen[number] for number in sorted(chosen)]
