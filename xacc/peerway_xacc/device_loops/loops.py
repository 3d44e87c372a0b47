"""Finds the loops of the host that can run on the GPU, and writes each a second time for it.

    if (pwx_loops_on_gpu()) { the loop for the device } else the program's own loop

A loop `for (init; condition; step) { first; if (test) return ...; rest }` is written so that its state is
known once an iteration, behind the test: the run-time library executes `first`, and then, as long as the
state says so, `rest`, `step` and `first` again. A loop without a test has no `rest`. If the host
knows its trip count, it has no state either.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis.blocks import Item, items_of
from peerway_xacc.analysis.mapped import Mapped
from peerway_xacc.device_loops import candidates
from peerway_xacc.device_loops.body import Body
from peerway_xacc.device_loops.functions import Functions
from peerway_xacc.device_loops.heads import Exit, exit_of, head_of
from peerway_xacc.device_loops.rewritten import Insertion, Part, rewritten
from peerway_xacc.device_loops.scalars import DeviceScalars, compute_statements, on_device
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.device_loops.trip_count import TripCount, counting_loop, trip_count_of
from peerway_xacc.frontend.diagnostics import Place
from peerway_xacc.frontend.source import Function, Range, Statement, Variable, used_in
from peerway_xacc.frontend.tokens import Text, quoted, scan

_LEFT, _AGAIN, _LAST, _DONE = range(4)  # the states of a loop, as in acc.h


@dataclass(frozen=True)
class DeviceLoops:
    """The text with the loops for the device, and what --explain says of each loop."""

    text: Text | None  # None: there is no such loop
    explained: list[tuple[Place, str]]


def written(unit: Mapped) -> DeviceLoops:
    """Write the loops of a file for the device."""
    compute = compute_statements(unit)
    explained: list[tuple[Place, str]] = []
    functions = Functions(unit, compute, {})
    done: list[Range] = []
    for function in unit.syntax.functions:
        for statement in candidates.loops_of(unit, function):
            inside = Range(statement.start, statement.end)
            outer = any(range_.start <= inside.start < range_.end for range_ in [*done, *compute.ranges])
            if (
                outer
                or not candidates.may_compute(unit, function, inside, set())
                or candidates.has_directives(unit, statement)
            ):
                continue
            place = unit.text.place(statement.start)
            try:
                explained.append((place, _Loop(unit, functions, function, statement).write()))
                done.append(inside)
            except StaysOnHost as stays:
                line = unit.text.place(stays.offset).line
                explained.append((place, f"the loop stays on the host: {stays.reason} (line {line})"))
    text = rewritten(unit.text, functions.insertions) if done else None
    return DeviceLoops(text, explained)


@dataclass(frozen=True)
class _Parts:
    """The text of a loop's parts for the device."""

    upload: list[Part]  # gives the device its values, before the loop
    before_test: list[Part]
    behind_test: list[Part]


class _Loop:
    def __init__(self, unit: Mapped, functions: Functions, function: Function, statement: Statement) -> None:
        self.unit = unit
        self.functions = functions
        self.function = function
        self.statement = statement
        self.scalars = DeviceScalars()
        self.head = head_of(unit, statement)
        self.trips: TripCount | None = None

    def write(self) -> str:
        """Add the loop's text for the device. Returns what --explain says. Raises StaysOnHost."""
        start = self.statement.start
        items = items_of(self.unit, self.head.body)
        exit_ = exit_of(self.unit, self.function, self.head, items)
        whole = Range(start, self.statement.end)
        chosen = on_device(self.unit, self.functions.compute, self.function, whole)
        if exit_ is None:
            self.trips = trip_count_of(self.unit, self.functions.compute, self.function, self.head, chosen)
        if self.trips is not None and not self.trips.in_body:
            chosen = [variable for variable in chosen if variable is not self.trips.counter]
        for variable in chosen:
            name = self.functions.new_name(f"{self.function.name}_{variable.name}")
            self.scalars.names[id(variable)] = self.scalars.add(name, variable.spelling)
        body = Body(self.unit, self.function, self.scalars, self.functions.called, self.functions.new_name)
        state = self.functions.new_name(f"{self.function.name}_state")
        if self.trips is None:
            self.scalars.add(state, "int")
        outside = self._outside(chosen)
        parts = self._parts(body, items, exit_, state, outside)
        if not body.computes:
            raise StaysOnHost(start, "it has no loop of acc")
        insertion = self.functions.insertions.setdefault(self.function.whole.start, Insertion())
        declared = f"{self.scalars.declarations()} static pwx_loop {state}_loop; "
        insertion.add(declared, self.function.whole.start)
        text = self._text(parts, body.used, exit_, state, outside)
        self.functions.insertions.setdefault(start, Insertion()).extend(text)
        names = ", ".join(sorted({variable.name for variable in chosen}))
        how = "one launch of a CUDA graph" if self.trips is None else "CUDA graphs of many iterations"
        lives = f"; its scalars live there: {names}" if names else ""
        return f"the loop runs on the GPU, as {how} (on AMD GPUs the host starts each iteration){lives}"

    def _outside(self, chosen: list[Variable]) -> list[Variable]:
        """The scalars that exist before the loop's body, so that the host gives and gets their values."""
        body = self.head.body
        return [
            variable for variable in chosen
            if not body.start <= variable.declarator.start < body.end
        ]  # fmt: skip

    # ---- writing

    def _parts(
        self, body: Body, items: list[Item], exit_: Exit | None, state: str, outside: list[Variable]
    ) -> _Parts:
        at = self.statement.start
        first = items if exit_ is None else items[: exit_.number]
        rest = [] if exit_ is None else items[exit_.number + 1 :]
        early = exit_ is None or self._may_step_early(rest)
        hoisted: list[Part] = []
        if exit_ is not None:
            if not self._declares_on_host(rest):
                body.hoist()
            body.items(rest)
            if not early:
                body.arithmetic(self._step_text(body), at)
            body.flush()
            hoisted = body.take_hoisted()
        behind, body.parts = body.parts, []
        body.items(first)
        if self.trips is None:
            self._state(body, state, exit_, rest, early, hoisted)
        elif self.trips.in_body:
            body.arithmetic(self._step_text(body), at)
        body.flush()
        before, body.parts = body.parts, []
        for variable in outside:
            body.arithmetic(f" {self.scalars.names[id(variable)]} = {variable.name};", at)
        for total, identity in dict.fromkeys(body.totals):
            body.arithmetic(f" {total} = {identity};", at)
        if self.trips is None:
            body.arithmetic(f" {state} = {_AGAIN};", at)
        body.flush()
        return _Parts(body.parts, before, behind)

    def _text(
        self, parts: _Parts, used: set[str], exit_: Exit | None, state: str, outside: list[Variable]
    ) -> list[Part]:
        at = self.statement.start
        here = f"&(const pwx_where){{{quoted(self.unit.file)}, {self.unit.text.place(at).line}}}"
        loop, part, count = f"{state}_loop", f"{state}_part", "PWX_COUNT_UNKNOWN"
        # A loop with a trip count is executed in batches; each ends with all values on the host.
        text = [
            Part("if (pwx_loops_on_gpu()) {", at),
            *self._verbatim(self.head.initial),
            Part(f"; {'if' if self.trips is None else 'while'} (", at),
            *(self._verbatim(self.head.condition) or [Part("1", at)]),
            Part(") {", at),
        ]
        if names := ", ".join(sorted({*self.scalars.types, *used})):
            enter = f'{loop}.entered = 1; _Pragma("acc enter data create({names})")'
            text.append(Part(f" if (!{loop}.entered) {{ {enter} }}", at))
        text += parts.upload
        if self.trips is not None:
            count = f"{state}_count"
            text.append(Part(counting_loop(self.unit, self.function, self.head, self.trips, count), at))
        text.append(Part(f" pwx_loop_begin(&{loop}, {count}, {here}); for (int {part} = 0;;) {{", at))
        if exit_ is not None:
            last = Part(f" if ({part} == {_LAST}) break; }}", at)
            text += [Part(f" if ({part}) {{", at), *parts.behind_test, last]
        text += parts.before_test
        on_device = f'(const int *)pwx_device(&{loop}.known, &{state}, "{state}", {here})'
        address = "0" if self.trips is not None else f"pwx_gpu() ? {on_device} : &{state}"
        following = f"pwx_loop_next(&{loop}, {address}, {int(exit_ is not None)}, {here})"
        text.append(Part(f" {part} = {following}; if ({part} == 0) break; }}", at))
        text.append(Part(f" pwx_loop_end(&{loop}, {here});", at))
        return [*text, *self._results(exit_, state, outside, count), Part(" } } else ", at)]

    def _results(self, exit_: Exit | None, state: str, outside: list[Variable], count: str) -> list[Part]:
        """The text that gives the host its values behind a loop."""
        at = self.statement.start
        names = [self.scalars.names[id(variable)] for variable in outside]
        downloaded = names + ([state] if self.trips is None else [])
        text = [Part(f' _Pragma("acc update host({", ".join(downloaded)})")', at)] if downloaded else []
        text += [
            Part(f" {variable.name} = {name};", at) for variable, name in zip(outside, names, strict=True)
        ]
        if self.trips is not None and not self.trips.in_body:
            step = self._verbatim(self.head.step)
            text += [Part(f" for (; {count} > 0; {count}--) {{", at), *step, Part("; }", at)]
        if exit_ is not None and exit_.value is not None:
            value = self._verbatim(exit_.value)
            text += [Part(f" if ({state} == {_LEFT}) return ", at), *value, Part(";", at)]
        return text

    def _verbatim(self, inside: Range) -> list[Part]:
        """Text that the host evaluates, unchanged."""
        text = self.unit.text.text
        return [
            Part(f" {text[span.start : span.end]}", span.start - 1, copied=True)
            for span in scan(text, inside.start, inside.end)
        ]

    def _step_text(self, body: Body) -> str:
        step = self.head.step
        text = "".join(part.text for part in body.expression(step)) if step.start < step.end else ""
        return f"{text};" if text else ""

    def _condition_text(self, body: Body) -> str:
        condition = self.head.condition
        text = "".join(part.text for part in body.expression(condition))
        return text or "1"

    def _may_step_early(self, rest: list[Item]) -> bool:
        """May the step come right behind the test, because the part after it does not use its variables?"""
        changed = {id(use.variable) for use in used_in(self.function.uses, self.head.step) if use.written}
        return not any(
            id(use.variable) in changed
            for item in rest for use in used_in(self.function.uses, Range(item.start, item.end))
        )  # fmt: skip

    def _declares_on_host(self, items: list[Item]) -> bool:
        """Do statements declare variables of the host, which arithmetic before them cannot use?"""
        scalars = DeviceScalars(dict(self.scalars.names), dict(self.scalars.types))
        trial = Body(self.unit, self.function, scalars, self.functions.called, self.functions.new_name)
        trial.items(items)
        return trial.declares_on_host

    def _state(
        self,
        body: Body,
        state: str,
        exit_: Exit | None,
        rest: list[Item],
        early: bool,
        hoisted: list[Part],
    ) -> None:
        """Write the arithmetic that decides how the loop goes on, and with it what the rest begins with."""
        at = self.statement.start
        if exit_ is None:
            body.arithmetic(self._step_text(body), at)
            condition = self._condition_text(body)
            body.arithmetic(f" {state} = ({condition}) ? {_AGAIN} : {_DONE};", at)
            return
        counter = self._counter(rest)
        test = "".join(part.text for part in body.expression(exit_.condition))
        step = self._step_text(body) if counter is not None else ""
        condition = self._condition_text(body)
        decided = f" {state} = ({condition}) ? {_AGAIN} : {_LAST};"
        if step and not early:
            assert counter is not None
            name = self.scalars.names[id(counter)]
            saved = f" const {counter.spelling} pwx_saved = {name};"
            decided = f"{saved}{step}{decided} {name} = pwx_saved;"
        else:
            decided = step + decided
        body.arithmetic(f" if ({test}) {state} = {_LEFT}; else {{{decided}", at)
        body.add(hoisted)
        body.arithmetic(" }", at)

    def _counter(self, rest: list[Item]) -> Variable | None:
        """The variable that the step changes, if any: what follows the test must not change the condition."""
        step, condition = self.head.step, self.head.condition
        changed = [use.variable for use in used_in(self.function.uses, step) if use.written]
        if len(changed) > 1:
            raise StaysOnHost(step.start, "its step changes several variables")
        by_condition = {id(use.variable) for use in used_in(self.function.uses, condition) if use.written}
        needed = {id(use.variable): use.variable for part in (step, condition)
                  for use in used_in(self.function.uses, part)}  # fmt: skip
        for item in rest:
            for use in used_in(self.function.uses, Range(item.start, item.end)):
                if id(use.variable) in by_condition:
                    raise StaysOnHost(
                        use.range.start, f"its condition changes '{use.variable.name}', used after the test"
                    )
                if id(use.variable) in needed and (use.written or self._reduced(use.variable, item)):
                    raise StaysOnHost(
                        use.range.start, f"its condition needs '{use.variable.name}', written after the test"
                    )
        return changed[0] if changed else None

    def _reduced(self, variable: Variable, item: Item) -> bool:
        return any(
            name == variable.name and item.start <= inside.start
            for inside, name in self.functions.compute.reduced
            if item.statement is not None and inside.start == item.statement.start
        )
