"""The grammar of `#pragma acc …`: OpenACC 3.0, without the parts that are specific to one kind of GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from peerway_xacc.frontend import clauses
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.parser import Parser, hint
from peerway_xacc.frontend.preprocess import Pragma

_IN, _OUT, _BOTH = ("copyin", "create"), ("copyout",), ("copy", "copyin", "copyout", "create")


def _older(*names: str) -> tuple[str, ...]:
    """The older names of clauses: for copy, pcopy and present_or_copy."""
    return tuple(f"{prefix}{name}" for prefix in ("p", "present_or_") for name in names)


def _forms(*names: str) -> tuple[str, ...]:
    """Clauses, followed by their older names."""
    return (*names, *_older(*names))


OLDER = _older(*_BOTH)

_STRUCTURED = (*_forms(*_BOTH), "no_create", "present", "deviceptr", "attach")
_ENTERED = (*_forms(*_IN), "attach")
_EXITED = (*_forms(*_OUT), "delete", "detach")
_DECLARED = (*_forms(*_BOTH), "present", "deviceptr", "device_resident", "link")
DATA = tuple(dict.fromkeys((*_STRUCTURED, *_DECLARED, "delete", "detach")))
_LISTS = (*DATA, "private", "firstprivate", "use_device", "host", "self", "device", "cache")
_EXPRS = (
    "num_gangs", "num_workers", "vector_length", "if", "collapse", "bind", "device_num", "default_async",
)  # fmt: skip
_OPTIONAL = ("async", "wait", "gang", "worker", "vector", "tile", "self")
_FLAGS = (
    "seq", "auto", "independent", "finalize", "if_present", "nohost", "read", "write", "update", "capture",
)  # fmt: skip
_WORDS = ("device_type", "dtype")
_MODIFIERS = {"copyin": "readonly", "copyout": "zero", "create": "zero"}
_LABELS = ("num", "length", "dim", "queues")  # labels before a clause's argument, as in vector(length: 32)

_COMPUTE = ("async", "wait", "num_gangs", "num_workers", "vector_length", "if", "self", "reduction",
            "default", "private", "firstprivate", "device_type", "dtype", *_STRUCTURED)  # fmt: skip
_LOOP = ("collapse", "gang", "worker", "vector", "seq", "auto", "independent", "private", "reduction", "tile",
         "device_type", "dtype")  # fmt: skip
_UPDATED = ("host", "self", "device")
_DEVICE = ("device_type", "dtype", "device_num")
_OPERATORS = ("+", "*", "&", "|", "^", "&&", "||", "max", "min")


def parse(pragma: Pragma) -> d.Acc:
    """Parse a pragma into its directive. Raises Refused if it is not a directive."""
    parser = Parser(pragma)
    word = parser.name("a directive of OpenACC")
    construct = word.text.lower()
    second = parser.next()
    if second and f"{construct} {second.text.lower()}" in GRAMMAR:
        construct += f" {parser.take().text.lower()}"
    if construct not in GRAMMAR:
        raise Refused(word.place, f"unknown directive '{word.text}' of acc{hint(construct, GRAMMAR)}")
    rule = GRAMMAR[construct]
    directive = d.Acc(
        word.place, pragma.start, pragma.end, pragma.file, tuple(pragma.tokens), spelling=f"acc {construct}"
    )
    if rule.argument and parser.accept("("):
        directive.clauses.append(rule.argument(parser, word.place))
        parser.expect(")", f"behind what {construct} names")
    while parser.next():
        parser.accept(",")
        directive.clauses.append(_clause(parser, construct, rule.allowed))
    return directive


def _clause(parser: Parser, construct: str, known: tuple[str, ...]) -> clauses.Clause:
    word = parser.name("a clause")
    name = word.text.lower()
    if name not in known:
        raise Refused(word.place, f"'{word.text}' is no clause of acc {construct}{hint(name, known)}")
    if name == "reduction":
        return _reduction(parser, word.place)
    if name == "self" and construct != "update":
        return _optional(parser, name, word.place)
    if name in _LISTS:
        parser.expect("(", f"behind {name}")
        kind = _MODIFIERS.get(name.removeprefix("present_or_").removeprefix("p"), "")
        modifier = kind if kind and parser.sees(kind, ":") else ""
        if modifier:
            parser.take()
            parser.take()
        sections = _sections(parser)
        parser.expect(")", f"behind the variables of {name}")
        return clauses.Clause(name, word.place, sections=sections, modifier=modifier)
    if name == "default":
        parser.expect("(", "behind default")
        if not parser.sees("none") and not parser.sees("present"):
            raise parser.unexpected("'none' or 'present'")
        modifier = parser.take().text.lower()
        parser.expect(")", "behind what default says")
        return clauses.Clause(name, word.place, modifier=modifier)
    if name in _EXPRS:
        parser.expect("(", f"behind {name}")
        if name == "collapse" and parser.sees("force", ":"):  # `force` does not change any result
            parser.take()
            parser.take()
        expression = parser.expr("an expression")
        parser.expect(")", f"behind the expression of {name}")
        return clauses.Clause(name, word.place, expression=expression)
    if name in _OPTIONAL:
        return _optional(parser, name, word.place)
    if name in _WORDS:
        parser.expect("(", f"behind {name}")
        kinds = []
        while parser.next() and not parser.sees(")"):
            kinds.append(parser.take().text)
        parser.expect(")", f"behind what {name} names")
        return clauses.Clause(name, word.place, modifier=" ".join(kinds))
    assert name in _FLAGS, name
    return clauses.Clause(name, word.place)


def _optional(parser: Parser, name: str, place: Place) -> clauses.Clause:
    """A clause with optional arguments.

    Arguments that only say how iterations are distributed are dropped.
    """
    arguments: list[clauses.Expr] = []
    if name == "wait" and parser.sees("("):
        parser.take()
        arguments += _queues(parser)
        parser.expect(")", "behind the arguments of wait")
    elif parser.accept("("):
        while True:
            static = parser.sees("static", ":")
            if static or any(parser.sees(label, ":") for label in _LABELS):
                parser.take()
                parser.take()
            if not parser.accept("*"):
                argument = parser.expr("an argument")
                arguments += [] if static else [argument]
            if not parser.accept(","):
                break
        parser.expect(")", f"behind the arguments of {name}")
    return clauses.Clause(name, place, arguments=tuple(arguments))


def _queues(parser: Parser) -> tuple[clauses.Expr, ...]:
    """The queues of a wait: `1, 2`, `queues: 1, 2` or `devnum: 0: queues: 1, 2`."""
    if parser.accept("devnum"):
        parser.expect(":", "behind devnum")
        place = parser.here()
        number = parser.expr("the number of a device")
        if number.value != 0:
            raise Refused(place, "a process has one device; a wait for another one's queues is not supported")
        if not parser.accept(":"):
            raise parser.unexpected("':' and the queues behind the number of the device")
    if parser.sees("queues", ":"):
        parser.take()
        parser.take()
    return tuple(parser.some(lambda: parser.expr("the number of a queue")))


def _awaited(parser: Parser, place: Place) -> clauses.Clause:
    return clauses.Clause("queues", place, arguments=_queues(parser))


def _functions(parser: Parser, place: Place) -> clauses.Clause:
    names = parser.some(lambda: parser.expr("the name of a function"))
    return clauses.Clause("functions", place, arguments=tuple(names))


def _cached(parser: Parser, place: Place) -> clauses.Clause:
    return clauses.Clause("cache", place, sections=_sections(parser))


def _reduction(parser: Parser, place: Place) -> clauses.Clause:
    parser.expect("(", "behind reduction")
    if not any(parser.sees(operator) for operator in _OPERATORS):
        raise parser.unexpected("an operator of a reduction (" + " ".join(_OPERATORS) + ")")
    operator = parser.take().text.lower()
    parser.expect(":", "behind the operator")
    sections = _sections(parser)
    parser.expect(")", "behind the variables of a reduction")
    return clauses.Clause("reduction", place, operator=operator, sections=sections)


def _sections(parser: Parser) -> tuple[clauses.Section, ...]:
    """Variables, each with a section `a[0:n][:]` or a member `s.x`."""

    def item() -> clauses.Section:
        name = parser.name("the name of a variable")
        members = []
        while parser.accept("."):
            members.append(parser.name("the name of a member").text)
        if len(members) == 1:
            name = clauses.Name(f"{name.text}.{members[0]}", name.place)
        parts = []
        while parser.accept("["):
            first = None if parser.sees(":") else parser.expr("the first index of a section")
            length: clauses.Expr | None = None
            index = not parser.accept(":")
            if not index and not parser.sees("]"):
                length = parser.expr("the length of a section")
            parser.expect("]", "behind a section")
            parts.append(clauses.Part(first, length, index))
        return clauses.Section(name, tuple(parts), bool(members))

    return tuple(parser.some(item))


@dataclass(frozen=True)
class Construct:
    """What may follow a construct's words: clauses with these names, and an argument in brackets before them.

    If `needed` names clauses, the directive does nothing without one of them.
    """

    allowed: tuple[str, ...]
    needed: tuple[str, ...] = ()
    argument: Callable[[Parser, Place], clauses.Clause] | None = None


GRAMMAR: dict[str, Construct] = {
    "parallel": Construct(_COMPUTE),
    "kernels": Construct(_COMPUTE),
    "serial": Construct(_COMPUTE),
    "parallel loop": Construct((*_COMPUTE, *_LOOP)),
    "kernels loop": Construct((*_COMPUTE, *_LOOP)),
    "serial loop": Construct((*_COMPUTE, *_LOOP)),
    "loop": Construct(_LOOP),
    "data": Construct(("if", "async", "wait", "default", *_STRUCTURED), ("default", *_STRUCTURED)),
    "enter data": Construct(("if", "async", "wait", *_ENTERED), _ENTERED),
    "exit data": Construct(("if", "async", "wait", "finalize", *_EXITED), _EXITED),
    "host_data": Construct(("use_device", "if", "if_present"), ("use_device",)),
    "update": Construct(("async", "wait", "if", "if_present", *_UPDATED, "device_type", "dtype"), _UPDATED),
    "declare": Construct(_DECLARED),
    "wait": Construct(("async", "if"), argument=_awaited),
    "atomic": Construct(("read", "write", "update", "capture")),
    "routine": Construct(
        ("gang", "worker", "vector", "seq", "bind", "nohost", "device_type", "dtype"), argument=_functions
    ),
    "cache": Construct((), argument=_cached),
    "init": Construct((*_DEVICE, "if")),
    "shutdown": Construct((*_DEVICE, "if")),
    "set": Construct((*_DEVICE, "default_async", "if"), (*_DEVICE, "default_async")),
}
