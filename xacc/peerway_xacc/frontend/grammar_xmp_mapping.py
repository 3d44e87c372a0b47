"""The grammar of `#pragma xmp …` for nodes, templates, and the alignment of arrays with templates."""

from __future__ import annotations

from collections.abc import Callable

from peerway_xacc.frontend import clauses, grammar_xmp_communication
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.parser import Parser

_MOST_NODES = 2**31 - 1


def _nodes(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Nodes(base.place, base.start, base.end, base.file)

    def item() -> None:
        directive.names.append(parser.name("the name of a node array"))
        sizes, square = parser.dimensions("a node array", lambda _square: _size(parser))
        free = [number for number, size in enumerate(sizes) if size is None]
        if free and free != [len(sizes) - 1]:
            which = "first" if square else "last"
            raise Refused(directive.names[-1].place, f"only the {which} size of a node array can be '*'")
        directive.sizes.append(sizes)
        directive.square.append(square)
        if not parser.accept("="):
            directive.of.append(None)
        elif parser.accept("*"):
            directive.of.append("*")
        else:
            directive.of.append(parser.ref("'*' or a reference to other nodes"))

    parser.some(item)
    return directive


def _size(parser: Parser) -> clauses.Expr | None:
    if parser.accept("*"):
        return None
    size = parser.at_least(1, "a number of nodes")
    if size.value is not None and size.value > _MOST_NODES:
        raise Refused(size.place, f"a number of nodes must be at most {_MOST_NODES}")
    return size


def _template(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Template(base.place, base.start, base.end, base.file)

    def item() -> None:
        directive.names.append(parser.name("the name of a template"))
        directive.bounds.append(_all_bounds(parser))

    parser.some(item)
    return directive


def _all_bounds(parser: Parser) -> list[clauses.Bounds | None]:
    bounds, _square = parser.dimensions("a template", lambda square: _bounds(parser, square))
    open_ones = [bound is None for bound in bounds]
    if any(open_ones) and not all(open_ones):
        raise parser.unexpected("either ':' or bounds in every dimension of a template")
    return bounds


def _bounds(parser: Parser, square: bool) -> clauses.Bounds | None:
    if parser.accept(":"):
        return None
    first = parser.expr("bounds of a template")
    if square:
        if not parser.accept(":"):
            size = first.value
            return clauses.Bounds("0", f"({first.text}) - 1", 0, None if size is None else size - 1)
        length = parser.expr("the length of a template")
        begin, size = first.value, length.value
        known = None if begin is None or size is None else begin + size - 1
        return clauses.Bounds(first.text, f"({first.text}) + ({length.text}) - 1", begin, known)
    if not parser.accept(":"):
        return clauses.Bounds("1", first.text, 1, first.value)
    last = parser.expr("the last index of a template")
    return clauses.Bounds(first.text, last.text, first.value, last.value)


def _template_fix(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.TemplateFix(base.place, base.start, base.end, base.file)
    if parser.sees("(") or parser.sees("["):
        directive.formats = _formats(parser)
    directive.template = parser.name("the name of a template")
    if parser.sees("(") or parser.sees("["):
        directive.bounds = _all_bounds(parser)
    return directive


def _distribute(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Distribute(base.place, base.start, base.end, base.file)
    if not parser.sees("(") and not parser.sees("["):
        directive.templates = [parser.name("the name of a template")]
    directive.formats = _formats(parser)
    parser.expect("onto", "behind the formats")
    directive.onto = parser.name("the name of a node array")
    if not directive.templates:
        parser.expect(":", "before the templates")
        parser.expect(":", "before the templates")
        directive.templates = parser.names("the name of a template")
    return directive


def _formats(parser: Parser) -> list[clauses.Format]:
    return parser.dimensions("a template", lambda _square: _format(parser))[0]


def _format(parser: Parser) -> clauses.Format:
    place = parser.here()
    if parser.accept("*"):
        return clauses.Format("*", place)
    word = parser.name("'*', block, cyclic or gblock")
    kind = word.text.lower()
    if kind not in ("block", "cyclic", "gblock"):
        raise Refused(place, f"expected '*', block, cyclic or gblock, found '{word.text}'")
    argument = None
    if parser.accept("("):
        if kind == "gblock" and parser.accept("*"):
            parser.expect(")", "behind gblock(*")
            return clauses.Format(kind, place, later=True)
        if kind == "gblock":
            argument = parser.expr("the name of an array of sizes")
        else:
            argument = parser.at_least(1, "the width of a block")
        parser.expect(")", f"behind the argument of {kind}")
    if kind == "gblock" and argument is None:
        raise Refused(place, "gblock needs the array of its sizes, as in gblock(sizes)")
    return clauses.Format(kind, place, argument)


def _align(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Align(base.place, base.start, base.end, base.file)
    if not parser.opens_array():
        directive.arrays = [parser.array()]
    directive.sources = parser.array_dimensions(
        "an index", lambda: None if parser.accept("*") else _source(parser)
    )
    parser.expect("with", "behind the indices of the array")
    directive.template = parser.name("the name of a template")
    directive.targets, _square = parser.dimensions("the template", lambda _square: _target(parser))
    _match_colons(directive)
    if not directive.arrays:
        parser.expect(":", "before the arrays")
        parser.expect(":", "before the arrays")
        directive.arrays = parser.arrays()
    return directive


def _source(parser: Parser) -> str:
    return ":" if parser.accept(":") else parser.name("the name of an index, ':' or '*'").text


def _target(parser: Parser) -> clauses.AlignTo:
    place = parser.here()
    if parser.accept("*"):
        return clauses.AlignTo(place, None)
    if parser.accept(":"):
        return clauses.AlignTo(place, ":")
    expr = parser.expr("an index of the array, ':' or '*'")
    first, rest = expr.tokens[0], expr.tokens[1:]
    if first.kind != "name" or (rest and rest[0].text not in ("+", "-")):
        raise Refused(expr.place, f"'{expr.text}' must be an index of the array, plus or minus an offset")
    return clauses.AlignTo(place, first.text, expr.behind(1).text if rest else "0")


def _match_colons(directive: d.Align) -> None:
    """Name the colons to match them: the array's from right to left, the template's in Fortran's order."""
    sources = [number for number, source in enumerate(directive.sources) if source == ":"][::-1]
    targets = [number for number, target in enumerate(directive.targets) if target.index == ":"]
    if len(sources) != len(targets):
        raise Refused(
            directive.place, f"{len(sources)} ':' of the array meet {len(targets)} ':' of the template"
        )
    for number, (source, target) in enumerate(zip(sources, targets, strict=True)):
        directive.sources[source] = f":{number}"
        directive.targets[target] = clauses.AlignTo(directive.targets[target].place, f":{number}")


def _shadow(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Shadow(base.place, base.start, base.end, base.file)
    if not parser.opens_array():
        directive.arrays = [parser.array()]
    directive.widths = parser.array_dimensions(
        "a width", lambda: grammar_xmp_communication.width(parser, full=True)
    )
    if not directive.arrays:
        parser.expect(":", "before the arrays")
        parser.expect(":", "before the arrays")
        directive.arrays = parser.arrays()
    return directive


def _static_desc(parser: Parser, base: d.Directive) -> d.Directive:
    if parser.accept(":"):
        parser.expect(":", "before the arrays")
    return d.StaticDesc(base.place, base.start, base.end, base.file, arrays=parser.arrays())


GRAMMAR: dict[str, Callable[[Parser, d.Directive], d.Directive]] = {
    "nodes": _nodes,
    "template": _template,
    "template_fix": _template_fix,
    "distribute": _distribute,
    "align": _align,
    "shadow": _shadow,
    "static_desc": _static_desc,
}
