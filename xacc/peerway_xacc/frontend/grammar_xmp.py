"""The grammar of `#pragma xmp …`: loops and tasks here, mapping and communication in two other modules."""

from __future__ import annotations

from collections.abc import Callable

from peerway_xacc.frontend import clauses, grammar_xmp_communication, grammar_xmp_mapping
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.parser import Parser, hint
from peerway_xacc.frontend.preprocess import Pragma

NOT_YET = {
    "local_alias": "local_alias", "save_desc": "save_desc",
    "image": "image", "tasklet": "tasklets", "tasklets": "tasklets",
}  # fmt: skip


def parse(pragma: Pragma, parser: Parser | None = None) -> d.Directive:
    """Parse a pragma into its directive. Raises Refused if it is not a directive.

    `parser` reads another language's directives.
    """
    parser = parser or Parser(pragma)
    word = parser.name("a directive of XcalableMP")
    parse_one = GRAMMAR.get(word.text.lower())
    if parse_one is None:
        if why_not_yet := NOT_YET.get(word.text.lower()):
            raise Refused(word.place, f"{why_not_yet} is not supported yet")
        raise Refused(word.place, f"unknown directive '{word.text}'{hint(word.text, GRAMMAR)}")
    directive = parse_one(parser, d.Directive(word.place, pragma.start, pragma.end, pragma.file))
    parser.end()
    directive.spelling = f"xmp {word.text.lower()}"
    return directive


def _loop(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Loop(base.place, base.start, base.end, base.file)
    if parser.sees("(") or parser.sees("["):
        names, _square = parser.dimensions("the loop", lambda _square: parser.name("the index of a loop"))
        directive.indices = names
    parser.expect("on", "behind the indices of the loop")
    directive.on = parser.ref("a reference to a template or to nodes")
    while token := parser.next():
        word = token.text.lower()
        if word == "reduction":
            parser.take()
            directive.reduced += grammar_xmp_communication.reduced(parser)
        elif word in ("expand", "margin", "peel_and_wait"):
            if directive.widening:
                raise Refused(
                    token.place, f"{word} and {directive.widening.kind} on one loop; one is possible"
                )
            directive.widening = _widening(parser)
        elif word in ("acc", "host"):
            parser.take()
        elif word == "profile":
            raise Refused(token.place, "the clause profile of loop is not supported yet")
        else:
            raise parser.unexpected("reduction(…) or the end of the directive")
    return directive


def _widening(parser: Parser) -> clauses.Widening:
    word = parser.take()
    kind = word.text.lower()
    parser.expect("(", f"behind {kind}")
    number = None
    if kind == "peel_and_wait":
        number = parser.expr("the number of an asynchronous communication")
        parser.expect(",", "behind the number")

    def item() -> clauses.Width:
        place = parser.here()
        unbound = parser.accept("/")
        if unbound:
            parser.expect("unbound", "behind '/'")
            parser.expect("/", "behind unbound")
        lower = parser.expr("a width")
        upper = parser.expr("the width above") if parser.accept(":") else lower
        return clauses.Width(place, lower, upper, unbound=unbound)

    widths = tuple(parser.some(item))
    parser.expect(")", f"behind the widths of {kind}")
    return clauses.Widening(kind, word.place, widths, number)


def _task(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Task(base.place, base.start, base.end, base.file)
    parser.expect("on", "behind task")
    directive.on = parser.ref("a reference to nodes or to a template")
    directive.nocomm = parser.accept("nocomm")
    return directive


def _tasks(_parser: Parser, base: d.Directive) -> d.Directive:
    return d.Tasks(base.place, base.start, base.end, base.file)


def _array(parser: Parser, base: d.Directive) -> d.Directive:
    parser.expect("on", "behind array")
    return d.ArrayOn(base.place, base.start, base.end, base.file, on=parser.ref("a reference to a template"))


GRAMMAR: dict[str, Callable[[Parser, d.Directive], d.Directive]] = {
    "loop": _loop,
    "task": _task,
    "tasks": _tasks,
    "array": _array,
    **grammar_xmp_mapping.GRAMMAR,
    **grammar_xmp_communication.GRAMMAR,
}
