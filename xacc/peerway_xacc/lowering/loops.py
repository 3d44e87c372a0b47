"""Lowers loops and tasks of xmp: nodes execute the iterations that they own, tasks run on their nodes."""

from __future__ import annotations

from peerway_xacc.analysis import bounds, loop_nest, mistakes, restrictions
from peerway_xacc.analysis.loop_nest import For
from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.analysis.mapping import LoopOver, NodeArray, TemplateOf
from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.edits import Edits
from peerway_xacc.lowering import loop_reductions, widening
from peerway_xacc.lowering.c_text import reference, referred, where
from peerway_xacc.lowering.table import HasStatement, Lowering
from peerway_xacc.lowering.unit import Unit


def task(unit: Unit, annotated: AnnotatedStatement, directive: d.Task) -> None:
    """Lower `task`: its statement runs only on the given nodes, which are then the executing nodes."""
    name = unit.output.new_name("task")
    nodes = reference(unit, directive.on, directive)
    annotated.before += [
        f"{{ {unit.writes.call(annotated.statement.start)}pwx_task {name} "
        f"__attribute__((cleanup(pwx_task_end))) = "
        f"pwx_task_begin({nodes}, {int(directive.nocomm)}, {where(directive)});",
        f"if ({name}.inside)",
    ]
    unit.output.edits.behind(annotated.statement.end, " }")
    unit.explain(directive, f"task: the next statement runs on {text_of(directive.on)} only")


def text_of(ref: clauses.Ref | None) -> str:
    """A reference as the program writes it."""
    if ref is None:
        return "the executing nodes"
    if ref.subscripts is None:
        return ref.name.text
    parts = []
    for subscript in ref.subscripts:
        if subscript.index is not None:
            parts.append(subscript.index.text)
        elif subscript.star:
            parts.append("*")
        else:
            parts.append(f"{subscript.first.text if subscript.first else ''}:{subscript.last or ''}")
    inner = "][".join(parts[::-1]) if ref.square else ", ".join(parts)
    return f"{ref.name.text}[{inner}]" if ref.square else f"{ref.name.text}({inner})"


def loop(unit: Unit, annotated: AnnotatedStatement, directive: d.Loop) -> None:
    """Lower `loop`: each of its loops covers only what the node owns."""
    assert directive.on is not None
    if annotated.statement.kind != "for":
        place = unit.text.place(annotated.statement.start)
        raise Refused(directive.place, "expected a 'for' loop behind this directive", (place, "this follows"))
    if directive.on.subscripts is None:
        raise Refused(
            directive.on.name.place,
            f"the on clause of a loop needs subscripts, as in {directive.on.name.text}[i]",
        )
    mapping = referred(unit, directive.on, directive)
    indices = _indices(unit, annotated, directive)
    widening.prepare(unit, annotated, directive, mapping)
    kept = len(annotated.before)
    closing = loop_reductions.reductions(unit, annotated, directive)
    passes = " }" if directive.widening and directive.widening.kind == "peel_and_wait" else ""
    unit.output.edits.behind(
        annotated.statement.end, passes + closing + " }"
    )  # inserted first, so that it ends up outermost where several loops end
    opened, localised, conditions = _distribute(unit, annotated, directive, mapping, indices)
    if isinstance(mapping, TemplateOf) and directive.widening is None:
        bounds.warn(unit, annotated, mapping, localised)
        mistakes.beyond_template(unit, annotated, mapping, localised)
    mistakes.forgotten_reductions(unit, annotated, directive)
    first = not any(
        isinstance(outer, d.Loop) for outer in annotated.directives[: annotated.directives.index(directive)]
    )
    task = any(isinstance(outer, d.Task) for outer in annotated.directives)
    marks = unit.writes.call(annotated.statement.start) if first and not task else ""
    lines, twice = widening.spans(unit, annotated, directive, localised, opened)
    annotated.before.insert(kept, "{ " + marks + " ".join(lines))
    if twice:
        annotated.before.append(twice)
    if conditions:
        annotated.before.append(f"if ({' && '.join(conditions)})")
    ranges = "; ".join(_bounds_in_words(unit, annotated, mapping, *loop) for loop in localised)
    unit.explain(directive, f"loop on {text_of(directive.on)}: {ranges or 'every iteration on each node'}")


def _distribute(
    unit: Unit,
    annotated: AnnotatedStatement,
    directive: d.Loop,
    mapping: NodeArray | TemplateOf,
    indices: list[str],
) -> tuple[list[str], list[tuple[int, str, str]], list[str]]:
    """Shorten the loops whose indices the on clause names.

    Returns the lines before the loops; for each such loop the dimension of the mapping, the index and the
    offset; and the conditions for subscripts without an index.
    """
    assert directive.on is not None
    opened: list[str] = []
    if isinstance(mapping, TemplateOf) and mapping.opened:
        opened.append(f"pwx_need_template({mapping.address}, {where(directive)});")
    localised: list[tuple[int, str, str]] = []
    conditions: list[str] = []
    used = set()
    for dimension, subscript in enumerate(directive.on.subscripts or ()):
        if subscript.star or subscript.whole:
            continue
        if subscript.index is None:
            raise Refused(subscript.place, "a range in the on clause of a loop is not supported yet")
        named = [name for name in indices if name in subscript.index.names()]
        if not named:
            _check_subscript(unit, annotated, subscript.index)
            conditions.append(_owner_condition(mapping, dimension, subscript.index, directive.on.square))
            continue
        if len(named) > 1 or named[0] in used:
            raise Refused(
                subscript.place, f"'{subscript.index.text}' must name one index of the loop, each once"
            )
        used.add(named[0])
        offset = _offset(subscript.index, named[0])
        if isinstance(mapping, NodeArray) and directive.on.square:
            offset += " + 1"
        opened += _localise(unit, annotated, directive, mapping, dimension, named[0], offset)
        localised.append((dimension, named[0], offset))
    for name in directive.indices:
        if name.text not in used:
            raise Refused(name.place, f"index '{name.text}' of the loop is not in the on clause")
    return opened, localised, conditions


def _indices(unit: Unit, annotated: AnnotatedStatement, directive: d.Loop) -> list[str]:
    """The indices of the directive, or without a list those loop indices that the on clause names."""
    assert directive.on is not None
    if directive.indices:
        return [name.text for name in directive.indices]
    names = set()
    for subscript in directive.on.subscripts or ():
        if subscript.index is not None:
            names |= subscript.index.names()
    return [name for name in sorted(names) if loop_nest.with_index(unit, annotated.statement, name)]


def _check_subscript(unit: Unit, annotated: AnnotatedStatement, index: clauses.Expr) -> None:
    """Refuse a subscript without a loop index if it has an unknown name, or one that the loop changes."""
    statement = annotated.statement
    function = unit.syntax.function_at(unit.file, statement.start)
    assert function is not None
    for name in sorted(index.names() - set(unit.syntax.constants)):
        if unit.syntax.variable(name, unit.file, statement.start) is None:
            raise Refused(index.place, f"there is no loop over '{name}' behind this directive")
        changes = [use.range.start for use in function.uses if use.written and use.variable.name == name]
        if any(statement.start <= change < statement.end for change in changes):
            for loop in unit.syntax.loops_in(unit.file, statement):
                loop_nest.read(unit, loop)  # raises its own error if this loop's header cannot be parsed
            raise Refused(index.place, f"'{name}' is changed in the loop, but no loop has it as its index")


def _offset(expr: clauses.Expr, index: str) -> str:
    """The offset that a subscript of the on clause adds to the index."""
    texts = [token.text for token in expr.tokens]
    if texts == [index]:
        return "0"
    if texts[0] == index and texts[1] in ("+", "-"):
        return clauses.Expr(expr.tokens[1:]).text
    if texts[-2:] == ["+", index] and index not in texts[:-2]:
        return clauses.Expr(expr.tokens[:-2]).text
    raise Refused(expr.place, f"expected '{index}', plus or minus an offset, found '{expr.text}'")


def _owner_condition(
    mapping: NodeArray | TemplateOf, dimension: int, index: clauses.Expr, square: bool
) -> str:
    """The condition for a subscript without a loop index: only its owners execute iterations."""
    if isinstance(mapping, NodeArray):
        return f"pwx_is_node({mapping.address}, {dimension}, {index.text}{' + 1' if square else ''})"
    return f"pwx_owns({mapping.address}, {dimension}, {index.text})"


def _bounds_in_words(
    unit: Unit,
    annotated: AnnotatedStatement,
    mapping: NodeArray | TemplateOf,
    dimension: int,
    index: str,
    offset: str,
) -> str:
    """Describe the bounds of a loop for --explain."""
    head = loop_nest.with_index(unit, annotated.statement, index)[0].header
    text = unit.text.text
    first, last = (text[part.start : part.end] for part in (head.first, head.last))
    shift = "" if offset == "0" else f" - ({offset})"
    if isinstance(mapping, NodeArray):
        return f"{index} is this node's number in {mapping.name}{shift}"
    share = mapping.share(dimension)
    if mapping.kind_of(dimension) == "cyclic":
        return f"{index} from {first}, {index} {head.relation} {last}, of which this node owns ({share})"
    begin, end = ("last", "first") if head.down else ("first", "last")
    beyond = {"<": " + 1", "!=": " + 1", ">": " - 1"}.get(head.relation, "")
    low, high = ("min", "max") if head.down else ("max", "min")
    return (
        f"{index} from {low}({first}, {begin} owned{shift}), {index} {head.relation} "
        f"{high}({last}, {end} owned{shift}{beyond}) ({share})"
    )


def _localise(
    unit: Unit,
    annotated: AnnotatedStatement,
    directive: d.Loop,
    mapping: NodeArray | TemplateOf,
    dimension: int,
    index: str,
    offset: str,
) -> list[str]:
    loops = loop_nest.with_index(unit, annotated.statement, index)
    if not loops:
        other = loop_nest.read(
            unit, annotated.statement
        )  # raises its own error if the header cannot be parsed
        place = unit.text.place(other.header.whole.start, other.header.whole.end)
        raise Refused(
            directive.place, f"there is no loop over '{index}' behind this directive", (place, "this follows")
        )
    for inner in loops:
        restrictions.check(unit, inner)
        variable = unit.syntax.variable(index, unit.file, inner.body.start)
        if variable and variable.spelling in ("float", "double", "long double"):
            place = unit.text.place(inner.header.parts[0].start, inner.header.parts[0].end)
            raise Refused(
                place, f"the index '{index}' of a distributed loop is an integer, not {variable.spelling}"
            )
    lower, upper = widening.beyond_owned(directive, dimension)
    for inner in loops:
        unit.loops.over[inner.statement.start] = LoopOver(mapping, dimension, offset, lower, upper)
    if isinstance(mapping, TemplateOf) and mapping.kind_of(dimension) == "cyclic":
        for inner in loops:
            unit.loops.localised[inner.statement.start] = "cyclic"
            cycle(unit, unit.output.edits, inner, index)
        return [f"const pwx_cycle {index}__c = pwx_cycle_of({mapping.address}, {dimension}, {offset});"]
    for inner in loops:
        unit.loops.localised[inner.statement.start] = "span"
        bound(unit, unit.output.edits, inner, index)
    call = "pwx_owned_node" if isinstance(mapping, NodeArray) else "pwx_owned"
    return [f"const pwx_span {index}__s = {call}({mapping.address}, {dimension}, {offset});"]


ENDS = {"<": "pwx_below", "!=": "pwx_below", "<=": "pwx_up_to", ">": "pwx_above", ">=": "pwx_down_to"}


def unbounded(relation: str, index: str) -> tuple[str, str]:
    """The first and last value in the header of a loop that covers all of its node's span."""
    return f"{index}__s.first", f"{index}__s.last" + ("" if relation == "<=" else " + 1")


def bound(unit: Unit, edits: Edits, loop: For, index: str) -> None:
    """Edit the first and last value of a loop so that it covers only what the node owns."""
    head = loop.header
    if loop.statement.start in unit.loops.unbound:
        if head.down or head.step != "1":
            place = unit.text.place(head.parts[2].start, head.parts[2].end)
            raise Refused(place, "a loop with /unbound/ must go upwards by 1")
        first, last = unbounded(head.relation, index)
        edits.replace(head.first.start, head.first.end, first)
        edits.replace(head.last.start, head.last.end, last)
        return
    call = "pwx_first_down" if head.down else "pwx_first"
    edits.before(head.first.start, f"{call}({index}__s, ")
    edits.behind(head.first.end, f", {head.step})")
    if head.relation == "!=" and (head.down or head.step != "1"):
        place = unit.text.place(head.parts[1].start, head.parts[1].end)
        raise Refused(place, "a distributed loop with '!=' must go upwards by 1; write '<'")
    if head.relation == "!=":
        edits.replace(head.relation_range.start, head.relation_range.end, ">" if head.turned else "<")
    edits.before(head.last.start, f"{ENDS[head.relation]}({index}__s, ")
    edits.behind(head.last.end, ")")


def cycle(unit: Unit, edits: Edits, loop: For, index: str) -> None:
    """Edit a loop over a cyclic dimension to count the node's elements, and to compute the index."""
    head = loop.header
    text = unit.text.text
    if head.down:
        place = unit.text.place(head.parts[2].start, head.parts[2].end)
        raise Refused(place, "a loop over a cyclic dimension must go upwards")
    first, last = (text[part.start : part.end] for part in (head.first, head.last))
    beyond = f"({last}) + 1" if head.relation == "<=" else last
    variable = unit.syntax.variable(index, unit.file, loop.statement.end - 1)
    kind = head.declared or (variable.element if variable else "long")
    edits.replace(
        head.parts[0].start, head.parts[0].end, f"long {index}__q = pwx_before({index}__c, {first})"
    )
    edits.replace(head.parts[1].start, head.parts[1].end, f"{index}__q < pwx_before({index}__c, {beyond})")
    edits.replace(head.parts[2].start, head.parts[2].end, f"{index}__q++")
    skip = "" if head.step == "1" else f"if (({index} - ({first})) % ({head.step})) continue; "
    edits.before(loop.body.start, f"{{ const {kind} {index} = pwx_at({index}__c, {index}__q); {skip}")
    edits.behind(loop.body.end, " }")


LOWERINGS: dict[str, Lowering] = {
    "xmp loop": HasStatement(loop),
    "xmp task": HasStatement(task, host=True),
    "xmp tasks": HasStatement(lambda _unit, _stack, _directive: None, host=True),
}
