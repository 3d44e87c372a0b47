"""Nodes, templates and distributed arrays: what is kept of them, the code of their descriptors."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray, NodeArray, TemplateOf
from peerway_xacc.analysis.unit import Unit
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.source import Variable
from peerway_xacc.lowering import members
from peerway_xacc.lowering.c_text import numbers, reference, where

_KINDS = {"*": "PWX_DUPLICATED", "block": "PWX_BLOCK", "cyclic": "PWX_CYCLIC", "gblock": "PWX_GBLOCK"}


def nodes(unit: Unit, made: d.Nodes) -> None:
    """Declare node arrays."""
    for name, sizes, of in zip(made.names, made.sizes, made.of, strict=True):
        function, scope = unit.scope(made)
        values = [size.value if size else None for size in sizes]
        declared = NodeArray(name.text, name.place, function, scope, sizes=values)
        parent = reference(unit, of, made) if isinstance(of, clauses.Ref) else "0"
        unit.scopes.add(declared)
        texts = [size.text if size else "PWX_OPEN" for size in sizes]
        unit.declare(made, "pwx_nodes", declared.descriptor)
        unit.set_up(
            made,
            f'pwx_nodes_init({declared.address}, "{name.text}", {len(sizes)}, {numbers(texts, "int")}, '
            f"{parent}, {int(of == '*')}, {where(made)});",
        )


def template(unit: Unit, made: d.Template) -> None:
    """Declare templates."""
    for name, bounds in zip(made.names, made.bounds, strict=True):
        function, scope = unit.scope(made)
        declared = TemplateOf(name.text, name.place, function, scope, bounds=list(bounds))
        unit.scopes.add(declared)
        for bound in bounds:
            if bound and None not in (bound.first_value, bound.last_value):
                assert bound.first_value is not None
                assert bound.last_value is not None
                if bound.last_value < bound.first_value:
                    raise Refused(
                        name.place, f"template '{name.text}' is empty: {bound.first} to {bound.last}"
                    )
        unit.declare(made, "pwx_template", declared.descriptor, "pwx_template_end")
        known = [bound for bound in bounds if bound]
        start = f'({declared.address}, "{name.text}", {len(bounds)}, '
        if known:
            unit.set_up(made, f"pwx_template_init{start}{_both(known)}, {where(made)});")
        else:
            unit.set_up(made, f"pwx_template_open{start}{where(made)});")


def _both(bounds: list[clauses.Bounds]) -> str:
    return f"{numbers([bound.first for bound in bounds])}, {numbers([bound.last for bound in bounds])}"


def distribute(unit: Unit, made: d.Distribute) -> None:
    """Distribute templates onto nodes."""
    assert made.onto is not None
    for name in made.templates:
        declared = unit.get(TemplateOf, name, made)
        onto = unit.get(NodeArray, made.onto, made)
        if declared.formats is not None:
            note = (declared.place, f"'{name.text}' is declared here")
            raise Refused(name.place, f"template '{name.text}' is already distributed", note)
        unit.set_up(made, _distributed(declared, onto, made.formats, made))


def _distributed(
    declared: TemplateOf, onto: NodeArray, formats: list[clauses.Format], made: d.Directive
) -> str:
    if len(formats) != len(declared.bounds):
        note = (declared.place, f"'{declared.name}' is declared here")
        message = (
            f"{counted(len(formats), 'format')} for {counted(len(declared.bounds), 'dimension')} of "
            f"template '{declared.name}'"
        )
        raise Refused(formats[0].place, message, note)
    distributed = [fmt for fmt in formats if fmt.kind != "*"]
    if len(distributed) != len(onto.sizes):
        note = (onto.place, f"'{onto.name}' is declared here")
        message = (
            f"{counted(len(distributed), 'distributed dimension')} onto the {len(onto.sizes)} of "
            f"node array '{onto.name}'"
        )
        raise Refused(made.place, message, note)
    declared.formats, declared.onto = formats, onto
    kinds = ", ".join(_KINDS[fmt.kind] for fmt in formats)
    widths = numbers([fmt.argument.text if fmt.argument and fmt.kind != "gblock" else "0" for fmt in formats])
    copies, blocks = _gblock_sizes(declared, onto, formats)
    call = (
        f"pwx_distribute({declared.address}, {onto.address}, (const pwx_kind[]){{{kinds}}}, {widths}, "
        f"{blocks}, {where(made)});"
    )
    return f"{{ {copies}{call} }}" if copies else call


def _gblock_sizes(declared: TemplateOf, onto: NodeArray, formats: list[clauses.Format]) -> tuple[str, str]:
    """Code that copies the program's arrays of sizes to arrays of long, and the argument that names these."""
    copies = ""
    names = []
    position = 0
    for number, fmt in enumerate(formats):
        if fmt.kind == "gblock" and fmt.argument:
            name = f"{declared.name}__sizes{number}"
            size = f"{onto.descriptor}.size[{position}]"
            copies += f"long {name}[{size}]; for (int n = 0; n < {size}; n++) "
            copies += f"{name}[n] = ({fmt.argument.text})[n]; "
            names.append(name)
        else:
            names.append("0")
        position += fmt.kind != "*"
    return copies, f"(const long *const[]){{{', '.join(names)}}}" if copies else "0"


def template_fix(unit: Unit, made: d.TemplateFix) -> None:
    """Give a template its bounds at run time, and its arrays of the file their memory."""
    assert made.template is not None
    declared = unit.get(TemplateOf, made.template, made)
    note = (declared.place, f"'{declared.name}' is declared here")
    if unit.function_of(made) is None:
        raise Refused(made.place, "template_fix must be in a function")
    if not declared.opened:
        raise Refused(made.template.place, f"template '{declared.name}' has its bounds already", note)
    if declared.formats is None or declared.onto is None:
        raise Refused(made.template.place, f"template '{declared.name}' is not distributed", note)
    if declared.fixed:
        raise Refused(made.template.place, f"template '{declared.name}' is already fixed", note)
    declared.fixed = True
    known = [bound for bound in made.bounds or [] if bound]
    unknown = None in declared.bounds
    if not unknown and made.bounds is not None:
        raise Refused(made.template.place, f"template '{declared.name}' has its bounds already", note)
    if unknown and len(known) != len(declared.bounds):
        message = (
            f"template_fix needs bounds for {counted(len(declared.bounds), 'dimension')} of '{declared.name}'"
        )
        raise Refused(made.template.place, message, note)
    copies, blocks = "", "0"
    if made.formats is not None:
        if [fmt.kind for fmt in made.formats] != [fmt.kind for fmt in declared.formats]:
            raise Refused(made.formats[0].place, f"'{declared.name}' is distributed otherwise", note)
        copies, blocks = _gblock_sizes(declared, declared.onto, made.formats)
    for number, fmt in enumerate(declared.formats):
        if fmt.later and (made.formats is None or made.formats[number].later):
            message = f"'{declared.name}' is distributed as gblock(*); give the sizes, as in (gblock(sizes))"
            raise Refused(made.template.place, message, note)
    bounds = _both(known) if unknown else "0, 0"
    unit.put(
        made, [f"{{ {copies}pwx_template_fix({declared.address}, {bounds}, {blocks}, {where(made)}); }}"]
    )
    unit.fixes[id(declared)] = made


def align(unit: Unit, made: d.Align) -> None:
    """Align arrays with a template."""
    assert made.template is not None
    template_of = unit.get(TemplateOf, made.template, made)
    if template_of.formats is None:
        note = (template_of.place, f"'{template_of.name}' is declared here")
        raise Refused(made.template.place, f"template '{template_of.name}' is not distributed yet", note)
    for name in members.meant(unit, made.arrays, made):
        variable = _array_variable(unit, name, made)
        already = unit.scopes.of_variable(variable)
        if already:
            raise Refused(
                name.place, f"'{name.text}' is already aligned", (already.place, "it is aligned here")
            )
        function, scope = unit.scope(made)
        declared = DistributedArray(
            name.text, name.place, function, scope, variable=variable, template=template_of,
            dimensions=_matched(made, name, variable, template_of), last_directive=made.start,
        )  # fmt: skip
        unit.scopes.add(declared)
        members.claim(unit, variable, name.place)


def _array_variable(unit: Unit, name: clauses.Name, made: d.Directive) -> Variable:
    if "." in name.text:
        members.check(unit, name, made)
    variable = unit.syntax.variable(name.text, made.file, made.start)
    if variable is None:
        raise Refused(name.place, f"'{name.text}' is not declared")
    place = unit.texts.of(variable.file).place(variable.declarator.start, variable.declarator.end)
    note = (place, f"'{name.text}' is declared here")
    if variable.pointee is not None:
        variable.sizes = (None, *variable.pointee)
        variable.pointee = None if variable.parameter else variable.pointee  # `int *v` is `int v[]` there
    if not variable.sizes:
        raise Refused(name.place, f"'{name.text}' is not an array", note)
    if len(variable.sizes) > 7:
        raise Refused(
            name.place, f"'{name.text}' has {len(variable.sizes)} dimensions; at most 7 are possible", note
        )
    if variable.initialised:
        raise Refused(name.place, f"'{name.text}' is aligned, so it cannot have an initialiser", note)
    if variable.file_scope and unit.syntax.function_at(made.file, made.start):
        raise Refused(name.place, f"'{name.text}' is declared outside functions; align it there", note)
    return variable


def _matched(
    made: d.Align, name: clauses.Name, variable: Variable, template_of: TemplateOf
) -> list[tuple[int, str] | None]:
    """For each dimension of the array its dimension of the template and the offset."""
    rank = len(variable.sizes)
    if len(made.sources) != rank:
        raise Refused(
            name.place,
            f"{counted(len(made.sources), 'index')} for '{name.text}', "
            f"which has {counted(rank, 'dimension')}",
        )
    if len(made.targets) != len(template_of.bounds):
        note = (template_of.place, f"'{template_of.name}' is declared here")
        message = (
            f"{counted(len(made.targets), 'index')} for template '{template_of.name}', "
            f"which has {counted(len(template_of.bounds), 'dimension')}"
        )
        raise Refused(made.targets[0].place, message, note)
    found: list[tuple[int, str] | None] = [None] * rank
    for number, target in enumerate(made.targets):
        if target.index is None:
            continue
        if target.index not in made.sources:
            raise Refused(target.place, f"'{target.index}' is no index of the array")
        dimension = made.sources.index(target.index)
        if found[dimension] is not None or made.sources.count(target.index) > 1:
            raise Refused(target.place, f"'{target.index}' is used twice")
        found[dimension] = (number, target.offset)
    for source, aligned in zip(made.sources, found, strict=True):
        if source is not None and aligned is None:
            raise Refused(
                made.targets[0].place, f"index '{source}' of the array is not used by the template; write '*'"
            )
    return found


def shadow(unit: Unit, made: d.Shadow) -> None:
    """Give arrays a shadow."""
    for name in members.meant(unit, made.arrays, made):
        declared = unit.array(name, made)
        assert declared.variable is not None
        if declared.widths:
            assert declared.shadow_place is not None
            raise Refused(
                name.place, f"'{name.text}' has a shadow", (declared.shadow_place, "it is declared here")
            )
        rank = len(declared.variable.sizes)
        if len(made.widths) != rank:
            message = (
                f"{counted(len(made.widths), 'width')} of a shadow for '{name.text}', "
                f"which has {counted(rank, 'dimension')}"
            )
            raise Refused(made.widths[0].place, message)
        for dimension, width in enumerate(made.widths):
            kind = declared.kind_of(dimension)
            some = width.full or any(expr and expr.value != 0 for expr in (width.lower, width.upper))
            if some and kind == "cyclic":
                raise Refused(
                    width.place, f"dimension {dimension} of '{name.text}' is cyclic and can have no shadow"
                )
        declared.widths, declared.shadow_place = list(made.widths), name.place
        declared.last_directive = max(declared.last_directive, made.start)


def static_desc(unit: Unit, made: d.StaticDesc) -> None:
    """Nothing to do but to look: descriptors of parameters are static anyway."""
    for name in made.arrays:
        unit.array(name, made)
