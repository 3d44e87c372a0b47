"""The directives of OpenACC about data: calls of the run-time library in the C beside the Fortran."""

from __future__ import annotations

from peerway_xacc.fortran.acc_clauses import AccDirective, Item
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.kernel_names import ArrayOf, KernelNames
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, split
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import at
from peerway_xacc.lowering.data_clauses import KINDS

_NOTHING = ("cache", "init", "shutdown", "routine")
_NOT_YET = ("host_data", "declare", "set")


def lower(unit: FortranUnit, directive: AccDirective, scope: Scope, end: AccDirective | None) -> None:
    """Lower a directive of data, or one without statements."""
    construct = directive.construct
    if construct in _NOTHING:
        return
    if construct in _NOT_YET:
        advice = "" if construct != "declare" else "; use data, or enter data and exit data"
        raise Refused(directive.place, f"acc {construct} is not supported in Fortran yet{advice}")
    lowered = _Lowering(unit, directive, scope)
    if construct == "wait":
        lowered.wait()
    elif construct == "update":
        lowered.update()
    elif construct == "data":
        assert end is not None
        lowered.region(end)
    else:
        lowered.enter_or_exit()


def _texts(words: list[Word] | tuple[Word, ...]) -> str:
    return " ".join(word.text for word in words)


class _Lowering:
    """The calls of one directive."""

    def __init__(self, unit: FortranUnit, directive: AccDirective, scope: Scope) -> None:
        self._unit, self._directive, self._scope = unit, directive, scope
        self._arguments = Arguments()
        self._others: list[tuple[str, str]] = []
        self._where = at(directive.place)

    def _queue(self) -> str:
        for clause in self._directive.all("async"):
            return (
                f"({self._arguments.c_text(_texts(clause.words))})" if clause.words else "PWX_QUEUE_DEFAULT"
            )
        return "PWX_QUEUE_SYNC"

    def _condition(self) -> str:
        for clause in self._directive.all("if"):
            return f"if ({self._arguments.c_text(f'merge(1, 0, {_texts(clause.words or ())})')}) "
        return ""

    def _waits(self, name: str = "wait") -> str:
        lines = ""
        for clause in self._directive.all(name):
            texts = [
                self._arguments.c_text(_texts(part)) for part in split(list(clause.words or ()), ",") if part
            ]
            which = f"{len(texts)}, (const long[]){{{', '.join(texts)}}}" if texts else "0, 0"
            lines += f"pwx_acc_wait({which}, {self._queue()}, {self._where}); "
        return lines

    def _parts(self) -> list[str]:
        """The pwx_data of the clauses. Scalars stay on the host: each kernel gets their values, and gives
        those that it changes back.
        """
        parts = []
        for clause in self._directive.clauses:
            if clause.name in KINDS:
                zero = "_ZERO" if clause.modifier == "zero" else ""
                for item in clause.items:
                    parts += self._data(item, KINDS[clause.name] + zero)
            elif clause.name in ("deviceptr", "attach", "detach"):
                message = f"the clause {clause.name} is not supported in Fortran yet"
                raise Refused(clause.word.place, message)
        return parts

    def _data(self, item: Item, kind: str) -> list[str]:
        name = item.word.text
        declared = self._unit.fortran.entity(name, self._scope)
        if declared is None:
            if any(around.implicit_none for around in self._scope.chain()):
                raise Refused(item.word.place, f"'{name}' is not declared here")
            return []  # a scalar
        array = self._unit.array_at(name, self._scope)
        if array:
            if item.section is not None and not _is_all(self._unit, self._scope, item):
                message = (
                    f"the node's part of the distributed array '{name}' is always whole in clauses of data"
                )
                raise Refused(item.word.place, f"{message}; name it without a section")
            return [f"{{PWX_DATA_{kind}, {quoted(name)}, {array.address}, 0, 0}}"]
        if declared[1].dimensions is None:
            return []
        section = item.section
        if section is not None and _is_all(self._unit, self._scope, item):
            section = None
        if section is not None:
            section = _contiguous(self._unit, self._scope, item)
        text = name if section is None else f"{name}({_written(section)})"
        number = self._other("any", text)
        bytes_ = f"pwx_f_count({number}) * {number}->elem_len"
        return [f"{{PWX_DATA_{kind}, {quoted(name)}, 0, {number}->base_addr, {bytes_}}}"]

    def _other(self, kind: str, text: str) -> str:
        if (kind, text) not in self._others:
            self._others.append((kind, text))
        return f"c{self._others.index((kind, text))}"

    def _call(self, lines: list[str]) -> str:
        call = Call(self._unit.name("acc"), lines, self._arguments.texts, self._others)
        return self._unit.generated.call(self._scope, call)

    def wait(self) -> None:
        """`wait`."""
        text = self._waits("queues") or f"pwx_acc_wait(0, 0, {self._queue()}, {self._where});"
        line = f"{self._condition()}{{ {text} }}"
        self._unit.generated.before(self._directive.number, self._call([line]))

    def enter_or_exit(self) -> None:
        """`enter data` and `exit data`."""
        parts = self._parts()
        if not parts:
            return
        listed = f"{len(parts)}, (const pwx_data[]){{{', '.join(parts)}}}"
        finalize = f"{int(bool(self._directive.all('finalize')))}, "
        verb = "enter" if self._directive.construct.startswith("enter") else "exit"
        final = finalize if verb == "exit" else ""
        call = f"pwx_{verb}_data({listed}, {final}{self._queue()}, {self._where});"
        line = f"{self._condition()}{{ {self._waits()}{call} }}"
        self._unit.generated.before(self._directive.number, self._call([line]))

    def region(self, end: AccDirective) -> None:
        """`data` with its statements."""
        parts = self._parts()
        if not parts:
            return
        name = self._unit.name("region")
        self._unit.generated.top.append(f"static pwx_data_region {name}; static int {name}_on;")
        listed = f"{len(parts)}, (const pwx_data[]){{{', '.join(parts)}}}"
        tail = f"(&{name}, {listed}, {self._queue()}, {self._where});"
        condition = self._condition()
        begin = f"{{ {self._waits()}pwx_data_begin{tail} }}"
        over = f"pwx_data_end{tail}"
        lines = [begin]
        if condition:  # its variables may change before the end
            lines = [f"{name}_on = 0; {condition}{name}_on = 1;", f"if ({name}_on) {begin}"]
            over = f"if ({name}_on) {{ {over} }}"
        self._unit.generated.before(self._directive.number, self._call(lines))
        self._unit.generated.before(end.number, self._call([over]))

    def update(self) -> None:
        """`update`: all of an array, or a section of it, row by row."""
        lines = []
        quiet = int(bool(self._directive.all("if_present")))
        for clause in self._directive.clauses:
            if clause.name not in ("host", "self", "device"):
                continue
            to_device = clause.name == "device"
            for item in clause.items:
                if item.section is not None and not _is_all(self._unit, self._scope, item):
                    part = self._part(item)
                    call = f"pwx_update_part({int(to_device)}, &section, {quoted(item.word.text)}, {quiet}, "
                    lines.append(f"{{ {part} {call}{self._queue()}, {self._where}); }}")
                    continue
                for data in self._data(Item(item.word), "PRESENT"):
                    call = f"pwx_update_{'device' if to_device else 'host'}(1, (const pwx_data[]){{{data}}}, "
                    lines.append(f"{call}{quiet}, {self._queue()}, {self._where});")
        if lines:
            lines = [f"{self._condition()}{{ {self._waits()}{' '.join(lines)} }}"]
            self._unit.generated.before(self._directive.number, self._call(lines))

    def _part(self, item: Item) -> str:
        """C that declares `section`, of the part of an array that is named."""
        name, section = item.word.text, item.section
        assert section is not None
        array = self._unit.array_at(name, self._scope)
        declared = self._unit.fortran.entity(name, self._scope)
        rank = len(declared[1].dimensions or ()) if declared else 0
        if rank != len(section):
            message = f"{counted(len(section), 'dimension')} for '{name}', which has {rank}"
            raise Refused(item.word.place, message)
        sides = []
        for number, words in enumerate(section):
            low = f"{array.symbol}__lb[{rank - 1 - number}]" if array else self._arguments.c_text(
                f"lbound({name}, {number + 1})"
            )  # fmt: skip
            bounds = split(list(words), ":")
            if len(bounds) > 2:
                raise Refused(item.word.place, "a section with a step is not supported in update yet")
            first = self._arguments.c_text(_texts(bounds[0])) if bounds[0] else low
            if len(bounds) == 1:
                last = first
            elif bounds[1]:
                last = self._arguments.c_text(_texts(bounds[1]))
            elif array:
                last = f"pwx_f_last({array.address}, {array.symbol}__lb, {rank - 1 - number})"
            else:
                last = self._arguments.c_text(f"ubound({name}, {number + 1})")
            sides.append(f"pwx_f_triplet({first}, {last}, 1, 0, {low})")
        dims = " ".join(f"section.dim[{rank - 1 - n}] = {side};" for n, side in enumerate(sides))
        if array:
            return f"pwx_section section = {{.array = {array.address}, .ndims = {rank}}}; {dims}"
        number_ = self._other("any", name)
        return f"pwx_section section = pwx_f_section({number_}); {dims}"


def _written(section: tuple[tuple[Word, ...], ...]) -> str:
    return ", ".join("".join(word.text for word in words) or ":" for words in section)


def _is_all(unit: FortranUnit, scope: Scope, item: Item) -> bool:
    """Is a section all of its array, as far as its text tells?"""
    declared = unit.fortran.entity(item.word.text, scope)
    dimensions = (declared[1].dimensions if declared else None) or []
    if item.section is None or len(dimensions) != len(item.section):
        return item.section is None
    for dimension, words in zip(dimensions, item.section, strict=True):
        bounds = ["".join(word.text for word in part) for part in split(list(words), ":")]
        if len(bounds) != 2:
            return False
        upper = (dimension.upper or "").replace(" ", "").lower()
        lower = (dimension.lower or "1").replace(" ", "").lower()
        if bounds[0] not in ("", lower) or (bounds[1] != upper and bounds[1]) or dimension.assumed:
            return False
    return True


def _contiguous(unit: FortranUnit, scope: Scope, item: Item) -> tuple[tuple[Word, ...], ...]:
    """A section whose elements are neighbours in memory: whole in all dimensions before the last that is
    named.
    """
    assert item.section is not None
    declared = unit.fortran.entity(item.word.text, scope)
    dimensions = (declared[1].dimensions if declared else None) or []
    partial = False
    for number, words in enumerate(item.section):
        bounds = ["".join(word.text for word in part) for part in split(list(words), ":")]
        ranged = len(bounds) > 1
        if partial and ranged:
            message = f"a section of '{item.word.text}' in a clause of data must be contiguous: all of each "
            raise Refused(item.word.place, message + "dimension before the last")
        upper = dimensions[number].upper if number < len(dimensions) else None
        lower = (dimensions[number].lower or "1") if number < len(dimensions) else "1"
        whole = ranged and bounds[0] in ("", lower) and bounds[1] in ("", (upper or "").replace(" ", ""))
        partial = partial or not whole
    return item.section


def whole(names: KernelNames, array: ArrayOf, item: Item) -> str:
    """The number of elements of a section that begins where its array does, as C text."""
    assert item.section is not None
    if _is_all(names.unit, names.scope, item):
        return ""
    _contiguous(names.unit, names.scope, item)
    last = split(list(item.section[-1]), ":")
    rank = len(array.lower)
    first = "".join(word.text for word in last[0])
    begins = first in ("", array.lower[rank - 1].removesuffix("L"))
    inner = all(len(split(list(words), ":")) == 2 for words in item.section)
    if not begins or not inner or not last[-1]:
        message = f"the section of '{item.word.text}' must begin where the array does; name all of it"
        raise Refused(item.word.place, message)
    upper = names.value(_texts(last[1]))
    text = " * ".join([*array.extents[:-1], f"({upper} - {array.lower[-1]} + 1)"])
    name = array.count_name
    line = f"const long {name} = {text};"
    if not any(f" {name} = " in known for known in names.declared):
        names.declared.append(line)
    return name


def clause_around(name: str, directive: AccDirective, directives: dict[int, AccDirective]) -> Item | None:
    """What a data directive before, the last one, has of a name."""
    for number, other in sorted(directives.items(), reverse=True):
        if number >= directive.number or other.construct not in ("data", "enter data"):
            continue
        for clause in other.clauses:
            for item in clause.items if clause.name in KINDS else ():
                if item.word.text == name:
                    return item
    return None


def count_around(
    names: KernelNames, array: ArrayOf, directive: AccDirective, directives: dict[int, AccDirective]
) -> str:
    """The number of elements that a data directive before names of an array; empty where none does."""
    item = clause_around(array.name, directive, directives)
    return whole(names, array, item) if item and item.section is not None else ""
