"""Writes arithmetic with scalars of the device, as `acc serial`, and the calls of functions in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import dataclass, field

from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops.copying import Copier
from peerway_xacc.device_loops.rewritten import Part
from peerway_xacc.device_loops.scalars import PREFIX, DeviceScalars
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.frontend.source import Function, Range, used_in
from peerway_xacc.frontend.tokens import Span, closing, scan, separated

# Of the functions of math.h, those that give the same bits everywhere.
_EXACT = ("sqrt", "fabs", "fmax", "fmin", "floor", "ceil", "trunc")
_EXACT_FUNCTIONS = frozenset([*_EXACT, *(f"{name}f" for name in _EXACT), "abs", "labs"])


@dataclass(frozen=True)
class Called:
    """A function of the file as the device calls it. Without a copy, the program's own is called."""

    copy: str = ""  # empty: it has no scalars on the device
    parameters: dict[int, str] = field(default_factory=dict)  # the names of those on the device, by number
    result: tuple[str, str] | None = None  # the name and type of what it returns
    scalars: frozenset[str] = frozenset()  # the scalars of the device that it and what it calls use
    in_kernels: frozenset[str] = frozenset()  # those of them that its kernels use
    totals: tuple[tuple[str, str], ...] = ()  # what its reductions add to, and the values they begin with
    # the arithmetic before its first kernel and behind its last one, which its caller executes
    before: tuple[Part, ...] = ()
    behind: tuple[Part, ...] = ()


def scalars_in(parts: Iterable[Part]) -> set[str]:
    """The scalars of the device that some text names."""
    words = (span.text for part in parts for span in scan(part.text) if span.kind == "name")
    return {word for word in words if word.startswith(PREFIX)}


class Arithmetic:
    """The text for a range of a function so far, and the arithmetic that waits for the next kernel."""

    def __init__(
        self,
        unit: Mapped,
        function: Function,
        scalars: DeviceScalars,
        called: Callable[[str, int], Called],
        new_name: Callable[[str], str],
        hoists: bool = False,
    ) -> None:
        """With `hoists` the arithmetic before the first kernel goes to `before`, for the caller."""
        self.unit = unit
        self.function = function
        self.scalars = scalars
        self.parts: list[Part] = []
        self.before: list[Part] = []
        self.declares_on_host = False
        self.used: set[str] = set()  # the scalars of the functions that are called
        self.in_kernels: set[str] = set()  # the scalars that the kernels so far use
        self.totals: list[tuple[str, str]] = []  # what reductions add to, and the values they begin with
        self.computes = False  # whether there is a loop of acc, or a call of a function with one
        self._hoists = hoists
        self._called = called
        self._new_name = new_name
        self._copier = Copier(unit, function.uses, scalars.names)
        self._serial: list[Part] = []  # arithmetic that waits for the next kernel
        self._calls = {mark.start: mark.name for mark in function.marks if mark.kind == "call"}

    def take(self) -> list[Part]:
        """Take the arithmetic that no kernel has been written for."""
        serial, self._serial = self._serial, []
        return serial

    def flush(self) -> None:
        """End the arithmetic so far: one thread of the device executes it."""
        if not self._serial:
            return
        if self._hoists:
            self.before += self.take()
            return
        origin = self._serial[0].origin
        names = scalars_in(self._serial)
        self.in_kernels |= names
        present = f" present({', '.join(sorted(names))})" if names else ""
        self.parts.append(Part(f' _Pragma("acc serial{present}") {{', origin))
        self.parts += self.take()
        self.parts.append(Part(" }", origin))

    def before_kernel(self, names: Set[str]) -> None:
        """Write the arithmetic that a kernel with these scalars needs to come before it.

        Other arithmetic goes on to wait, so that fewer kernels do more of it.
        """
        if names & scalars_in(self._serial):
            self.flush()
        self._hoists = False
        self.in_kernels |= names

    def assign(self, name: str, value: list[Part], origin: int) -> None:
        """Add an assignment to the arithmetic."""
        self._serial += [Part(f" {name} =", origin), *value, Part(";", origin)]

    def arithmetic(self, text: str, origin: int) -> None:
        """Add text to the arithmetic."""
        if text:
            self._serial.append(Part(text, origin))

    def add(self, parts: Iterable[Part]) -> None:
        """Add statements to the arithmetic."""
        self._serial += parts

    def hoist(self) -> None:
        """Let the arithmetic up to the next kernel go to `before`."""
        self._hoists = True

    def take_hoisted(self) -> list[Part]:
        """Take what went to `before`, and hoist nothing more."""
        self._hoists = False
        before, self.before = self.before, []
        return before

    def result(self, name: str, inside: Range) -> None:
        """Assign the value of an expression of the program to a variable of the device."""
        self.assign(name, self.expression(inside), inside.start)

    # ---- expressions and calls

    def expression(self, inside: Range) -> list[Part]:
        """The text of an expression on the device; calls in it come before."""
        text = self.unit.text.text
        self._check_uses(inside)
        spans = scan(text, inside.start, inside.end)
        parts: list[Part] = []
        number = 0
        while number < len(spans):
            span = spans[number]
            name = self._calls.get(span.start)
            following = spans[number + 1].text if number + 1 < len(spans) else ""
            if name is not None and span.kind == "name":
                if any(each.text in ("&&", "||", "?") for each in spans):
                    raise StaysOnHost(span.start, "a call is in only one branch of an expression")
                end = closing(spans, number + 1)
                parts.append(Part(f" {self._call(name, spans[number : end + 1])}", span.start))
                number = end + 1
                continue
            known = self.unit.texts.defines
            if span.kind == "name" and following == "(" and span.text not in known and (
                span.text not in (*_EXACT_FUNCTIONS, "if", "for", "while", "sizeof")
            ):  # fmt: skip
                raise StaysOnHost(span.start, f"'{span.text}' may give other bits on a GPU")
            parts.append(self._copier.token(span))
            number += 1
        return parts

    def _check_uses(self, inside: Range) -> None:
        for use in used_in(self.function.uses, inside):
            variable = use.variable
            if variable.scalar and variable.pointee is None and not use.subscripts:
                continue
            call = use.argument is not None and use.callee in self._calls.values()
            if not call:
                raise StaysOnHost(use.range.start, f"the host uses '{variable.name}'")

    def _is_call(self, spans: list[Span]) -> bool:
        """Is a statement a call, whose result nobody takes?"""
        return spans[0].start in self._calls and closing(spans, 1) == len(spans) - 2

    def _call_statement(self, spans: list[Span]) -> None:
        self._call(self._calls[spans[0].start], spans[:-1], wanted=False)

    def _call(self, name: str, spans: list[Span], wanted: bool = True) -> str:
        """Write a call, from its name to the closing bracket. Returns the variable with its result."""
        at = spans[0].start
        called = self._called(name, at)
        values: list[tuple[str, list[Part]]] = []
        arrays: list[Part] = []
        for number, argument in enumerate(separated(spans[2:-1])):
            inside = Range(argument[0].start, argument[-1].end)
            if number in called.parameters:
                values.append((called.parameters[number], self.expression(inside)))
                continue
            if any(self._copier.name_of(use.variable) for use in used_in(self.function.uses, inside)):
                raise StaysOnHost(inside.start, "an argument needs a scalar on the host")
            arrays += [Part(",", at)] if arrays else []
            arrays += self._copier.text(inside)
        for parameter, value in values:
            self.assign(parameter, value, at)
        self._serial += called.before
        self.before_kernel(called.in_kernels)
        self.totals += called.totals
        self.parts += [Part(f" {called.copy or name}(", at), *arrays, Part(");", at)]
        self._serial += called.behind
        self.used |= called.scalars
        self.computes = True
        if called.result is None or not wanted:
            if wanted:
                raise StaysOnHost(at, f"'{name}' returns nothing that lives on the device")
            return ""
        result = self.scalars.add(self._new_name(name), called.result[1])
        self.arithmetic(f" {result} = {called.result[0]};", at)
        return result
