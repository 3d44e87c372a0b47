"""Leaves acc directives to another OpenACC compiler, and adds what it must know of distributed arrays.

That compiler sees an array's memory as a plain section, and constructs use the array by its device address.
All other text of a directive stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.codegen.argument_forms import cycles_of
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend import grammar_acc
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, used_in
from peerway_xacc.frontend.tokens import Token, joined
from peerway_xacc.lowering import data_clauses
from peerway_xacc.lowering.shapes import has_whole_rows
from peerway_xacc.lowering.subscripts import bases_of
from peerway_xacc.lowering.table import HasStatement, Lowering, StandsAlone
from peerway_xacc.lowering.unit import Unit

_COMPUTE = ("parallel", "kernels", "serial")


def passed_on(table: Mapping[str, Lowering]) -> dict[str, Lowering]:
    """A table of directives with the entries for directives that are left to another compiler."""
    return {spelling: _passed_on(spelling, lowering) for spelling, lowering in table.items()}


def _passed_on(spelling: str, lowering: Lowering) -> Lowering:
    if not spelling.startswith("acc "):
        return lowering
    match lowering:
        case StandsAlone():
            return replace(lowering, lower=_declare if spelling == "acc declare" else _alone)
        case HasStatement():
            return replace(lowering, lower=_WITH_DATA.get(spelling, _compute))
    return lowering


def _alone(unit: Unit, directive: d.Acc) -> None:
    """Lower a directive without a statement."""
    arrays = _named(unit, directive)
    if not arrays:
        unit.put(directive, [_raw(unit, directive)])
        return
    for section in directive.named("self", "host", "device"):
        if section.parts and section.name.text in _names(arrays):
            name = section.name
            raise Refused(
                name.place,
                f"update of a section of distributed array '{name.text}' is not supported with another "
                f"OpenACC compiler; name all of '{name.text}'",
            )
    opened = " ".join(_opened(array) for array, _ in arrays)
    text = _without(directive, _names(arrays))
    text += "".join(f" {kind}({_section(array)})" for array, kind in arrays)
    unit.put(directive, [f"{{ {opened}", text, "}"])
    unit.explain(
        directive, f"acc {directive.construct}: left to the compiler, with the memory of {_list(arrays)}"
    )


def _declare(unit: Unit, directive: d.Acc) -> None:
    arrays = _named(unit, directive)
    if not arrays:
        unit.put(directive, [_raw(unit, directive)])
        return
    if unit.function_of(directive) is not None:
        raise Refused(directive.place, "acc declare of a distributed array must be outside functions")
    for array, kind in arrays:
        if kind != "present":
            unit.output.setup_last += [
                "{ " + _opened(array),
                f"#pragma acc enter data {_entered(kind)}({_section(array)})",
                "}",
            ]
    unit.put(directive, [_without(directive, _names(arrays))])


def _entered(kind: str) -> str:
    return kind.removeprefix("present_or_").removeprefix("p") if kind != "present" else kind


def _compute(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    """Lower a directive with a statement."""
    arrays = _named(unit, directive)
    if directive.construct.split()[0] in _COMPUTE:
        _region(unit, annotated, directive, arrays)
    else:
        annotated.last.append(_raw(unit, directive))


def _data(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    arrays = _named(unit, directive)
    if not arrays:
        annotated.before.append(_raw(unit, directive))
        return
    annotated.before.append("{ " + " ".join(_opened(array) for array, _ in arrays))
    unit.output.edits.behind(annotated.statement.end, " }")
    text = _without(directive, _names(arrays))
    text += "".join(f" {kind}({_section(array)})" for array, kind in arrays)
    annotated.before.append(text)
    unit.explain(directive, f"acc data: left to the compiler, with the memory of {_list(arrays)}")


def _region(
    unit: Unit, annotated: AnnotatedStatement, directive: d.Acc, arrays: list[tuple[DistributedArray, str]]
) -> None:
    """Lower a compute construct. Arrays without a clause are copied, as OpenACC specifies."""
    inside = Range(annotated.statement.start, annotated.statement.end)
    named = [array for array, _ in arrays]
    for use in used_in(annotated.function.uses, inside):
        array = unit.scopes.of_variable(use.variable)
        if array and array not in named and not use.in_sizeof:
            named.append(array)
            arrays.append((array, "copy"))
    if not arrays:
        annotated.last.append(_raw(unit, directive))
        return
    unused = "__attribute__((unused))"
    shifts = [
        f"{unused} {text}"
        for distributed, _ in arrays
        for _, text in (*cycles_of(distributed), *bases_of(distributed))
    ]
    unit.compute.foreign.append(inside)
    clauses = " ".join(f"{kind}({_section(array)})" for array, kind in arrays if kind != "deviceptr")
    conditions = [clause.expression for clause in directive.all("if") if clause.expression]
    when = f"({conditions[0].text}) ? " if conditions else ""
    annotated.before += [
        " ".join(["{", *(_opened(array) for array, _ in arrays), *shifts]),
        f"#pragma acc data {clauses}", "{",
    ]  # fmt: skip
    for array, _ in arrays:
        name = array.symbol
        otherwise = f" : (void *){name}" if when else ""
        annotated.before.append(
            f"__typeof__({name}) {name}__q = {when}pwx_moved({array.address}, {name}, "
            f"acc_deviceptr({name}__b)){otherwise}; {{ __typeof__({name}__q) {name} = {name}__q;"
        )
        unit.subscripts.needed.append((array, directive.start))
    annotated.last.append(
        f"{_without(directive, _names(arrays))} deviceptr({', '.join(array.symbol for array, _ in arrays)})"
    )
    wait = ""
    if directive.all("async") and any(kind != "present" for _, kind in arrays):
        queue = directive.all("async")[0].arguments
        wait = f"\n#pragma acc wait{f'({queue[0].text})' if queue else ''}\n"
    unit.output.edits.behind(annotated.statement.end, f"{' }' * len(arrays)}{wait} }} }}")
    unit.explain(
        directive,
        f"acc {directive.construct}: left to the compiler, with device addresses of {_list(arrays)}",
    )


def _host_data(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc) -> None:
    arrays = _named(unit, directive)
    for array, _ in arrays:
        name = array.symbol
        annotated.before.append(
            f"{{ {_opened(array)} __typeof__({name}) {name}__q = pwx_moved({array.address}, {name}, "
            f"acc_deviceptr({name}__b)); {{ __typeof__({name}__q) {name} = {name}__q;"
        )
        unit.subscripts.needed.append((array, directive.start))
    unit.output.edits.behind(annotated.statement.end, " } }" * len(arrays))
    if len(arrays) < len(directive.named_variables("use_device")):
        annotated.last.append(_without(directive, _names(arrays)))


def _named(unit: Unit, directive: d.Acc) -> list[tuple[DistributedArray, str]]:
    """The distributed arrays in data clauses, each with its clause, without private ones."""
    own = {name.text for name in directive.named_variables("private", "firstprivate")}
    arrays: list[tuple[DistributedArray, str]] = []
    for clause in directive.clauses:
        if clause.name in ("private", "firstprivate", "reduction", "cache"):
            continue
        for section in clause.sections:
            variable = unit.syntax.variable(section.name.text, directive.file, directive.start)
            array = unit.scopes.of_variable(variable) if variable else None
            if array and section.name.text not in own and array not in [known for known, _ in arrays]:
                if variable and variable.pointee is not None and (variable.base or not has_whole_rows(array)):
                    position = "in a struct" if variable.base else "to a distributed dimension"
                    message = f"'{array.name}' is a pointer {position}"
                    raise Refused(
                        section.name.place, f"{message}, which is not supported with another OpenACC compiler"
                    )
                arrays.append((array, clause.name))
    return arrays


def _names(arrays: list[tuple[DistributedArray, str]]) -> list[str]:
    return [array.name for array, _ in arrays]


def _list(arrays: list[tuple[DistributedArray, str]]) -> str:
    return ", ".join(_names(arrays))


def _opened(array: DistributedArray) -> str:
    """The memory of an array as a plain pointer, which data clauses can name."""
    return (
        f"__attribute__((unused)) char *const {array.symbol}__b = pwx_memory({array.address}); "
        f"__attribute__((unused)) const size_t {array.symbol}__n = pwx_memory_bytes({array.address});"
    )


def _section(array: DistributedArray) -> str:
    return f"{array.symbol}__b[0:{array.symbol}__n]"


def _raw(unit: Unit, directive: d.Acc) -> str:
    """The directive as written, but a name in a private and a data clause leaves the data clause."""
    own = {name.text for name in directive.named_variables("private", "firstprivate")}
    twice = own & {name.text for kind in data_clauses.KINDS for name in directive.named_variables(kind)}
    written = unit.text.text[directive.start : directive.end].strip()
    return written if written.startswith("#") and not twice else _without(directive, sorted(twice))


def _without(directive: d.Acc, names: list[str]) -> str:
    """The text of a directive, with these variables removed from its data clauses."""
    tokens = list(directive.tokens)
    out: list[Token] = []
    at = 0
    while at < len(tokens):
        word = tokens[at]
        lists = word.text.lower() in (*grammar_acc.DATA, "use_device", "host", "self", "device", "update")
        if not lists or at + 1 == len(tokens) or tokens[at + 1].text != "(" or at == 0:
            out.append(word)
            at += 1
            continue
        end = _closing(tokens, at + 1)
        kept = [item for item in _items(tokens[at + 2 : end]) if item[0].text not in names]
        if kept:
            out += [word, tokens[at + 1]]
            for number, item in enumerate(kept):
                out += ([Token("mark", ",", word.place)] if number else []) + item
            out.append(tokens[end])
        at = end + 1
    return f"#pragma acc {joined([token.text for token in out])}"


def _closing(tokens: list[Token], opening: int) -> int:
    depth = 0
    for number in range(opening, len(tokens)):
        depth += (tokens[number].text in "([") - (tokens[number].text in ")]")
        if depth == 0:
            return number
    raise AssertionError("the parser checked that brackets are closed")


def _items(tokens: list[Token]) -> list[list[Token]]:
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.text in "([") - (token.text in ")]")
        if token.text == "," and depth == 0:
            items.append([])
        else:
            items[-1].append(token)
    return [item for item in items if item]


_WITH_DATA = {"acc data": _data, "acc host_data": _host_data}
