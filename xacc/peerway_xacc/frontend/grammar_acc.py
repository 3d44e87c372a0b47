"""The grammar of `#pragma acc …`: OpenACC 3.0, without the parts that are specific to one kind of GPU."""

from __future__ import annotations

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
CONSTRUCTS: dict[str, tuple[str, ...]] = {
    "parallel": _COMPUTE,
    "kernels": _COMPUTE,
    "serial": _COMPUTE,
    "parallel loop": (*_COMPUTE, *_LOOP),
    "kernels loop": (*_COMPUTE, *_LOOP),
    "serial loop": (*_COMPUTE, *_LOOP),
    "loop": _LOOP,
    "data": ("if", "async", "wait", "default", *_STRUCTURED),
    "enter data": ("if", "async", "wait", *_ENTERED),
    "exit data": ("if", "async", "wait", "finalize", *_EXITED),
    "host_data": ("use_device", "if", "if_present"),
    "update": ("async", "wait", "if", "if_present", "self", "host", "device", "device_type", "dtype"),
    "declare": _DECLARED,
    "wait": ("async", "if"),
    "atomic": ("read", "write", "update", "capture"),
    "routine": ("gang", "worker", "vector", "seq", "bind", "nohost", "device_type", "dtype"),
    "cache": (),
    "init": ("device_type", "dtype", "device_num", "if"),
    "shutdown": ("device_type", "dtype", "device_num", "if"),
    "set": ("device_type", "dtype", "device_num", "default_async", "if"),
}
# Directives that do nothing without at least one of these clauses.
NEEDED = {
    "update": ("host", "self", "device"),
    "host_data": ("use_device",),
    "data": ("default", *_STRUCTURED),
    "enter data": _ENTERED,
    "exit data": _EXITED,
    "set": ("device_type", "dtype", "device_num", "default_async"),
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
    """Parse a pragma into its directive. Raises Refused if it is not a directive."""
    parser = Parser(pragma)
    word = parser.name("a directive of OpenACC")
    construct = word.text.lower()
    for second in _TWO_WORDS.get(construct, ()):
        if parser.accept(second):
            construct += " " + second
    if construct not in CONSTRUCTS:
        raise Refused(word.place, f"unknown directive '{word.text}' of acc{hint(construct, CONSTRUCTS)}")
    directive = d.Acc(
        word.place, pragma.start, pragma.end, pragma.file, construct=construct, tokens=tuple(pragma.tokens)
    )
    if construct in ("wait", "routine", "cache") and parser.sees("("):
        parser.take()
        if construct == "cache":
            directive.clauses.append(clauses.Clause("cache", word.place, sections=_sections(parser)))
        elif construct == "wait":
            numbers = _queues(parser)
            directive.clauses.append(clauses.Clause("queues", word.place, arguments=numbers))
        else:
            names = tuple(parser.some(lambda: parser.expr("the name of a function")))
            directive.clauses.append(clauses.Clause("functions", word.place, arguments=names))
        parser.expect(")", f"behind what {construct} names")
    while parser.next():
        parser.accept(",")
        directive.clauses.append(_clause(parser, construct))
    return directive


def _clause(parser: Parser, construct: str) -> clauses.Clause:
    word = parser.name("a clause")
    name = word.text.lower()
    if name not in CONSTRUCTS[construct]:
        known = CONSTRUCTS[construct]
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
