"""Lowers declarations of nodes, templates and distributed arrays, and writes their descriptors."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import DistributedArray, NodeArray, TemplateOf
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.source import Variable
from peerway_xacc.lowering import members
from peerway_xacc.lowering.c_text import numbers, reference, where
from peerway_xacc.lowering.table import Declares, Lowering
from peerway_xacc.lowering.unit import Unit

_KINDS = {"*": "PWX_DUPLICATED", "block": "PWX_BLOCK", "cyclic": "PWX_CYCLIC", "gblock": "PWX_GBLOCK"}


def nodes(unit: Unit, directive: d.Nodes) -> None:
    """Lower `nodes`: declare node arrays."""
    for name, sizes, of in zip(directive.names, directive.sizes, directive.of, strict=True):
        function, scope = unit.scope(directive)
        values = [size.value if size else None for size in sizes]
        declared = NodeArray(name.text, name.place, function, scope, sizes=values)
        parent = reference(unit, of, directive) if isinstance(of, clauses.Ref) else "0"
        unit.scopes.add(declared)
        texts = [size.text if size else "PWX_OPEN" for size in sizes]
        unit.declare(directive, "pwx_nodes", declared.descriptor)
        unit.set_up(
            directive,
            f'pwx_nodes_init({declared.address}, "{name.text}", {len(sizes)}, {numbers(texts, "int")}, '
            f"{parent}, {int(of == '*')}, {where(directive)});",
        )


def template(unit: Unit, directive: d.Template) -> None:
    """Lower `template`: declare templates."""
    for name, bounds in zip(directive.names, directive.bounds, strict=True):
        function, scope = unit.scope(directive)
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
        unit.declare(directive, "pwx_template", declared.descriptor, "pwx_template_end")
        known = [bound for bound in bounds if bound]
        start = f'({declared.address}, "{name.text}", {len(bounds)}, '
        if known:
            unit.set_up(directive, f"pwx_template_init{start}{_both(known)}, {where(directive)});")
        else:
            unit.set_up(directive, f"pwx_template_open{start}{where(directive)});")


def _both(bounds: list[clauses.Bounds]) -> str:
    return f"{numbers([bound.first for bound in bounds])}, {numbers([bound.last for bound in bounds])}"


def distribute(unit: Unit, directive: d.Distribute) -> None:
    """Lower `distribute`: distribute templates onto nodes."""
    assert directive.onto is not None
    for name in directive.templates:
        declared = unit.get(TemplateOf, name, directive)
        onto = unit.get(NodeArray, directive.onto, directive)
        if declared.formats is not None:
            note = (declared.place, f"'{name.text}' is declared here")
            raise Refused(name.place, f"template '{name.text}' is already distributed", note)
        unit.set_up(directive, _distributed(declared, onto, directive.formats, directive))


def _distributed(
    declared: TemplateOf, onto: NodeArray, formats: list[clauses.Format], directive: d.Directive
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
        raise Refused(directive.place, message, note)
    declared.formats, declared.onto = formats, onto
    kinds = ", ".join(_KINDS[fmt.kind] for fmt in formats)
    widths = numbers([fmt.argument.text if fmt.argument and fmt.kind != "gblock" else "0" for fmt in formats])
    copies, blocks = _gblock_sizes(declared, onto, formats)
    call = (
        f"pwx_distribute({declared.address}, {onto.address}, (const pwx_kind[]){{{kinds}}}, {widths}, "
        f"{blocks}, {where(directive)});"
    )
    return f"{{ {copies}{call} }}" if copies else call


def _gblock_sizes(declared: TemplateOf, onto: NodeArray, formats: list[clauses.Format]) -> tuple[str, str]:
    """Code that copies the program's arrays of sizes to arrays of long, and the argument for these."""
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


def template_fix(unit: Unit, directive: d.TemplateFix) -> None:
    """Lower `template_fix`: it sets a template's bounds at run time, and its file-scope arrays get memory."""
    assert directive.template is not None
    declared = unit.get(TemplateOf, directive.template, directive)
    note = (declared.place, f"'{declared.name}' is declared here")
    if unit.function_of(directive) is None:
        raise Refused(directive.place, "template_fix must be in a function")
    if not declared.opened:
        raise Refused(directive.template.place, f"template '{declared.name}' has its bounds already", note)
    if declared.formats is None or declared.onto is None:
        raise Refused(directive.template.place, f"template '{declared.name}' is not distributed", note)
    if declared.fixed:
        raise Refused(directive.template.place, f"template '{declared.name}' is already fixed", note)
    declared.fixed = True
    known = [bound for bound in directive.bounds or [] if bound]
    unknown = None in declared.bounds
    if not unknown and directive.bounds is not None:
        raise Refused(directive.template.place, f"template '{declared.name}' has its bounds already", note)
    if unknown and len(known) != len(declared.bounds):
        message = (
            f"template_fix needs bounds for {counted(len(declared.bounds), 'dimension')} of '{declared.name}'"
        )
        raise Refused(directive.template.place, message, note)
    copies, blocks = "", "0"
    if directive.formats is not None:
        if [fmt.kind for fmt in directive.formats] != [fmt.kind for fmt in declared.formats]:
            raise Refused(directive.formats[0].place, f"'{declared.name}' is distributed otherwise", note)
        copies, blocks = _gblock_sizes(declared, declared.onto, directive.formats)
    for number, fmt in enumerate(declared.formats):
        if fmt.later and (directive.formats is None or directive.formats[number].later):
            message = f"'{declared.name}' is distributed as gblock(*); give the sizes, as in (gblock(sizes))"
            raise Refused(directive.template.place, message, note)
    bounds = _both(known) if unknown else "0, 0"
    unit.put(
        directive,
        [f"{{ {copies}pwx_template_fix({declared.address}, {bounds}, {blocks}, {where(directive)}); }}"],
    )
    unit.fixes[id(declared)] = directive


def align(unit: Unit, directive: d.Align) -> None:
    """Lower `align`: align arrays with a template."""
    assert directive.template is not None
    template_of = unit.get(TemplateOf, directive.template, directive)
    if template_of.formats is None:
        note = (template_of.place, f"'{template_of.name}' is declared here")
        raise Refused(directive.template.place, f"template '{template_of.name}' is not distributed yet", note)
    for name in members.resolved_names(unit, directive.arrays, directive):
        variable = _array_variable(unit, name, directive)
        already = unit.scopes.of_variable(variable)
        if already:
            raise Refused(
                name.place, f"'{name.text}' is already aligned", (already.place, "it is aligned here")
            )
        function, scope = unit.scope(directive)
        declared = DistributedArray(
            name.text, name.place, function, scope, variable=variable, template=template_of,
            dimensions=_matched(directive, name, variable, template_of), last_directive=directive.start,
        )  # fmt: skip
        unit.scopes.add(declared)
        members.claim(unit, variable, name.place)


def _array_variable(unit: Unit, name: clauses.Name, directive: d.Directive) -> Variable:
    if "." in name.text:
        members.check(unit, name, directive)
    variable = unit.syntax.variable(name.text, directive.file, directive.start)
    if variable is None:
        raise Refused(name.place, f"'{name.text}' is not declared")
    place = unit.texts.of(variable.file).place(variable.declarator.start, variable.declarator.end)
    note = (place, f"'{name.text}' is declared here")
    if variable.pointee is not None:
        variable.sizes = (None, *variable.pointee)
        # for a parameter, `int *v` means `int v[]`
        variable.pointee = None if variable.parameter else variable.pointee
    if not variable.sizes:
        raise Refused(name.place, f"'{name.text}' is not an array", note)
    if len(variable.sizes) > 7:
        raise Refused(
            name.place, f"'{name.text}' has {len(variable.sizes)} dimensions; at most 7 are possible", note
        )
    if variable.initialised:
        raise Refused(name.place, f"'{name.text}' is aligned, so it cannot have an initialiser", note)
    if variable.file_scope and unit.syntax.function_at(directive.file, directive.start):
        raise Refused(name.place, f"'{name.text}' is declared outside functions; align it there", note)
    return variable


def _matched(
    directive: d.Align, name: clauses.Name, variable: Variable, template_of: TemplateOf
) -> list[tuple[int, str] | None]:
    """For each dimension of the array, its dimension of the template and the offset; None if not aligned."""
    rank = len(variable.sizes)
    if len(directive.sources) != rank:
        raise Refused(
            name.place,
            f"{counted(len(directive.sources), 'index')} for '{name.text}', "
            f"which has {counted(rank, 'dimension')}",
        )
    if len(directive.targets) != len(template_of.bounds):
        note = (template_of.place, f"'{template_of.name}' is declared here")
        message = (
            f"{counted(len(directive.targets), 'index')} for template '{template_of.name}', "
            f"which has {counted(len(template_of.bounds), 'dimension')}"
        )
        raise Refused(directive.targets[0].place, message, note)
    matches: list[tuple[int, str] | None] = [None] * rank
    for number, target in enumerate(directive.targets):
        if target.index is None:
            continue
        if target.index not in directive.sources:
            raise Refused(target.place, f"'{target.index}' is no index of the array")
        dimension = directive.sources.index(target.index)
        if matches[dimension] is not None or directive.sources.count(target.index) > 1:
            raise Refused(target.place, f"'{target.index}' is used twice")
        matches[dimension] = (number, target.offset)
    for source, aligned in zip(directive.sources, matches, strict=True):
        if source is not None and aligned is None:
            raise Refused(
                directive.targets[0].place,
                f"index '{source}' of the array is not used by the template; write '*'",
            )
    return matches


def shadow(unit: Unit, directive: d.Shadow) -> None:
    """Lower `shadow`: give arrays a shadow."""
    for name in members.resolved_names(unit, directive.arrays, directive):
        declared = unit.array(name, directive)
        assert declared.variable is not None
        if declared.widths:
            assert declared.shadow_place is not None
            raise Refused(
                name.place, f"'{name.text}' has a shadow", (declared.shadow_place, "it is declared here")
            )
        rank = len(declared.variable.sizes)
        if len(directive.widths) != rank:
            message = (
                f"{counted(len(directive.widths), 'width')} of a shadow for '{name.text}', "
                f"which has {counted(rank, 'dimension')}"
            )
            raise Refused(directive.widths[0].place, message)
        for dimension, width in enumerate(directive.widths):
            kind = declared.kind_of(dimension)
            some = width.full or any(expr and expr.value != 0 for expr in (width.lower, width.upper))
            if some and kind == "cyclic":
                raise Refused(
                    width.place,
                    f"dimension {declared.spoken(dimension)} of '{name.text}' is cyclic "
                    "and can have no shadow",
                )
        declared.widths, declared.shadow_place = list(directive.widths), name.place
        declared.last_directive = max(declared.last_directive, directive.start)


def static_desc(unit: Unit, directive: d.StaticDesc) -> None:
    """Only check the names of `static_desc`: descriptors of parameters are static anyway."""
    for name in directive.arrays:
        unit.array(name, directive)


LOWERINGS: dict[str, Lowering] = {
    "xmp nodes": Declares(nodes),
    "xmp template": Declares(template),
    "xmp distribute": Declares(distribute),
    "xmp template_fix": Declares(template_fix),
    "xmp align": Declares(align),
    "xmp shadow": Declares(shadow),
    "xmp static_desc": Declares(static_desc),
}
