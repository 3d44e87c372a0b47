"""Writes statements for the device: loops of acc as they are, and what is between them as arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.analysis import loop_nest
from peerway_xacc.analysis.blocks import Item, items_of
from peerway_xacc.analysis.mapping import NodeArray, TemplateOf
from peerway_xacc.device_loops.arithmetic import Arithmetic, scalars_in
from peerway_xacc.device_loops.copying import Copier
from peerway_xacc.device_loops.rewritten import Part
from peerway_xacc.device_loops.stays import StaysOnHost
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.clauses import Reduced
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.source import Range, Statement, Variable, used_in
from peerway_xacc.frontend.tokens import Span, scan

_DECLARING = (d.Align, d.Shadow, d.StaticDesc)
_ON_HOST = ("async", "if", "self", "wait")
_IDENTITIES = {"+": "0", "*": "1"}
_JUMPS = ("goto", "switch", "case", "default", "do", "continue")


class Body(Arithmetic):
    """The statements of a range of one function, written for the device into `parts`."""

    # ---- statements

    def block(self, inside: Range) -> None:
        """Write the statements of a block."""
        self.items(items_of(self.unit, inside))

    def items(self, items: list[Item]) -> None:
        """Write statements and directives."""
        for item in items:
            if item.assignment is not None:
                self._assignment(item.directives[0], item.assignment)
            elif item.statement is None:
                self._alone(item.directives[0])
            elif item.directives:
                self._loop(item.statement, item.directives)
            else:
                self._statement(item.statement)

    def _alone(self, directive: d.Directive) -> None:
        if isinstance(directive, _DECLARING):
            self.parts.append(self._copier.directive(directive))
        elif isinstance(directive, d.Reflect):
            plain = directive.kind in ("reflect", "reflect_do") and not directive.nowait
            if not plain or directive.asynchronous:
                raise StaysOnHost(directive.start, "a split or asynchronous reflect is in it")
            if not directive.accelerator:
                raise StaysOnHost(directive.start, "a reflect without acc is in it")
            self.parts.append(self._copier.directive(directive))
        elif isinstance(directive, d.Reduction) and not directive.asynchronous:
            self._reduction(directive)
        else:
            raise StaysOnHost(directive.start, f"'{directive.spelling}' is in it")

    def _assignment(self, directive: d.Directive, assignment: Range) -> None:
        """A gmove of sections, which libclang does not see."""
        if not isinstance(directive, d.Gmove) or directive.mode != "collective":
            raise StaysOnHost(directive.start, f"'{directive.spelling}' is in it")
        if directive.asynchronous or not directive.accelerator:
            raise StaysOnHost(directive.start, "a gmove without acc, or with async, is in it")
        for number, span in enumerate(scan(self.unit.text.text, assignment.start, assignment.end)):
            variable = self.unit.syntax.variable(span.text, self.unit.file, span.start)
            if self._copier.name_of(variable) is not None:
                raise StaysOnHost(span.start, f"a gmove needs '{span.text}' on the host")
            if number == 0 and (variable is None or (variable.scalar and variable.pointee is None)):
                raise StaysOnHost(span.start, f"a gmove writes '{span.text}', which is no array")
        self.parts.append(self._copier.directive(directive))
        self.parts += self._copier.text(assignment)

    def _reduction(self, directive: d.Reduction) -> None:
        names = [operand.name.text for operand in directive.reduced]
        variables = [self.unit.syntax.variable(name, directive.file, directive.start) for name in names]
        here = [self._copier.name_of(variable) for variable in variables]
        if any(operand.locations for operand in directive.reduced) or None in here:
            raise StaysOnHost(directive.start, "a reduction of more than scalars is in it")
        self.before_kernel({name for name in here if name is not None})
        more = "" if directive.accelerator else "acc"
        self.parts.append(self._copier.directive(directive, more=more))

    def _statement(self, statement: Statement) -> None:
        text = self.unit.text.text
        spans = scan(text, statement.start, statement.end)
        inside = Range(statement.start, statement.end)
        if not spans or spans[0].text == ";":
            return
        if statement.kind == "block":
            self.block(Range(statement.start + 1, statement.end - 1))
        elif statement.kind == "declaration":
            self._declaration(inside)
        elif spans[0].text in ("if", "for", "while", "{"):
            self._control(statement, spans)
        elif spans[0].text in ("return", "break", *_JUMPS):
            raise StaysOnHost(statement.start, f"a '{spans[0].text}' is in it")
        elif self._is_call(spans):
            self._call_statement(spans)
        else:
            parts = self.expression(Range(inside.start, spans[-1].start))  # may end the arithmetic so far
            self._serial += [*parts, Part(";", inside.start)]

    def _control(self, statement: Statement, spans: list[Span]) -> None:
        """An if or a loop with nothing but arithmetic in it."""
        inside = Range(statement.start, statement.end)
        if self.unit.directives_in(inside) or any(
            inside.start <= start < inside.end for start in self._calls
        ):
            raise StaysOnHost(statement.start, f"a '{spans[0].text}' with loops or calls is in it")
        jump = next((span for span in spans if span.text in ("return", "break", *_JUMPS)), None)
        if jump is not None:
            raise StaysOnHost(jump.start, f"a '{jump.text}' is in it")
        self._serial += self.expression(inside)

    def _declaration(self, inside: Range) -> None:
        own = [
            variable for variable, of in self.unit.syntax.locals
            if of is self.function and inside.start <= variable.declarator.start < inside.end
        ]  # fmt: skip
        here = [self._copier.name_of(variable) is not None for variable in own]
        if not any(here):
            self._check_host_declaration(own, inside)
            self.declares_on_host = True
            self.parts += self._copier.text(inside)
            return
        if not all(here):
            raise StaysOnHost(inside.start, "it declares variables of the device and of the host at once")
        for variable in own:
            begin = self._initialiser(variable)
            name = self._copier.name_of(variable)
            if begin is not None and name is not None:
                self.result(name, Range(begin, variable.declarator.end))

    def _check_host_declaration(self, own: list[Variable], inside: Range) -> None:
        if any(inside.start <= start < inside.end for start in self._calls):
            raise StaysOnHost(inside.start, "a declaration calls a function")
        for variable in own:
            if variable.static:
                raise StaysOnHost(inside.start, f"'{variable.name}' outlives the function")

    def _initialiser(self, variable: Variable) -> int | None:
        """Where the initialiser of a scalar begins."""
        spans = scan(self.unit.text.text, variable.declarator.start, variable.declarator.end)
        return spans[1].end if len(spans) > 2 and spans[1].text == "=" else None

    # ---- loops of acc

    def _loop(self, statement: Statement, directives: list[d.Directive]) -> None:
        acc = [directive for directive in directives if isinstance(directive, d.Acc)]
        xmp = [directive for directive in directives if isinstance(directive, d.Loop)]
        if len(acc) != 1 or len(acc) + len(xmp) != len(directives) or statement.kind != "for":
            raise StaysOnHost(directives[0].start, f"'{directives[0].spelling}' is in it")
        construct = acc[0].construct
        if not construct.endswith(" loop") or construct.startswith("serial"):
            raise StaysOnHost(acc[0].start, f"'acc {construct}' is in it")
        if clauses := [clause.name for clause in acc[0].clauses if clause.name in _ON_HOST]:
            raise StaysOnHost(acc[0].start, f"an acc loop with {clauses[0]} is in it")
        self._check_headers(statement)
        reductions = [(self._nodes(loop), operand) for loop in xmp for operand in loop.reduced]
        joins = [self._join(nodes, operand, statement) for nodes, operand in reductions]
        totals = {id(join.variable): join.total for join in joins}
        copier = Copier(self.unit, self.function.uses, {**self.scalars.names, **totals})
        body = copier.text(Range(statement.start, statement.end))
        clauses_ = copier.directive(acc[0])
        names = scalars_in([*body, Part(clauses_.text.replace('"', " "), clauses_.origin)])
        self.before_kernel(names)
        for directive in xmp:
            self.parts.append(copier.directive(directive, without="reduction"))
        present = f" present({', '.join(sorted(names))})" if names else ""
        self.parts.append(copier.directive(acc[0], more=present))
        self.parts += body
        for join in joins:
            self.parts.append(join.directive)
            self.arithmetic(join.added, statement.start)
        self.computes = True

    def _check_headers(self, statement: Statement) -> None:
        """Refuse scalars of the device in the bounds of a kernel, which the host needs."""
        try:
            loops = loop_nest.nested_directly(self.unit, statement, 16)
        except Refused as refused:
            raise StaysOnHost(statement.start, refused.message) from refused
        for loop in loops:
            for use in used_in(self.function.uses, Range(loop.statement.start, loop.header.body)):
                if self._copier.name_of(use.variable):
                    raise StaysOnHost(use.range.start, f"a loop's bounds need '{use.variable.name}'")

    def _nodes(self, loop: d.Loop) -> str:
        """The name of the nodes that share a loop."""
        assert loop.on is not None
        mapping = self.unit.scopes.find(loop.on.name.text, self.function, loop.start)
        if any(subscript.star or subscript.whole for subscript in loop.on.subscripts or ()):
            raise StaysOnHost(loop.start, "a reduction over some of the nodes is in it")
        if isinstance(mapping, TemplateOf):
            mapping = mapping.onto
        if not isinstance(mapping, NodeArray):
            raise StaysOnHost(loop.start, "a reduction over unknown nodes is in it")
        return mapping.name

    def _join(self, nodes: str, operand: Reduced, statement: Statement) -> _Join:
        """Say how the nodes' values of a reduction become one, behind the loop."""
        at = statement.start
        variable = self.unit.syntax.variable(operand.name.text, self.unit.file, at)
        name = self._copier.name_of(variable)
        if variable is None or name is None or operand.locations:
            raise StaysOnHost(at, f"the reduction of '{operand.name.text}' is in it")
        identity = _IDENTITIES.get(operand.operator)
        if identity is None and operand.operator == "-":
            raise StaysOnHost(at, "a reduction with '-' is in it")
        if identity is None:  # the value before takes part in every node without harm
            return _Join(variable, name, _reduction(operand.operator, name, nodes, at))
        # A variable of its own, so that no arithmetic has to come right before the kernel.
        total = self.scalars.add(self._new_name(f"{variable.name}_total"), variable.spelling)
        self.totals.append((total, identity))
        added = f" {name} = {name} {operand.operator} {total}; {total} = {identity};"
        return _Join(variable, total, _reduction(operand.operator, total, nodes, at), added)


@dataclass(frozen=True)
class _Join:
    """A reduction of a loop over the nodes that share it."""

    variable: Variable
    total: str  # what the loop adds to: the variable, or one that has the operator's identity before
    directive: Part
    added: str = ""  # the arithmetic behind


def _reduction(operator: str, name: str, nodes: str, at: int) -> Part:
    return Part(f' _Pragma("xmp reduction({operator}: {name}) on {nodes} acc")', at)
