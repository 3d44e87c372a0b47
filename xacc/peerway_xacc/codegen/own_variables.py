"""Handles a construct's own copies of variables on CPUs: by private, firstprivate or OpenACC's rules."""

from __future__ import annotations

from peerway_xacc.analysis.loop_nest import indices_in
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Statement, Variable, used_in
from peerway_xacc.lowering import memory
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Unit

_NO_VALUE = ("private", "firstprivate", "use_device", "cache")  # clauses that leave a scalar to the host


def check(unit: Unit, directive: d.Acc, indices: set[str]) -> None:
    """Refuse clauses that contradict each other, or that reduce the index of their own loop.

    Raises Refused.
    """
    by_name: dict[str, str] = {}
    for clause in directive.all("private", "firstprivate", "reduction"):
        for section in clause.sections:
            name = section.name
            before = by_name.setdefault(name.text, clause.name)
            if before != clause.name:
                raise Refused(name.place, f"'{name.text}' is in {before} and in {clause.name}; keep one")
            if clause.name == "reduction" and name.text in indices:
                raise Refused(name.place, f"'{name.text}' is the index of this loop and cannot be reduced")
            variable = unit.syntax.variable(name.text, directive.file, directive.start)
            if clause.name != "reduction" and variable is not None:
                _check_section(unit, directive, section, variable)


def _check_section(unit: Unit, directive: d.Acc, section: clauses.Section, variable: Variable) -> None:
    # raises its own errors, such as for a section that is not contiguous
    memory.described(unit, directive, section, "PRESENT")
    if not section.parts and variable.pointer and variable.sizes and variable.sizes[0] is None:
        name = section.name.text
        raise Refused(section.name.place, f"the size of '{name}' is not known here; write {name}[0:length]")


def whole_elements(section: clauses.Section, variable: Variable) -> str:
    """The number of elements in the copy of memory behind a pointer, as C text.

    It is empty if the variable itself is copied. The copy begins at the pointer's target, so that subscripts
    need no change.
    """
    if section.parts and variable.pointer:
        first = section.parts[0].first
        before = f"({first.text}) + " if first else ""
        return before + memory.length_of(section, variable)
    if variable.parameter and variable.sizes and variable.sizes[0] is not None:
        return str(variable.sizes[0])
    return ""


def known_elements(section: clauses.Section, variable: Variable) -> int | None:
    """The number of elements that `whole_elements` gives, as a number; None if known only at run time."""
    if not section.parts:
        return variable.sizes[0] if variable.sizes else None
    part = section.parts[0]
    first = part.first.value if part.first else 0
    length = 1 if part.index else part.length.value if part.length else None
    if length is None and part.length is None and variable.sizes and variable.sizes[0] is not None:
        return variable.sizes[0]
    return None if first is None or length is None else first + length


def opened(unit: Unit, directive: d.Acc, section: clauses.Section, copied: bool) -> tuple[str, str]:
    """The C text that declares a construct's own copy of a variable, and the text that ends its scope."""
    name = section.name.text
    variable = unit.syntax.variable(name, directive.file, directive.start)
    assert variable is not None, "checked"
    outer = unit.output.new_name(f"{name}__outer")
    count = whole_elements(section, variable)
    unused = "__attribute__((unused))"
    if count:
        first = section.parts[0].first if section.parts else None
        begin = f"({first.text})" if first else "0"
        source = f"(const void *){name}" if copied else "0"
        return (
            f"{{ __attribute__((cleanup(pwx_own_end))) void *{outer} = pwx_own({source}, "
            f"({begin}) * sizeof(*{name}), ({count}) * sizeof(*{name}), {where(directive)}); "
            f"{unused} __typeof__(&{name}[0]) {name} = {outer};",
            " }",
        )
    if not copied:
        return f"{{ {unused} __typeof__({name}) {name};", " }"
    # By address, which the compiler cannot follow: a scalar may be uninitialised still.
    return (
        f"{{ const void *const {outer} = pwx_outer(&{name}); {{ {unused} __typeof__({name}) {name}; "
        f"__builtin_memcpy(&{name}, {outer}, sizeof({name}));",
        " } }",
    )


def sections(directive: d.Acc, *kinds: str) -> list[clauses.Section]:
    """The sections in clauses of these kinds, one for each variable."""
    return list({section.name.text: section for section in directive.named(*kinds)}.values())


def declared_on_device(unit: Unit, statement: Statement) -> set[str]:
    """The variables that an acc declare of the file, or of the enclosing function, keeps on the device."""
    names = set()
    function = unit.syntax.function_at(unit.file, statement.start)
    for directive in unit.directives:
        if not isinstance(directive, d.Acc) or directive.construct != "declare":
            continue
        if unit.function_of(directive) not in (None, function):
            continue
        for clause in directive.clauses:
            for name in clause.variables if clause.name != "deviceptr" else ():
                variable = unit.syntax.variable(name.text, directive.file, directive.start)
                if variable and unit.syntax.variable(name.text, unit.file, statement.start) is variable:
                    names.add(name.text)
    return names


def on_thread(unit: Unit, annotated: AnnotatedStatement, directive: d.Acc, implied: bool) -> None:
    """Give a statement that one host thread executes its own copies of private and firstprivate variables.

    With `implied`, it also gets copies of the scalars that it changes, so that their outer values stay.
    """
    around: list[tuple[clauses.Section, bool]] = []
    around += [(section, False) for section in sections(directive, "private")]
    around += [(section, True) for section in sections(directive, "firstprivate")]
    if implied:
        for name in sorted(changed(unit, annotated) - {section.name.text for section, _ in around}):
            around.append((clauses.Section(clauses.Name(name, directive.place)), True))
    for section, copied in around:
        begin, end = opened(unit, directive, section, copied)
        annotated.before.append(begin)
        unit.output.edits.behind(annotated.statement.end, end)


def changed(unit: Unit, annotated: AnnotatedStatement) -> set[str]:
    """The outer scalars and structs that a statement changes outside its shared loops, and that no clause
    names.
    """
    region = Range(annotated.statement.start, annotated.statement.end)
    settled = declared_on_device(unit, annotated.statement) | indices_in(unit, annotated.statement)
    for inside, other in unit.compute.regions:
        if inside.start <= region.start and region.end <= inside.end:
            settled |= {
                name.text
                for clause in other.clauses
                if clause.name not in _NO_VALUE
                for name in clause.variables
            }
    # with the directives before it
    start = min([region.start, *(directive.start for directive in annotated.directives)])
    for inner in unit.directives:
        if isinstance(inner, d.Acc) and inner.file == unit.file and start <= inner.start < region.end:
            settled |= {name.text for name in inner.named_variables("reduction", "private")}
    names = set()
    for use in used_in(annotated.function.uses, region):
        variable = use.variable
        outside = variable.file_scope or not region.start <= variable.declarator.start < region.end
        single = variable.pointee is None and not variable.sizes
        if outside and use.written and single:
            names.add(variable.name)
    return names - settled
