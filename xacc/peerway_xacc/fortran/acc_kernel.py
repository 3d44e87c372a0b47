"""One construct of acc: a function of C with its statements, and the call of it in the Fortran."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from peerway_xacc.fortran.acc_clauses import AccClause, AccDirective
from peerway_xacc.fortran.acc_pragmas import COPIED, Heads, data_of, values_of
from peerway_xacc.fortran.blocks import Assign, Loop, Node, walk
from peerway_xacc.fortran.do_loops import Do
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.kernel_code import KernelCode, Written, note_changes
from peerway_xacc.fortran.kernel_functions import Procedures
from peerway_xacc.fortran.kernel_names import KernelNames
from peerway_xacc.fortran.placement import placed
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.types import Types
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend.diagnostics import Refused

_SPAN = re.compile(r"(pwx_s\d+_\d+)\((\d+)\)")


@dataclass
class Acc:
    """The directives of OpenACC of a file, and the C that is made of them."""

    unit: FortranUnit
    types: Types
    directives: dict[int, AccDirective] = field(default_factory=dict)  # by the number of the line
    written: Written = field(default_factory=Written)
    done: set[int] = field(default_factory=set)
    functions: set[str] = field(default_factory=set)  # those that are written already

    @property
    def c_text(self) -> str:
        """The file of C; empty without constructs."""
        return in_lines(self.written.pieces) if self.written.pieces else ""


def kernel(
    acc: Acc, directive: AccDirective, scope: Scope, clauses: list[AccClause], nodes: list[Node], first: int,
    last: int,
) -> None:  # fmt: skip
    """Write the function of C of a construct, and call it behind the statements that it replaces."""
    unit = acc.unit
    acc.done.update(range(first, last + 1))
    line = directive.place.line
    if directive.place.file != unit.file:
        raise Refused(directive.place, "acc directives in an included file make no kernels yet")
    names = KernelNames(unit, scope, acc.types, Procedures(unit))
    note_changes(names, nodes)
    _mark_parallel(names, directive, nodes)
    for clause in clauses:
        for item in clause.items if clause.name in ("private", "firstprivate") else ():
            if names.is_array(item.word):
                names.own_array(item.word)
    taken = {
        item.word.text for clause in clauses if clause.name in ("reduction", "firstprivate", *COPIED)
        for item in clause.items
    }  # fmt: skip
    own = placed(nodes, taken | _atomics(nodes))
    names.local |= {name for inner in own.values() for name in inner}
    head = Heads(names, directive, clauses, own, _shared(names, clauses, nodes))
    code = KernelCode(names, lambda do: _span(unit, do), head.pragma, own)
    if directive.construct.endswith("loop"):
        code.nodes(nodes)
    else:
        code.out.put(line, f"#pragma acc {directive.construct} {head.clauses(clauses, None)} PW_DATA")
        code.out.put(line, "{")
        code.nodes(nodes)
        code.out.put(line, "}")
    _emit(acc, directive, names, code, head, first, last)


def _atomics(nodes: list[Node]) -> set[str]:
    return {node.target[0].text for node in walk(nodes) if isinstance(node, Assign) and node.atomic}


def _shared(names: KernelNames, clauses: list[AccClause], nodes: list[Node]) -> set[str]:
    """The scalars that change and are in clauses of data or in atomic statements."""
    named = {item.word.text for clause in clauses if clause.name in COPIED for item in clause.items}
    return (named | _atomics(nodes)) & names.assigned


def _mark_parallel(names: KernelNames, directive: AccDirective, nodes: list[Node]) -> None:
    """Which loops run in parallel, as `peerway cc` decides it."""
    kernels = directive.construct.startswith("kernels")
    for node in walk(nodes):
        if not isinstance(node, Loop) or node.acc is None:
            continue
        if directive.construct.startswith("serial") or node.acc.all("seq"):
            continue
        if (kernels or node.acc.all("auto")) and not node.acc.all("independent"):
            continue
        at: Loop | None = node
        for _ in range(_collapse(names, node.acc)):
            if at is None:
                raise Refused(node.acc.place, "collapse names more loops than are nested directly")
            at.parallel = True
            inner = at.body[0] if len(at.body) == 1 else None
            at = inner if isinstance(inner, Loop) and inner.do else None


def _collapse(names: KernelNames, directive: AccDirective) -> int:
    for clause in directive.all("collapse"):
        value = names.types.integer(names.scope, " ".join(word.text for word in clause.words or ()))
        if value is None or value < 1:
            raise Refused(clause.word.place, "collapse needs a number of loops")
        return value
    return 1


def _span(unit: FortranUnit, do: Do) -> tuple[str, str, str, str] | None:
    number = do.statement.number
    texts = [unit.generated.edited(number, words[0].start, words[-1].end) for words in (do.first, do.last)]
    spans = [_SPAN.search(text) for text in texts]
    if spans[0] is None or spans[1] is None:
        return None
    return texts[0], texts[1], spans[0][0].split(":")[0], spans[1][0]


def _emit(
    acc: Acc, directive: AccDirective, names: KernelNames, code: KernelCode, head: Heads, first: int,
    last: int,
) -> None:  # fmt: skip
    unit = acc.unit
    line = directive.place.line
    data = data_of(names, head, acc.directives)
    name = unit.name("kernel")
    parameters = ["const long* pwv", *(f"void* pwc{number}" for number in range(len(names.passed)))]
    unused = "".join(f" (void)pwc{number};" for number in range(len(names.passed)))
    start = f"void {name}({', '.join(parameters)}) {{ (void)pwv;{unused} {' '.join(names.declared)}"
    for definition in names.types.derived.definitions:
        if definition not in acc.functions:
            acc.functions.add(definition)
            acc.written.put(line - 1, definition)
    for function in names.functions.values():
        if function not in acc.functions:
            acc.functions.add(function)
            acc.written.put(line - 1, function)
    acc.written.put(line - 1, f"void {name}({', '.join(parameters)}); {start}")
    for at, text in code.out.pieces:
        acc.written.put(at, text.replace(" PW_DATA", f" {data}").rstrip() if text.startswith("#") else text)
    end = code.out.pieces[-1][0]
    for clause in head.all_clauses if names.ending else ():
        if clause.name == "async":  # what the function gives back lives in it
            queue = f"({', '.join(values_of(names, clause))})" if clause.words else ""
            acc.written.put(end, f"#pragma acc wait{queue}")
    acc.written.put(end, f"{' '.join(names.ending)} }}")
    call = Call(
        name, [], list(names.values.texts), [("typed", text) for _, _, text in names.passed],
        types=[f"{kind.interface} :: c{{}}{dimensions}" for kind, dimensions, _ in names.passed],
    )  # fmt: skip
    scope = names.scope
    unit.generated.interfaces.setdefault(scope.number, []).extend(call.interface())
    for number in range(first, last + 1):
        if number in unit.structure.by_number:
            unit.generated.remove(number)
            if number in unit.margins:
                unit.generated.forget_behind(number)
    lines = [f"call {call.text()}"]
    for local in sorted({*names.local, *names.own_arrays}):
        declared = unit.fortran.entity(local, scope)
        if declared and declared[0] is scope:  # so that the compiler does not call it unused
            derived = declared[1].type_text and names.types.of(*declared, directive.place).base == "type"
            lines.insert(0, f"if (.false.) {local} = {local if derived else 0}")
    unit.generated.behind(last, *lines)
    explained = next(item for item in unit.directives if unit.number_of(item) == directive.number)
    unit.explain(explained, f"acc {directive.construct}: the function {name} of C")


def in_lines(pieces: list[tuple[int, str]]) -> str:
    """Texts in the lines that they belong to, as far as directives, which need their own lines, let them."""
    lines = ["#include <peerway/xacc/fortran_kernels.h>", ""]
    for at, text in pieces:
        while len(lines) < at:
            lines.append("")
        if text.startswith("#"):
            if lines[-1]:
                lines.append("")
            lines[-1] = text
            lines.append("")
        else:
            lines[-1] = f"{lines[-1]} {text}".strip()
    return "\n".join([*lines, ""])
