"""Loops of xmp: a DO goes over what its node owns."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import NodeArray, TemplateOf
from peerway_xacc.fortran import widening
from peerway_xacc.fortran.do_loops import Do, do_header, loop_end, nest, read_do
from peerway_xacc.fortran.generated import KINDS, Call
from peerway_xacc.fortran.grammar import Arguments, FortranExpr, place_of
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import closing
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Expr, Name, Subscript
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import referred, where
from peerway_xacc.lowering.loop_reductions import all_owners
from peerway_xacc.lowering.loops import text_of
from peerway_xacc.lowering.types import OPERATORS

_NUMBERS_OF_SPAN, _NUMBERS_OF_CYCLE = 2, 5


def loop(unit: FortranUnit, directive: d.Loop) -> None:
    """Each loop of the directive goes over what its node owns."""
    assert directive.on is not None
    arguments = unit.reads[id(directive)].arguments
    statement = unit.statement_behind(directive)
    outer = read_do(unit, statement) if statement else None
    if outer is None:
        note = (statement.words[0].place, "this follows") if statement else None
        raise Refused(directive.place, "expected a DO with an index behind this directive", note)
    if directive.on.subscripts is None:
        name = directive.on.name
        raise Refused(name.place, f"the on clause of a loop needs subscripts, as in {name.text}(i)")
    mapping = referred(unit, directive.on, directive)
    loops = nest(unit, outer)
    localised, conditions = _matched(unit, directive, loops)
    scope = unit.scope_of(directive)
    variable = f"pwx_s{directive.place.line}_{unit.number_of(directive)}"
    widened = widening.read(unit, directive, variable)
    lines, size = widened.opening(directive) if widened else [], 0
    if isinstance(mapping, TemplateOf) and mapping.opened:
        lines.append(f"pwx_need_template({mapping.address}, {where(directive)});")
    for dimension, index, offset in localised:
        same = [do for do in loops if do.index.text == index]
        for do in same:
            _check_jumps(unit, do)
        if widened:
            widening.check(widened, mapping, dimension, same, {index for _, index, _ in localised})
        if isinstance(mapping, TemplateOf) and mapping.kind_of(dimension) == "cyclic":
            _not_for_threads(unit, directive, outer)
            lines += _cycle_lines(mapping, dimension, offset, size)
            for do in same:
                _deal(unit, scope, do, variable, size)
            size += _NUMBERS_OF_CYCLE
        else:
            call = "pwx_owned_node" if isinstance(mapping, NodeArray) else "pwx_owned"
            span = f"{call}({mapping.address}, {dimension}, {offset})"
            if widened:
                lines += widened.numbers(dimension, index, span, same, size)
            else:
                lines.append(
                    f"{{ const pwx_span s = {span}; c0[{size}] = s.first; c0[{size + 1}] = s.last; }}"
                )
            for do in same:
                _bound(unit, scope, do, variable, size, exact=widened is not None)
            size += widened.size if widened else _NUMBERS_OF_SPAN
    if widened:
        widening.guard(unit, widened, loops)
    if conditions:
        lines.append(f"c0[{size}] = {' && '.join(conditions)};")
    twice = widened.turn if widened and widened.executes_twice else ""
    numbers = (variable, size + bool(conditions))
    _emit(unit, directive, outer, numbers, lines, bool(conditions), arguments, twice)
    bounds = ", ".join(f"{index} over what this node owns" for _, index, _ in localised)
    unit.explain(directive, f"loop on {text_of(directive.on)}: {bounds or 'every iteration on each node'}")


def _emit(
    unit: FortranUnit, directive: d.Loop, outer: Do, numbers: tuple[str, int], lines: list[str],
    guarded: bool, arguments: Arguments, twice: str,
) -> None:  # fmt: skip
    """Write the calls before and behind a loop; one that is executed twice is in a loop over `twice`."""
    scope = unit.scope_of(directive)
    variable, size = numbers
    opened, closed = _reductions(unit, directive, arguments)
    before = list(opened)
    if twice:
        unit.generated.declare(scope, f"integer(8) :: {twice}")
        before.append(f"do {twice} = 0, 1")
    if lines and size:
        call = call_of(unit, "loop", lines, arguments, directive)
        call.others.insert(0, ("numbers", variable))
        unit.generated.declare(scope, f"integer(8) :: {variable}({size})")
        before.append(unit.generated.call(scope, call))
    behind = ["end do", *closed] if twice else list(closed)
    if guarded:
        before.append(f"if ({variable}({size}) /= 0) then")
        behind.insert(0, "end if")
    number = unit.number_of(directive)
    unit.generated.before(number, *before)
    unit.generated.behind(_end_with_directives(unit, number, outer), *behind)


def _end_with_directives(unit: FortranUnit, number: int, outer: Do) -> int:
    """The line that ends a loop, or behind it that of a directive of OpenMP or OpenACC that ends one which
    begins between the loop and the directive on line `number`.
    """
    logicals, end = unit.structure.logicals, outer.end
    begun = [
        (line.model, " ".join(line.text.lower().split()))
        for line in logicals[number + 1 : outer.statement.number]
    ]
    while end + 1 < len(logicals) and logicals[end + 1].model in ("omp", "acc"):
        words = logicals[end + 1].text.lower().split()
        ended = " ".join(words)[3:].strip()
        if not words or not words[0].startswith("end"):
            break
        if not any(model == logicals[end + 1].model and text.startswith(ended) for model, text in begun):
            break
        end += 1
    return end


def _matched(
    unit: FortranUnit, directive: d.Loop, loops: list[Do]
) -> tuple[list[tuple[int, str, str]], list[str]]:
    """The dimensions of the mapping with the index and the offset of the loop over each; and the conditions
    for subscripts that no loop is over.
    """
    assert directive.on is not None
    mapping = referred(unit, directive.on, directive)
    indices = {do.index.text for do in loops}
    names = {name.text for name in directive.indices} or indices
    localised: list[tuple[int, str, str]] = []
    conditions: list[str] = []
    used: set[str] = set()
    for dimension, subscript in enumerate(directive.on.subscripts or ()):
        if subscript.star or subscript.whole:
            continue
        if subscript.index is None:
            raise Refused(subscript.place, "a range in the on clause of a loop is not supported yet")
        named = sorted(subscript.index.names() & names)
        if not named:
            conditions.append(_one_place(mapping, dimension, subscript.index))
            continue
        if len(named) > 1 or named[0] in used:
            message = f"'{_fortran(subscript.index)}' must name one index of the loop, each once"
            raise Refused(subscript.place, message)
        if named[0] not in indices:
            note = (place_of(loops[0].statement.words), "this follows")
            raise Refused(directive.place, f"there is no loop over '{named[0]}' behind this directive", note)
        used.add(named[0])
        localised.append((dimension, named[0], _offset(subscript, named[0])))
    for name in directive.indices:
        if name.text not in used:
            raise Refused(name.place, f"index '{name.text}' of the loop is not in the on clause")
    return localised, conditions


def _fortran(expr: Expr) -> str:
    return expr.fortran if isinstance(expr, FortranExpr) else expr.text


def _offset(subscript: Subscript, index: str) -> str:
    expr = subscript.index
    assert isinstance(expr, FortranExpr)
    texts = [token.text for token in expr.tokens]
    if texts == [index]:
        return "0"
    if texts[0] == index and texts[1] in ("+", "-") and index not in texts[1:]:
        return expr.behind(1).text
    if texts[-2:] == ["+", index] and index not in texts[:-2]:
        return FortranExpr(expr.tokens[:-2], expr.logical, expr.arguments).text
    raise Refused(subscript.place, f"expected '{index}', plus or minus an offset, found '{expr.fortran}'")


def _one_place(mapping: NodeArray | TemplateOf, dimension: int, index: Expr) -> str:
    if isinstance(mapping, NodeArray):
        return f"pwx_is_node({mapping.address}, {dimension}, {index.text})"
    return f"pwx_owns({mapping.address}, {dimension}, {index.text})"


def _bound(unit: FortranUnit, scope: Scope, do: Do, variable: str, at: int, exact: bool) -> None:
    """Edit the first and the last value of a DO: between them what the node owns. `exact` numbers are within
    the loop's bounds already, or leave them on purpose.
    """
    first, last = do.text(do.first), do.text(do.last)
    span = f"{variable}({at + 1}:{at + 2})"
    if exact:
        low, high = f"{variable}({at + 1})", f"{variable}({at + 2})"
    elif do.counts_by_one:
        low = f"max(int({first}, 8), {variable}({at + 1}))"
        high = f"min(int({last}, 8), {variable}({at + 2}))"
    else:
        step = f"int({do.text(do.step)}, 8)"
        low = f"pwx_f_first(int({first}, 8), {step}, {span})"
        high = f"pwx_f_until(int({last}, 8), {step}, {span})"
        _helpers(unit, scope)
    number, kind = do.statement.number, f"kind({do.index.text})"
    unit.generated.edit(number, do.first[0].start, do.first[-1].end, f"int({low}, {kind})")
    unit.generated.edit(number, do.last[0].start, do.last[-1].end, f"int({high}, {kind})")


def _helpers(unit: FortranUnit, scope: Scope) -> None:
    """The interfaces of the run time's functions for bounds."""
    have = unit.generated.interfaces.setdefault(scope.number, [])
    if any("pwx_f_first" in line for line in have):
        return
    for name in ("pwx_f_first", "pwx_f_until"):
        have += [
            f"function {name}(bound, step, own) bind(C)", KINDS,
            "integer(c_int64_t), intent(in) :: bound, step, own(2)",
            f"integer(c_int64_t) :: {name}", f"end function {name}",
        ]  # fmt: skip
    have += [
        "function pwx_f_dealt(cycle, bound) bind(C)", KINDS,
        "integer(c_int64_t), intent(in) :: cycle(5), bound",
        "integer(c_int64_t) :: pwx_f_dealt", "end function pwx_f_dealt",
    ]  # fmt: skip


def _cycle_lines(mapping: TemplateOf, dimension: int, offset: str, at: int) -> list[str]:
    names = ("lower", "upper", "width", "parts", "at")
    values = " ".join(f"c0[{at + number}] = s.{name};" for number, name in enumerate(names))
    return [f"{{ const pwx_cycle s = pwx_cycle_of({mapping.address}, {dimension}, {offset}); {values} }}"]


def _deal(unit: FortranUnit, scope: Scope, do: Do, variable: str, at: int) -> None:
    """A loop over a cyclic dimension counts what the node owns, and makes the index of the count."""
    _helpers(unit, scope)
    first, last = do.text(do.first), do.text(do.last)
    number = do.statement.number
    count = f"pwx_q{number}"
    unit.generated.declare(scope, f"integer(8) :: {count}")
    cycle = f"{variable}({at + 1}:{at + 5})"
    lower, _, width, parts, mine = (f"{variable}({at + place})" for place in range(1, 6))
    if do.step and do.text(do.step).startswith("-"):
        raise Refused(place_of(do.step), "a loop over a cyclic dimension must go upwards")
    unit.generated.edit(number, do.index.start, do.index.end, count)
    unit.generated.edit(number, do.first[0].start, do.first[-1].end, f"pwx_f_dealt({cycle}, int({first}, 8))")
    end = do.step[-1].end if do.step else do.last[-1].end
    unit.generated.edit(number, do.last[0].start, end, f"pwx_f_dealt({cycle}, int({last}, 8) + 1) - 1")
    value = f"{lower} + ({count}/{width}*{parts} + {mine})*{width} + mod({count}, {width})"
    lines = [f"{do.index.text} = int({value}, kind({do.index.text}))"]
    if not do.counts_by_one:
        lines.append(f"if (mod({do.index.text} - ({first}), {do.text(do.step)}) /= 0) cycle")
    unit.generated.behind(number, *lines)


def _not_for_threads(unit: FortranUnit, directive: d.Loop, outer: Do) -> None:
    logicals = unit.structure.logicals
    for number in range(unit.number_of(directive) + 1, outer.statement.number):
        if logicals[number].model in ("omp", "acc"):
            place = unit.text.place(logicals[number].start)
            raise Refused(place, "a loop over a cyclic dimension cannot be shared by threads yet; use block")


def _check_jumps(unit: FortranUnit, do: Do) -> None:
    """Nothing may leave a distributed loop before its end."""
    open_ends: list[tuple[int, str]] = []
    for statement in unit.statements_behind(do.statement.number):
        if statement.number > do.end:
            return
        open_ends = [entry for entry in open_ends if entry[0] >= statement.number]
        head = do_header(statement)
        if head is not None:
            open_ends.append((loop_end(unit, statement), head[2]))
            continue
        words = statement.words
        at = closing(words, 1) + 1 if words[0].text == "if" and len(words) > 1 else 0
        if at >= len(words):
            continue
        text = words[at].text
        target = words[at + 1].text if at + 1 < len(words) else ""
        leaves = text == "return" and len(words) == at + 1
        if text == "exit":
            inside = any(name == target for _, name in open_ends) if target else bool(open_ends)
            leaves = not inside
        if leaves:
            message = f"{text.upper()} leaves a distributed loop before its end; all its iterations must run"
            raise Refused(words[at].place, message, (do.statement.words[0].place, "the loop begins here"))


def _reductions(unit: FortranUnit, directive: d.Loop, arguments: Arguments) -> tuple[list[str], list[str]]:
    """The calls before and behind a loop with the clause reduction."""
    opened: list[str] = []
    closed: list[str] = []
    if not directive.reduced:
        return opened, closed
    assert directive.on is not None
    scope = unit.scope_of(directive)
    nodes = all_owners(unit, directive, directive.on)
    for operand in directive.reduced:
        name = operand.name.text
        if unit.array_at(name, scope):
            raise Refused(
                operand.name.place,
                f"'{name}' is a distributed array; write '!$xmp reduction' behind the loop",
            )
        others = [("any", name)]
        if operand.locations:
            closed += _located(unit, directive, operand.operator, operand.name, operand.locations, nodes)
            continue
        operator = OPERATORS[operand.operator]
        begin = f"pwx_f_reduction_begin({operator}, c0, {quoted(name)}, {where(directive)});"
        end = f"pwx_f_reduction_end({nodes}, {operator}, c0, {quoted(name)}, {where(directive)});"
        opened.append(unit.generated.call(scope, Call(unit.name("reduce"), [begin], others=others)))
        closed.insert(
            0, unit.generated.call(scope, Call(unit.name("reduced"), [end], arguments.texts, others))
        )
    return opened, closed


def _located(
    unit: FortranUnit, directive: d.Loop, operator: str, name: Name, locations: tuple[Name, ...], nodes: str
) -> list[str]:
    if unit.is_cyclic(directive):
        raise Refused(name.place, f"{operator} over a cyclic dimension is not supported yet")
    kind = "PWX_" + operator.replace("first", "first_").replace("last", "last_").upper()
    plain = "PWX_MAX" if operator.endswith("max") else "PWX_MIN"
    others = [("any", name.text), *(("any", location.text) for location in locations)]
    places = ", ".join(f"c{number + 1}->base_addr" for number in range(len(locations)))
    sizes = ", ".join(f"c{number + 1}->elem_len" for number in range(len(locations)))
    line = (
        f"pwx_reduce_location({nodes}, {kind}, "
        f"pwx_f_type(c0, {plain}, {quoted(name.text)}, {where(directive)}), "
        f"c0->base_addr, {len(locations)}, (void* const[]){{{places}}}, (const size_t[]){{{sizes}}}, "
        f"{where(directive)});"
    )
    return [unit.generated.call(unit.scope_of(directive), Call(unit.name("reduced"), [line], others=others))]
