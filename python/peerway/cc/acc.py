"""The grammar of `#pragma acc …`, OpenACC 3.0 without what needs a GPU's own words."""

from __future__ import annotations

from peerway.cc import directives as d
from peerway.cc.diagnostics import Place, Refused
from peerway.cc.parser import Parser, nearest
from peerway.cc.preprocess import Pragma

DATA = (
    "copy", "copyin", "copyout", "create", "no_create", "present", "deviceptr", "attach", "delete", "detach",
    "device_resident", "link", "pcopy", "pcopyin", "pcopyout", "pcreate", "present_or_copy",
    "present_or_copyin", "present_or_copyout", "present_or_create",
)  # fmt: skip
_LISTS = (*DATA, "private", "firstprivate", "use_device", "host", "self", "device", "cache")
_EXPRS = (
    "num_gangs",
    "num_workers",
    "vector_length",
    "if",
    "collapse",
    "default_async",
    "device_num",
    "bind",
)
_OPTIONAL = ("async", "wait", "gang", "worker", "vector", "tile", "self")
_FLAGS = (
    "seq",
    "auto",
    "independent",
    "finalize",
    "if_present",
    "nohost",
    "read",
    "write",
    "update",
    "capture",
)
_WORDS = ("device_type", "dtype", "default")

_COMPUTE = ("async", "wait", "num_gangs", "num_workers", "vector_length", "if", "self", "reduction",
            "default", "private", "firstprivate", "device_type", "dtype", *DATA)  # fmt: skip
_LOOP = ("collapse", "gang", "worker", "vector", "seq", "auto", "independent", "private", "reduction", "tile",
         "device_type", "dtype")  # fmt: skip
_CONSTRUCTS: dict[str, tuple[str, ...]] = {
    "parallel": _COMPUTE,
    "kernels": _COMPUTE,
    "serial": _COMPUTE,
    "parallel loop": (*_COMPUTE, *_LOOP),
    "kernels loop": (*_COMPUTE, *_LOOP),
    "serial loop": (*_COMPUTE, *_LOOP),
    "loop": _LOOP,
    "data": ("if", "async", "wait", "default", *DATA),
    "enter data": ("if", "async", "wait", *DATA),
    "exit data": ("if", "async", "wait", "finalize", *DATA),
    "host_data": ("use_device", "if", "if_present"),
    "update": ("async", "wait", "if", "if_present", "self", "host", "device", "device_type", "dtype"),
    "declare": DATA,
    "wait": ("async", "if"),
    "atomic": ("read", "write", "update", "capture"),
    "routine": ("gang", "worker", "vector", "seq", "bind", "nohost", "device_type", "dtype"),
    "cache": (),
}
_TWO_WORDS = {
    "parallel": ("loop",),
    "kernels": ("loop",),
    "serial": ("loop",),
    "enter": ("data",),
    "exit": ("data",),
}
_OPERATORS = ("+", "*", "&", "|", "^", "&&", "||", "max", "min")


def parse(pragma: Pragma) -> d.Acc:
    """The directive that a pragma says. Raises Refused where it says none."""
    parser = Parser(pragma)
    word = parser.name("a directive of OpenACC")
    construct = word.text.lower()
    for second in _TWO_WORDS.get(construct, ()):
        if parser.accept(second):
            construct += " " + second
    if construct not in _CONSTRUCTS:
        raise Refused(
            word.place, f"unknown directive '{word.text}' of acc; {nearest(construct, list(_CONSTRUCTS))}"
        )
    made = d.Acc(
        word.place, pragma.start, pragma.end, pragma.file, construct=construct, tokens=tuple(pragma.tokens)
    )
    if construct in ("wait", "routine", "cache") and parser.sees("("):
        parser.take()
        if construct == "cache":
            made.clauses.append(d.Clause("cache", word.place, sections=_sections(parser)))
        elif construct == "wait":
            numbers = tuple(parser.some(lambda: parser.expr("the number of a queue")))
            made.clauses.append(d.Clause("queues", word.place, arguments=numbers))
        else:
            parser.some(lambda: parser.expr("a name"))
        parser.expect(")", f"behind what {construct} names")
    while parser.next():
        parser.accept(",")
        made.clauses.append(_clause(parser, construct))
    return made


def _clause(parser: Parser, construct: str) -> d.Clause:
    word = parser.name("a clause")
    name = word.text.lower()
    if name not in _CONSTRUCTS[construct]:
        hint = nearest(name, list(_CONSTRUCTS[construct]))
        raise Refused(word.place, f"'{word.text}' is no clause of acc {construct}; {hint}")
    if name == "reduction":
        return _reduction(parser, word.place)
    if name == "self" and construct != "update":
        return _optional(parser, name, word.place)
    if name in _LISTS:
        parser.expect("(", f"behind {name}")
        if name in ("copyin", "copyout", "create") and (parser.sees("readonly") or parser.sees("zero")):
            parser.take()
            parser.expect(":", "behind the modifier")
        sections = _sections(parser)
        parser.expect(")", f"behind the variables of {name}")
        return d.Clause(name, word.place, sections=sections)
    if name in _EXPRS:
        parser.expect("(", f"behind {name}")
        expression = parser.expr("an expression")
        parser.expect(")", f"behind the expression of {name}")
        return d.Clause(name, word.place, expression=expression)
    if name in _OPTIONAL:
        return _optional(parser, name, word.place)
    if name in _WORDS:
        parser.expect("(", f"behind {name}")
        while parser.next() and not parser.sees(")"):
            parser.take()
        parser.expect(")", f"behind what {name} names")
        return d.Clause(name, word.place)
    assert name in _FLAGS, name
    return d.Clause(name, word.place)


def _optional(parser: Parser, name: str, place: Place) -> d.Clause:
    """A clause with arguments or without."""
    arguments: list[d.Expr] = []
    if parser.accept("("):
        while True:
            if not parser.accept("*"):
                arguments.append(parser.expr("an argument"))
            if not (parser.accept(",") or parser.accept(":")):
                break
        parser.expect(")", f"behind the arguments of {name}")
    return d.Clause(name, place, arguments=tuple(arguments))


def _reduction(parser: Parser, place: Place) -> d.Clause:
    parser.expect("(", "behind reduction")
    if not any(parser.sees(operator) for operator in _OPERATORS):
        raise parser.unexpected("an operator of a reduction (" + " ".join(_OPERATORS) + ")")
    operator = parser.take().text.lower()
    parser.expect(":", "behind the operator")
    sections = tuple(d.Section(name) for name in parser.names("the name of a variable"))
    parser.expect(")", "behind the variables of a reduction")
    return d.Clause("reduction", place, operator=operator, sections=sections)


def _sections(parser: Parser) -> tuple[d.Section, ...]:
    """Variables with sections `a[0:n][:]` or members `s.x`; of a section the first dimension is kept."""

    def one() -> d.Section:
        name = parser.name("the name of a variable")
        member = False
        while parser.accept("."):
            parser.name("the name of a member")
            member = True
        first: d.Expr | None = None
        length: d.Expr | None = None
        dimensions = 0
        while parser.accept("["):
            start = None if parser.sees(":") else parser.expr("the first index of a section")
            count = None
            if parser.accept(":") and not parser.sees("]"):
                count = parser.expr("the length of a section")
            parser.expect("]", "behind a section")
            if dimensions == 0:
                first, length = start, count
            dimensions += 1
        return d.Section(name, first, length, member)

    return tuple(parser.some(one))
