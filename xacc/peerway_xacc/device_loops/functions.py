"""Writes functions a second time for the device, where their scalars and results are variables."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.arithmetic import Called
from peerway_xacc.device_loops.body import Body
from peerway_xacc.device_loops.copying import Copier
from peerway_xacc.device_loops.rewritten import Insertion, Part
from peerway_xacc.device_loops.scalars import PREFIX, Compute, DeviceScalars, on_device
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.frontend.source import Function, Range, Variable
from peerway_xacc.frontend.tokens import Span, closing, scan, separated


@dataclass
class Functions:
    """The functions of a file that loops of the device call; each is copied once."""

    unit: Mapped
    compute: Compute
    insertions: dict[int, Insertion]  # by the offset at which they are inserted
    _written: dict[str, Called | StaysOnHost | None] = field(default_factory=dict)  # None: being written
    _names: int = 0

    def new_name(self, stem: str) -> str:
        """A name for a scalar of the device."""
        self._names += 1
        return f"{PREFIX}{stem}_{self._names}"

    def called(self, name: str, at: int) -> Called:
        """The function as the device calls it at an offset. Raises StaysOnHost if that is impossible."""
        function = next(
            (each for each in self.unit.syntax.functions
             if each.name == name and each.file == self.unit.file), None
        )  # fmt: skip
        if function is None:
            raise StaysOnHost(at, f"it calls '{name}', whose text is elsewhere")
        if function.body.start > at:
            raise StaysOnHost(at, f"it calls '{name}', which is defined after it")
        if name not in self._written:
            self._written[name] = None
            try:
                self._written[name] = self._copy(function)
            except StaysOnHost as stays:
                self._written[name] = stays
        written = self._written[name]
        if written is None:
            raise StaysOnHost(at, f"'{name}' calls itself")
        if isinstance(written, StaysOnHost):
            raise StaysOnHost(written.offset, f"of '{name}': {written.reason}")
        return written

    def _copy(self, function: Function) -> Called:
        inside = Range(function.body.start + 1, function.body.end - 1)
        head = scan(self.unit.text.text, function.whole.start, function.body.start)
        opening = _opening(head, function.name, function.whole.start)
        result = self._result(function, head[:opening], inside)
        scalars, body = self._body(function, inside, result, hoists=True)
        if body.declares_on_host:  # which the caller's arithmetic cannot use
            scalars, body = self._body(function, inside, result, hoists=False)
            body.flush()
        if not scalars.types:
            return Called()
        name = self.new_name(function.name).replace(PREFIX, "pwx_device_")
        parameters = self._array_parameters(function, head[opening:])
        start = function.whole.start
        insertion = self.insertions.setdefault(function.whole.end, Insertion())
        insertion.add(scalars.declarations(), start)
        insertion.add(f" static void {name}(", start)
        insertion.extend(parameters or [Part("void", start)])
        insertion.add(") {", start)
        behind = body.take()
        insertion.extend(body.parts)
        insertion.add(" }", start)
        numbered = {
            number: scalars.names[id(variable)]
            for number, variable in enumerate(function.parameters) if _is_scalar(variable)
        }  # fmt: skip
        used = frozenset(scalars.types) | body.used
        return Called(
            name, numbered, result, used, frozenset(body.in_kernels), tuple(body.totals),
            tuple(body.before), tuple(behind),
        )  # fmt: skip

    def _body(
        self, function: Function, inside: Range, result: tuple[str, str] | None, hoists: bool
    ) -> tuple[DeviceScalars, Body]:
        """Write a function's body; the arithmetic behind its last kernel is not taken yet."""
        scalars = DeviceScalars()
        scalar = [variable for variable in function.parameters if _is_scalar(variable)]
        for variable in on_device(self.unit, self.compute, function, inside, scalar):
            name = self.new_name(f"{function.name}_{variable.name}")
            scalars.names[id(variable)] = scalars.add(name, variable.spelling)
        body = Body(self.unit, function, scalars, self.called, self.new_name, hoists)
        last = _last_return(self.unit, function, inside)
        body.block(Range(inside.start, last.start if last else inside.end))
        if last is not None and result is not None:
            scalars.add(*result)
            body.result(result[0], Range(last.start + len("return"), last.end))
        return scalars, body

    def _result(self, function: Function, head: list[Span], inside: Range) -> tuple[str, str] | None:
        """The variable for what a function returns: its name and type."""
        words = [span.text for span in head[:-1] if span.text not in ("static", "inline", "const")]
        returns = [mark for mark in function.marks if mark.kind == "return"]
        kind = " ".join(words)
        if kind == "void":
            if returns:
                raise StaysOnHost(returns[0].start, "a 'return' is in it")
            return None
        if len(returns) != 1 or "*" in words:
            raise StaysOnHost(inside.start, "it does not return one number, at its end")
        return self.new_name(f"{function.name}_result"), kind

    def _array_parameters(self, function: Function, head: list[Span]) -> list[Part]:
        """The parameters that are no scalars, as they are written."""
        copier = Copier(self.unit, function.uses, {})
        parts: list[Part] = []
        for variable, written in zip(
            function.parameters, separated(head[1 : closing(head, 0)]), strict=False
        ):
            if _is_scalar(variable):
                continue
            parts += [Part(",", written[0].start)] if parts else []
            parts += copier.text(Range(written[0].start, written[-1].end))
        return parts


def _is_scalar(variable: Variable) -> bool:
    return variable.scalar and variable.pointee is None and not variable.sizes


def _opening(head: list[Span], name: str, start: int) -> int:
    """The index of the bracket before the parameters."""
    for number, span in enumerate(head[:-1]):
        if span.text == name and head[number + 1].text == "(":
            return number + 1
    raise StaysOnHost(start, f"the head of '{name}' comes out of a macro")


def _last_return(unit: Mapped, function: Function, inside: Range) -> Range | None:
    """The `return` at a function's end, without its semicolon; None if there is none."""
    statements = unit.syntax.children(unit.file, inside)
    if not statements or not unit.text.text.startswith("return", statements[-1].start):
        if any(mark.kind == "return" for mark in function.marks):
            raise StaysOnHost(function.body.start, "it returns before its end")
        return None
    spans = scan(unit.text.text, statements[-1].start, statements[-1].end)
    return Range(spans[0].start, spans[-1].start)
