"""The grammar of xmp's communication: reflect, reduction, bcast, barrier, gmove, coarrays, post and wait."""

from __future__ import annotations

from collections.abc import Callable

from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.parser import Parser

_OPERATORS = ("+", "*", "-", "&", "|", "^", "&&", "||")
_WORDS = ("max", "min", "firstmax", "firstmin", "lastmax", "lastmin")


def width(parser: Parser, full: bool = False) -> clauses.Width:
    """The width of a shadow: `1`, `1:0`, `/periodic/1`, and also `*` if `full`."""
    place = parser.here()
    if full and parser.accept("*"):
        return clauses.Width(place, full=True)
    periodic = False
    if parser.accept("/"):
        if not parser.accept("periodic"):
            raise parser.unexpected("periodic")
        parser.expect("/", "behind periodic")
        periodic = True
    lower = parser.at_least(0, "a width")
    upper = parser.at_least(0, "the width of the upper side") if parser.accept(":") else lower
    return clauses.Width(place, lower, upper, periodic=periodic)


def reduced(parser: Parser) -> list[clauses.Reduced]:
    """The variables of a reduction: `(+: a, b)` or `(firstmax: a/i, j/)`."""
    parser.expect("(", "behind reduction")
    token = parser.next()
    if token is None or (token.text not in _OPERATORS and token.text.lower() not in _WORDS):
        raise parser.unexpected("an operator of a reduction (" + " ".join(_OPERATORS + _WORDS) + ")")
    operator = parser.take().text.lower()
    parser.expect(":", "behind the operator")

    def item() -> clauses.Reduced:
        name = parser.name("the name of a variable")
        located = operator.startswith(("first", "last"))
        locations: list[clauses.Name] = []
        if parser.accept("/"):
            if not located:
                raise Refused(
                    name.place, f"only firstmax, firstmin, lastmax and lastmin have locations, not {operator}"
                )
            locations = parser.names("the name of a variable")
            parser.expect("/", "behind the locations")
        elif located:
            raise parser.unexpected(f"'/' and the variables that {operator} sets")
        return clauses.Reduced(operator, name, tuple(locations))

    operands = parser.some(item)
    parser.expect(")", "behind the variables of a reduction")
    return operands


def _clauses(parser: Parser, directive: d.Communication, more: dict[str, Callable[[], None]]) -> None:
    """Parse a communication's clauses, in any order. `more` has the clauses that only this directive has."""
    while token := parser.next():
        word = token.text.lower()
        if word in more:
            parser.take()
            more[word]()
        elif word == "on" and directive.on is None:
            parser.take()
            directive.on = parser.ref("a reference to nodes or to a template")
        elif word == "async" and directive.asynchronous is None:
            parser.take()
            parser.expect("(", "behind async")
            directive.asynchronous = parser.expr("the number of an asynchronous communication")
            parser.expect(")", "behind the number")
        elif word in ("acc", "host"):
            parser.take()
            directive.accelerator = directive.accelerator or word == "acc"
            if word == "acc" and isinstance(directive, d.Gmove) and parser.sees("("):
                directive.on_device += parser.listed_arrays()
        else:
            allowed = ["on", "async", "acc", *more]
            raise parser.unexpected(f"a clause ({', '.join(allowed)}) or the end of the directive")


def _reflect(kind: str) -> Callable[[Parser, d.Directive], d.Directive]:
    def parse(parser: Parser, base: d.Directive) -> d.Directive:
        directive = d.Reflect(base.place, base.start, base.end, base.file, kind=kind)
        directive.arrays = parser.listed_arrays()

        def widths() -> None:
            parser.expect("(", "behind width")
            directive.widths = parser.in_c_order(parser.some(lambda: width(parser)))
            parser.expect(")", "behind the widths")

        def orthogonal() -> None:
            directive.orthogonal = True

        def nowait() -> None:
            if directive.asynchronous is not None:
                raise Refused(
                    base.place,
                    "async and nowait on one reflect; wait_async ends the item, reflect_wait the other",
                )
            directive.nowait = True

        def refused() -> None:
            raise Refused(base.place, f"the clause nowait of {kind} is not supported yet")

        more: dict[str, Callable[[], None]] = {}
        if kind not in ("reflect_do", "reflect_wait"):
            more |= {"width": widths, "orthogonal": orthogonal}
        if kind != "reflect_wait":
            more["nowait"] = nowait if kind == "reflect" else refused
        _clauses(parser, directive, more)
        if directive.on is not None:
            raise Refused(directive.on.name.place, f"{kind} has no clause 'on'")
        return directive

    return parse


def _reduction(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Reduction(base.place, base.start, base.end, base.file)
    directive.reduced = reduced(parser)
    if directive.reduced[0].locations:
        raise Refused(directive.reduced[0].name.place, "locations belong to the clause reduction of loop")
    _clauses(parser, directive, {})
    return directive


def _bcast(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Bcast(base.place, base.start, base.end, base.file)
    directive.names = parser.listed("the name of a variable")

    def source() -> None:
        directive.source = parser.ref("a reference to a node or to an element of a template")

    _clauses(parser, directive, {"from": source})
    return directive


def _barrier(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Barrier(base.place, base.start, base.end, base.file)
    _clauses(parser, directive, {})
    return directive


def _wait_async(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.WaitAsync(base.place, base.start, base.end, base.file)
    parser.expect("(", "behind wait_async")
    directive.ids = parser.some(lambda: parser.expr("the number of an asynchronous communication"))
    parser.expect(")", "behind the numbers")
    _clauses(parser, directive, {})
    return directive


def _gmove(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Gmove(base.place, base.start, base.end, base.file)
    if parser.sees("in") or parser.sees("out"):
        directive.mode = parser.take().text.lower()
    _clauses(parser, directive, {})
    return directive


def _post(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Post(base.place, base.start, base.end, base.file)
    parser.expect("(", "behind post")
    directive.node = parser.ref("a reference to a node")
    parser.expect(",", "behind the node")
    directive.tag = parser.expr("a tag")
    parser.expect(")", "behind the tag")
    return directive


def _wait(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Wait(base.place, base.start, base.end, base.file)
    if parser.accept("("):
        directive.node = parser.ref("a reference to a node")
        if parser.accept(","):
            directive.tag = parser.expr("a tag")
        parser.expect(")", "behind the node and the tag")
    return directive


def _coarray(parser: Parser, base: d.Directive) -> d.Directive:
    directive = d.Coarray(base.place, base.start, base.end, base.file)
    directive.names = parser.names("the name of a variable")
    behind = "of ':[*]' behind the names"
    parser.expect(":", behind)
    parser.expect("[", behind)
    while not parser.accept("*"):
        directive.images.append(parser.at_least(1, "the size of a dimension of images"))
        parser.expect("]", behind)
        parser.expect("[", behind)
    parser.expect("]", behind)
    return directive


def _lock(kind: str) -> Callable[[Parser, d.Directive], d.Directive]:
    def parse(parser: Parser, base: d.Directive) -> d.Directive:
        directive = d.Lock(base.place, base.start, base.end, base.file, kind=kind)
        parser.expect("(", f"behind {kind}")
        directive.name = parser.name("the name of a lock")
        while parser.accept("["):
            directive.subscripts.append(parser.expr("a subscript"))
            parser.expect("]", "behind a subscript")
        if parser.accept(":"):
            parser.expect("[", "before the image")
            directive.image = parser.expr("an image")
            parser.expect("]", "behind the image")
        parser.expect(")", "behind the lock")
        while token := parser.next():
            word = token.text.lower()
            if word not in ("stat", "acquired_lock") or (word == "acquired_lock" and kind == "unlock"):
                raise parser.unexpected("acquired_lock(…) or stat(…)" if kind == "lock" else "stat(…)")
            parser.take()
            parser.expect("(", f"behind {word}")
            value = parser.expr("a variable of int")
            parser.expect(")", f"behind the variable of {word}")
            if word == "stat":
                directive.status = value
            else:
                directive.acquired = value
        return directive

    return parse


GRAMMAR: dict[str, Callable[[Parser, d.Directive], d.Directive]] = {
    "reflect": _reflect("reflect"),
    "reflect_init": _reflect("reflect_init"),
    "reflect_do": _reflect("reflect_do"),
    "reflect_wait": _reflect("reflect_wait"),
    "reduce_shadow": _reflect("reduce_shadow"),
    "reduction": _reduction,
    "bcast": _bcast,
    "barrier": _barrier,
    "wait_async": _wait_async,
    "gmove": _gmove,
    "post": _post,
    "wait": _wait,
    "coarray": _coarray,
    "lock": _lock("lock"),
    "unlock": _lock("unlock"),
}
