"""Where scopes begin and end: the calls that set up what they declare, and those that end it."""

from __future__ import annotations

import re

from peerway_xacc.analysis.mapping import DistributedArray, TemplateOf
from peerway_xacc.fortran import arrays
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit, linkage
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.lowering.c_text import at

_SIZES = re.compile(r"\bpwf_sizes_(\w+)")
MAPPING = (d.Nodes, d.Template, d.Distribute, d.Align, d.Shadow, d.StaticDesc)


def call_of(
    unit: FortranUnit, kind: str, lines: list[str], arguments: Arguments, directive: d.Directive
) -> Call:
    """A function of C with these lines, and with the arrays of sizes that they name."""
    call = Call(unit.name(kind), [], arguments.texts)
    names = sorted({name for line in lines for name in _SIZES.findall(line)})
    for name in names:
        call.lines.append(
            f"const int* const pwf_sizes_{name} = pwx_f_sizes(c{len(call.others)}, 0, {at(directive.place)});"
        )
        call.others.append(("any", name))
    call.lines += lines
    return call


def set_up(unit: FortranUnit) -> None:
    """Set up what each scope declares, when all of the file is lowered."""
    for scope in unit.structure.scopes:
        with unit.diagnostics.collecting():
            _scope(unit, scope)
    arrays.declare_pointers(unit)


def _scope(unit: FortranUnit, scope: Scope) -> None:
    directives: list[d.Directive] = [
        directive for directive in unit.directives
        if isinstance(directive, MAPPING) and unit.scope_of(directive) is scope
    ]  # fmt: skip
    for statement in scope.statements:
        if directives and statement.first == "entry":
            raise Refused(statement.words[0].place, "a procedure with a mapping can have no ENTRY")
    mine = unit.fortran_scopes.arrays_of(scope)
    making, attached, bound = _arrays(unit, scope, mine)
    if scope.foreign:
        return
    c_lines = [*(line for directive in directives for line in unit.output_lines(directive)), *making]
    calls = _calls(unit, scope, c_lines, directives)
    lines = [*unit.pointing.get(scope.number, [])]
    lines += [unit.generated.call(scope, call) for call in [*calls, *bound]]
    for array in attached:
        lines += arrays.attach(unit, scope, array)
    if scope.kind == "module":
        _module(unit, scope, lines)
    elif scope.kind == "block data" and lines:
        raise Refused(directives[0].place, "BLOCK DATA has no place for directives; move them to a module")
    else:
        unit.generated.first_before(scope.first_executable, *unit.temporaries.get(scope.number, []), *lines)
        _leave(unit, scope, mine)


def _arrays(
    unit: FortranUnit, scope: Scope, mine: list[DistributedArray]
) -> tuple[list[str], list[DistributedArray], list[Call]]:
    """Declare a scope's arrays. Gives C that makes them, those whose pointers are then set, and the calls for
    dummy arguments.
    """
    shared = unit.shared[scope.number]
    lines: list[str] = []
    attached: list[DistributedArray] = []
    bound: list[Call] = []
    for array in mine:
        _, entity = arrays.declared_in(array)
        if not scope.foreign:
            arrays.redeclare(unit, array)
        link = linkage(scope)
        unit.generated.top += [
            f"{link}pwx_array {array.descriptor};",
            f"{link}long {array.symbol}__lb[{len(array.dimensions)}];",
        ]
        if entity.deferred or scope.foreign:
            continue
        assert entity.dimensions is not None
        if arrays.is_dummy(scope, array.name):
            own = Arguments()
            others = [("address", f"pwx_{array.name}")]
            making = arrays.make(array, entity.dimensions, own, "bind")
            bound.append(Call(unit.name("bind"), making, own.texts, others))
            attached.append(array)
            continue
        lives_on = scope.kind in ("module", "program") or "save" in entity.attributes
        making = arrays.make(array, entity.dimensions, shared, "init" if lives_on else "enter")
        if lives_on and scope.kind not in ("module", "program"):  # from its first call on
            making = [f"if ({array.descriptor}.state == NULL) {{", *making, "}"]
        if array.waits:
            unit.waiting.setdefault(id(array.template), []).append((array, making))
            continue
        lines += making
        attached.append(array)
    return lines, attached, bound


def _calls(unit: FortranUnit, scope: Scope, lines: list[str], directives: list[d.Directive]) -> list[Call]:
    """The calls that begin the program, fill the descriptors of a scope, and set its coarrays up."""
    calls = [Call(unit.name("begin"), ["pwx_begin(0, 0);"])] if scope.kind == "program" else []
    if lines:
        shared = unit.shared[scope.number]
        call = call_of(unit, "set_up", lines, shared, directives[0])
        if shared.texts:
            call.lines.insert(0, f"memcpy({shared.array}, v, sizeof {shared.array});")
        calls.append(call)
    return [*calls, *unit.set_up_calls.get(scope.number, [])]


def _module(unit: FortranUnit, scope: Scope, lines: list[str]) -> None:
    """A procedure of the module sets it up before the main program begins."""
    if not lines:
        return
    name = unit.name("module")
    interfaces = unit.generated.interfaces.pop(scope.number, [])
    pointers = scope.number in unit.needs_pointers
    unit.needs_pointers.discard(scope.number)
    text = [
        f"subroutine {name}() bind(C)",
        *([arrays.POINTERS] if pointers else []),
        "interface", *interfaces, "end interface",
        *(["type(pwx_c_ptr) :: pwx_p", "integer(8) :: pwx_e(7), pwx_l(7)"] if pointers else []),
        *lines,
        f"end subroutine {name}",
    ]  # fmt: skip
    if scope.contains is not None:
        unit.generated.next_to(scope.contains, *text)
    else:
        unit.generated.before(scope.end, "contains", *text)
    unit.module_setups[scope.name] = name


def _left(mine: list[DistributedArray]) -> list[DistributedArray]:
    ending = []
    for array in mine:
        scope, entity = arrays.declared_in(array)
        of_procedure = scope.kind in ("subroutine", "function") and not arrays.is_dummy(scope, array.name)
        if of_procedure and not (entity.deferred or "save" in entity.attributes):
            ending.append(array)
    return ending


def _leave(unit: FortranUnit, scope: Scope, mine: list[DistributedArray]) -> None:
    """Arrays and coarrays of a procedure end where it does; the memory of arrays waits for its next call."""
    ending = [f"pwx_array_leave({array.address});" for array in _left(mine)]
    ending += unit.leaving.get(scope.number, [])
    if not ending:
        return
    call = Call(unit.name("leave"), ending)
    text = unit.generated.call(scope, call)
    for statement in scope.statements:
        _before_return(unit, statement, text)
    unit.generated.before(scope.contains if scope.contains is not None else scope.end, text)


def _before_return(unit: FortranUnit, statement: Statement, text: str) -> None:
    words = statement.words
    if words[0].text == "return":
        unit.generated.before(statement.number, text)
    elif words[0].text == "if" and words[-1].text == "return" and words[-2].text == ")":
        unit.generated.edit(statement.number, words[-1].start, words[-1].end, "then")
        unit.generated.behind(statement.number, text, "return", "end if")


def fixed(unit: FortranUnit, template: TemplateOf) -> tuple[list[str], list[DistributedArray]]:
    """What arrays of a template that is fixed here need: C that makes them, and the arrays."""
    waiting = unit.waiting.get(id(template), [])
    return [line for _, making in waiting for line in making], [array for array, _ in waiting]


def declare(unit: FortranUnit) -> None:
    """Put interfaces and declarations where each scope begins."""
    generated = unit.generated
    for scope in unit.structure.scopes:
        interfaces = generated.interfaces.get(scope.number, [])
        declarations = generated.declarations.get(scope.number, [])
        lines = [*(["interface", *interfaces, "end interface"] if interfaces else []), *declarations]
        if lines:
            generated.first_before(scope.head_end + 1, *lines)
        pointers = {arrays.POINTERS} if scope.number in unit.needs_pointers else set()
        uses = sorted(pointers | unit.uses_of.get(scope.number, set()))
        if uses and scope.header >= 0:
            generated.behind(scope.header, *uses)
        elif uses:
            generated.first_before(scope.begin, *uses)
