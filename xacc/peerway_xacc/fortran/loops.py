"""Loops and tasks of xmp: a DO goes over what its node owns, a task runs on its nodes only."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis.mapping import NodeArray, TemplateOf
from peerway_xacc.fortran.generated import KINDS, Call
from peerway_xacc.fortran.grammar import Arguments, End, FortranExpr, place_of
from peerway_xacc.fortran.scopes import call_of
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split, written
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Expr, Name, Subscript, Widening
from peerway_xacc.frontend.diagnostics import Place, Refused, counted
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import reference, referred, where
from peerway_xacc.lowering.loop_reductions import all_owners
from peerway_xacc.lowering.loops import text_of
from peerway_xacc.lowering.types import OPERATORS

_NUMBERS_OF_SPAN, _NUMBERS_OF_CYCLE = 2, 5


@dataclass(frozen=True)
class Do:
    """A DO over an index: its statement, the words of its bounds, and the number of the line that ends it."""

    statement: Statement
    index: Word
    first: list[Word]
    last: list[Word]
    step: list[Word]
    end: int
    construct: str = ""

    def text(self, words: list[Word]) -> str:
        """What the program has for some of its words."""
        return written(self.statement.logical, words)


def do_header(statement: Statement) -> tuple[list[Word], str, str] | None:
    """The words behind DO and its label, the label, the name of the construct; None of other statements."""
    words = statement.words
    construct = ""
    if len(words) > 2 and words[1].text == ":" and words[0].kind == "name":
        construct, words = words[0].text, words[2:]
    if words[0].text != "do" or (len(words) > 1 and words[1].text in ("=", "(", "%")):
        return None
    words, label = words[1:], ""
    if words and words[0].kind == "number":
        label, words = words[0].text, words[1:]
    if words and words[0].text == ",":
        words = words[1:]
    return words, label, construct


def loop_end(unit: FortranUnit, statement: Statement) -> int:
    """The number of the statement that ends the DO that begins with a statement."""
    head = do_header(statement)
    assert head is not None
    open_loops = [head[1]]
    last = statement.number
    for other in unit.statements_behind(statement.number):
        if other.scope is not statement.scope or other.number >= statement.scope.end:
            break
        last = other.number
        texts = [word.text for word in other.words[:2]]
        nested = do_header(other)
        if nested is not None:
            open_loops.append(nested[1])
        elif (texts[0] == "enddo" or texts == ["end", "do"]) and open_loops[-1] == "":
            open_loops.pop()
        while open_loops and open_loops[-1] and _same(open_loops[-1], other.logical.label):
            open_loops.pop()
        if not open_loops:
            return other.number
    place = statement.words[0].place
    raise Refused(
        place, "this DO has no end", (unit.text.place(unit.structure.logicals[last].start), "up to here")
    )


def _same(label: str, other: str) -> bool:
    return bool(other) and int(label) == int(other)


def read_do(unit: FortranUnit, statement: Statement) -> Do | None:
    """A DO that counts; None of any other statement."""
    head = do_header(statement)
    if head is None:
        return None
    words, _label, construct = head
    if len(words) < 2 or words[1].text != "=" or words[0].kind != "name":
        return None
    bounds = split(words[2:], ",")
    if len(bounds) not in (2, 3) or not all(bounds):
        return None
    step = bounds[2] if len(bounds) == 3 else []
    return Do(statement, words[0], bounds[0], bounds[1], step, loop_end(unit, statement), construct)


def nest(unit: FortranUnit, outer: Do) -> list[Do]:
    """The counting loops of a nest, the outermost first."""
    inner = [
        statement
        for statement in unit.statements_behind(outer.statement.number)
        if statement.number < outer.end
    ]
    return [outer, *(do for statement in inner if (do := read_do(unit, statement)))]


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
    _check_widening(directive)
    mapping = referred(unit, directive.on, directive)
    loops = nest(unit, outer)
    localised, conditions = _matched(unit, directive, loops)
    scope = unit.scope_of(directive)
    variable = f"pwx_s{directive.place.line}_{unit.number_of(directive)}"
    lines, size = [], 0
    if isinstance(mapping, TemplateOf) and mapping.opened:
        lines.append(f"pwx_need_template({mapping.address}, {where(directive)});")
    for dimension, index, offset in localised:
        same = [do for do in loops if do.index.text == index]
        for do in same:
            _check_jumps(unit, do)
        if isinstance(mapping, TemplateOf) and mapping.kind_of(dimension) == "cyclic":
            _not_for_threads(unit, directive, outer)
            lines += _cycle_lines(mapping, dimension, offset, size)
            for do in same:
                _deal(unit, scope, do, variable, size)
            size += _NUMBERS_OF_CYCLE
        else:
            call = "pwx_owned_node" if isinstance(mapping, NodeArray) else "pwx_owned"
            span = f"{call}({mapping.address}, {dimension}, {offset})"
            unbound = False
            if directive.widening:
                span, unbound = _widened(directive.widening, dimension, span, same, arguments)
            lines.append(f"{{ const pwx_span s = {span}; c0[{size}] = s.first; c0[{size + 1}] = s.last; }}")
            for do in same:
                _bound(unit, scope, do, variable, size, unbound)
            size += _NUMBERS_OF_SPAN
    if conditions:
        lines.append(f"c0[{size}] = {' && '.join(conditions)};")
    _emit(unit, directive, outer, variable, size + bool(conditions), lines, bool(conditions), arguments)
    bounds = ", ".join(f"{index} over what this node owns" for _, index, _ in localised)
    unit.explain(directive, f"loop on {text_of(directive.on)}: {bounds or 'every iteration on each node'}")


def _emit(
    unit: FortranUnit, directive: d.Loop, outer: Do, variable: str, size: int, lines: list[str],
    guarded: bool, arguments: Arguments,
) -> None:  # fmt: skip
    """Write the calls before and behind a loop."""
    scope = unit.scope_of(directive)
    opened, closed = _reductions(unit, directive, arguments)
    before = list(opened)
    if lines and size:
        call = call_of(unit, "loop", lines, arguments, directive)
        call.others.insert(0, ("numbers", variable))
        unit.generated.declare(scope, f"integer(8) :: {variable}({size})")
        before.append(unit.generated.call(scope, call))
    behind = list(closed)
    if guarded:
        before.append(f"if ({variable}({size}) /= 0) then")
        behind.insert(0, "end if")
    number = unit.number_of(directive)
    unit.generated.before(number, *before)
    unit.generated.behind(_end_with_directives(unit, outer.end), *behind)


def _end_with_directives(unit: FortranUnit, end: int) -> int:
    """The line that ends a loop, or the last `end` directive of OpenMP or OpenACC behind it."""
    logicals = unit.structure.logicals
    while end + 1 < len(logicals) and logicals[end + 1].model in ("omp", "acc"):
        if not logicals[end + 1].text.strip().lower().startswith("end"):
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


def _is_one(do: Do) -> bool:
    return not do.step or do.text(do.step) == "1"


def _check_widening(directive: d.Loop) -> None:
    widening = directive.widening
    assert directive.on is not None
    if widening is None:
        return
    if widening.kind != "expand":
        raise Refused(widening.place, f"the clause {widening.kind} is not supported in Fortran yet")
    count = len(directive.on.subscripts or ())
    if len(widening.widths) != count:
        message = f"{counted(len(widening.widths), 'width')} of expand for {counted(count, 'dimension')}"
        raise Refused(widening.place, message)


def _widened(
    widening: Widening, dimension: int, span: str, loops: list[Do], arguments: Arguments
) -> tuple[str, bool]:
    """The span of a loop with expand, and: may it leave the loop's bounds?"""
    width = widening.widths[dimension]
    if len(loops) != 1 or not _is_one(loops[0]):
        raise Refused(widening.place, f"expand needs one loop over '{loops[0].index.text}', upwards by 1")
    assert width.lower is not None
    assert width.upper is not None
    first, last = (arguments.c_text(loops[0].text(words)) for words in (loops[0].first, loops[0].last))
    own = f"pwx_local_span({span}, {first}, {last})"
    widths = f"{width.lower.text}, {width.upper.text}, {int(width.unbound)}"
    return f"pwx_expanded({own}, {widths}, {first}, {last})", width.unbound


def _bound(unit: FortranUnit, scope: Scope, do: Do, variable: str, at: int, unbound: bool) -> None:
    """Edit the first and the last value of a DO: between them what the node owns."""
    first, last = do.text(do.first), do.text(do.last)
    span = f"{variable}({at + 1}:{at + 2})"
    if unbound:
        low, high = f"{variable}({at + 1})", f"{variable}({at + 2})"
    elif _is_one(do):
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
    if not _is_one(do):
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


# ---- tasks ----


def task(unit: FortranUnit, directive: d.Task) -> None:
    """The statements up to `end task` run on the nodes of the reference only."""
    scope = unit.scope_of(directive)
    number = unit.number_of(directive)
    end = _end_of_task(unit, directive)
    _check_returns(unit, directive, end)
    variable = f"pwx_t{directive.place.line}_{number}"
    unit.generated.declare(scope, f"integer(8) :: {variable}(2)")
    nodes = reference(unit, directive.on, directive)
    lines = [
        f"const pwx_task task = pwx_task_begin({nodes}, {int(directive.nocomm)}, {where(directive)});",
        "c0[0] = task.inside;", "c0[1] = task.pushed;",
    ]  # fmt: skip
    begin = call_of(unit, "task", lines, unit.reads[id(directive)].arguments, directive)
    begin.others.insert(0, ("numbers", variable))
    over = Call(unit.name("task_end"), [
        "pwx_task task = {(int)c0[0], (int)c0[1]};", "pwx_task_end(&task);"
    ], others=[("numbers", variable)])  # fmt: skip
    unit.generated.before(number, unit.generated.call(scope, begin), f"if ({variable}(1) /= 0) then")
    unit.generated.before(unit.number_of(end), "end if", unit.generated.call(scope, over))
    unit.explain(directive, f"task: what follows runs on {text_of(directive.on)} only")


def _end_of_task(unit: FortranUnit, directive: d.Task) -> End:
    depth = 0
    for other in unit.directives:
        if other.start <= directive.start or unit.scope_of(other) is not unit.scope_of(directive):
            continue
        if isinstance(other, d.Task):
            depth += 1
        elif isinstance(other, End) and other.construct == "task":
            if depth == 0:
                return other
            depth -= 1
    raise Refused(directive.place, "this task has no end; write '!$xmp end task' behind its statements")


def _check_returns(unit: FortranUnit, directive: d.Task, end: End) -> None:
    for statement in unit.statements_behind(unit.number_of(directive)):
        if statement.number > unit.number_of(end):
            return
        words = statement.words
        if words[-1].text == "return" and (len(words) == 1 or words[0].text == "if"):
            note: tuple[Place, str] = (directive.place, "the task begins here")
            raise Refused(words[-1].place, "RETURN leaves a task before its end", note)


def ends(unit: FortranUnit, directive: End) -> None:
    """An `end task` or `end tasks` must end something."""
    kind = d.Task if directive.construct == "task" else d.Tasks
    depth = 0
    for other in unit.directives:
        if other.start > directive.start or unit.scope_of(other) is not unit.scope_of(directive):
            continue
        depth += isinstance(other, kind)
        depth -= isinstance(other, End) and other.construct == directive.construct
    if depth < 0:
        raise Refused(directive.place, f"there is no {directive.construct} that this could end")
