"""Writes the statements of an acc construct as C with acc directives, each in the line that the user has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from peerway_xacc.fortran.acc_clauses import AccDirective
from peerway_xacc.fortran.blocks import Assign, CallOf, If, Jump, Loop, Node, walk
from peerway_xacc.fortran.c_names import c_name
from peerway_xacc.fortran.do_loops import Do
from peerway_xacc.fortran.intrinsic_types import LONG
from peerway_xacc.fortran.kernel_names import KernelNames
from peerway_xacc.fortran.values import converted
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend.diagnostics import Refused

# The bounds of a distributed loop as Fortran text: those of the node's part, and those of the loop in it.
Span = Callable[[Do], tuple[str, str, str, str] | None]


@dataclass
class Written:
    """C text with the line of the program that each piece belongs to."""

    pieces: list[tuple[int, str]] = field(default_factory=list)

    def put(self, line: int, text: str) -> None:
        """Text for a line; a directive begins with `#`."""
        self.pieces.append((line, text))


def note_changes(names: KernelNames, nodes: list[Node]) -> None:
    """Which variables and arrays the statements change."""
    for node in walk(nodes):
        if isinstance(node, Assign):
            into = names.written if names.is_array(node.target[0]) else names.assigned
            into.add(node.target[0].text)
        elif isinstance(node, Loop) and node.do:
            names.assigned.add(node.do.index.text)
        elif isinstance(node, CallOf):
            for word in names.procedures.changed(names, node):
                into = names.written if names.is_array(word) else names.assigned
                into.add(word.text)
                if not names.is_array(word):
                    node.changed.add(word.text)


@dataclass
class KernelCode:
    """The writer of one construct. `spans` knows the bounds of loops that are distributed over nodes."""

    names: KernelNames
    spans: Span
    pragma: Callable[[AccDirective, Loop], str]
    own: dict[int, list[str]]  # the variables that each parallel loop's body declares, by the loop's id
    out: Written = field(default_factory=Written)
    _open: list[Loop] = field(default_factory=list)
    _labels: set[str] = field(default_factory=set)

    def nodes(self, nodes: list[Node]) -> None:
        """Statements in their order."""
        for node in nodes:
            if isinstance(node, Assign):
                self._assign(node)
            elif isinstance(node, If):
                self._if(node)
            elif isinstance(node, Loop):
                self.loop(node)
            elif isinstance(node, CallOf):
                self.out.put(node.name.place.line, self.names.procedures.statement(self.names, node))
            else:
                self._jump(node)

    def _assign(self, node: Assign) -> None:
        line = node.statement.words[0].place.line
        target = self.names.expressions.read(node.target)
        value = self.names.expressions.read(node.value)
        text = f"{target.text} = {converted(value, target.type, node.value[0])};"
        if node.atomic:
            kinds = [clause.name for clause in node.atomic.clauses]
            self.out.put(node.atomic.place.line, f"#pragma acc atomic {' '.join(kinds) or 'update'}")
            text = f"{target.text} = {_bare(value.text)};"
        self.out.put(line, text)

    def _if(self, node: If) -> None:
        for number, (statement, condition, body) in enumerate(node.branches):
            line = statement.words[0].place.line
            if condition is None:
                self.out.put(line, "else {")
            else:
                word = "else if" if number else "if"
                self.out.put(line, f"{word} ({self.names.expressions.condition(condition)}) {{")
            self.nodes(body)
            self.out.put(line, "}")

    def _jump(self, node: Jump) -> None:
        line = node.word.place.line
        if node.word.text == "return":
            if not self.names.leaving:
                raise Refused(node.word.place, "RETURN leaves a construct of acc before its end")
            self.out.put(line, self.names.leaving)
            return
        around = self._open[-1] if self._open else None
        wanted = next((loop for loop in reversed(self._open) if loop.name == node.target), None)
        goal = wanted if node.target else around
        if goal is None:
            raise Refused(node.word.place, f"{node.word.text.upper()} has no loop in this construct")
        leaves = node.word.text == "exit"
        if leaves and goal.parallel:
            raise Refused(node.word.place, "EXIT leaves a loop whose iterations run in parallel")
        if goal is around:
            self.out.put(line, "break;" if leaves else "continue;")
            return
        inside = self._open[self._open.index(goal) :]
        if any(loop.parallel for loop in inside[1:]):
            raise Refused(node.word.place, f"{node.word.text.upper()} leaves a loop that runs in parallel")
        label = f"pw_{node.word.text}_{goal.statement.number}"
        self._labels.add(label)
        self.out.put(line, f"goto {label};")

    def loop(self, node: Loop) -> None:
        """A loop with its directive."""
        line = node.statement.words[0].place.line
        if node.do is None:
            condition = self.names.expressions.condition(node.condition) if node.condition else "1"
            self.out.put(line, f"while ({condition}) {{")
        else:
            before, header = self._header(node)
            if before:
                self.out.put(line, f"{{ {before}")
            if node.acc:
                self.out.put(node.acc.place.line, self.pragma(node.acc, node))
            self.out.put(line, f"{header} {{")
            self._declare(node, line)
            self._skip(node, line)
        self._open.append(node)
        self.nodes(node.body)
        self._open.pop()
        last = f"pw_cycle_{node.statement.number}"
        over = f"pw_exit_{node.statement.number}"
        self.out.put(line, f"{f'{last}:; ' if last in self._labels else ''}}}")
        if over in self._labels:
            self.out.put(line, f"{over}:;")
        if node.do and before:
            self.out.put(line, "}")

    def _skip(self, node: Loop, line: int) -> None:
        """A loop with margin skips the iterations that are in both of its ranges or in none."""
        margin = self.names.unit.margins.get(node.statement.number)
        if not margin:
            return
        tests = []
        for at in range(2):
            bounds = [(c_name(index), *ranges[at]) for index, ranges in margin.items()]
            parts = [
                f"{index} >= {self.names.value(low)} && {index} <= {self.names.value(high)}"
                for index, low, high in bounds
            ]
            tests.append(f"({' && '.join(parts)})")
        self.out.put(line, f"if ({tests[0]} == {tests[1]}) continue;")

    def _declare(self, node: Loop, line: int) -> None:
        for name in self.own.get(id(node), []):
            word, initial = self._first_use(node, name)
            kind = self.names.scalars.get(name) or self.names.type_of(word)
            self.names.local.add(name)
            self.names.scalars[name] = kind
            value = f" = {self.names.initial(name, kind)}" if initial else ""
            self.out.put(line, f"{kind.c_text} {c_name(name)}{value};")

    def _first_use(self, node: Loop, name: str) -> tuple[Word, bool]:
        """A word of a variable, and: may an iteration read it before it has written it?"""
        for inner in node.body:
            words = _words(inner)
            uses = [word for word in words if word.text == name]
            if not uses:
                continue
            if isinstance(inner, Assign):
                changes_part = inner.target[0].text == name and len(inner.target) > 1
                return uses[0], changes_part or any(word.text == name for word in inner.value)
            is_index = isinstance(inner, Loop) and inner.do and inner.do.index.text == name
            return uses[0], not (is_index and _never_outside(node, name))
        raise AssertionError("a variable that a body declares is used in it")

    def _header(self, node: Loop) -> tuple[str, str]:
        """What stands before a FOR, and its head."""
        do = node.do
        assert do is not None
        index = c_name(do.index.text)
        kind = self.names.scalars.get(do.index.text) or self.names.type_of(do.index)
        if kind.base != "integer":
            raise Refused(do.index.place, "the index of a loop in a kernel must be an integer")
        owned = node.parallel or do.index.text in self.own.get(id(node), ())
        head = f"{kind.c_text} {index}" if owned else self.names.scalar(do.index).text
        if owned:
            self.names.local.add(do.index.text)
            self.names.scalars[do.index.text] = kind
        step = self._step(do)
        first, last = self._bounds(do, step)
        before = ""
        changing = _values_in(do.last) & (self.names.assigned | self.names.written)
        if changing and not self._is_index_around(changing):
            before = f"const {kind.c_text} pw_last_{do.statement.number} = {last};"
            last = f"pw_last_{do.statement.number}"
        if step in ("1", "-1"):
            sign, by = ("<=", "++") if step == "1" else (">=", "--")
            return before, f"for ({head} = {first}; {index} {sign} {last}; {index}{by})"
        sign = ">=" if step.startswith("-") else "<="
        by = f"-= {step[1:]}" if step.startswith("-") else f"+= {step}"
        return before, f"for ({head} = {first}; {index} {sign} {last}; {index} {by})"

    def _is_index_around(self, changing: set[str]) -> bool:
        """Are these only indices of loops around, which the body of this loop does not change?"""
        indices = {loop.do.index.text for loop in self._open if loop.do}
        return changing <= indices

    def _step(self, do: Do) -> str:
        if not do.step:
            return "1"
        value = self.names.types.integer(self.names.scope, do.text(do.step))
        if value is None or value == 0:
            message = "the step of a loop in a kernel must be a constant that is not 0"
            raise Refused(do.step[0].place, message)
        return str(value)

    def _bounds(self, do: Do, step: str) -> tuple[str, str]:
        expressions = self.names.expressions
        first, last = (expressions.integer(words).text for words in (do.first, do.last))
        span = self.spans(do)
        if span is None:
            return first, last
        first_here, last_here, low_text, high_text = span
        if not _values_in([*do.first, *do.last, *do.step]) & (self.names.assigned | self.names.written):
            return self.names.value(first_here), self.names.value(last_here)
        low, high = self.names.value(low_text), self.names.value(high_text)
        if step != "1":
            raise Refused(do.step[0].place, "a distributed loop in a kernel must count upwards by 1 yet")
        kind = self.names.type_of(do.index)
        suffix = "l" if kind == LONG else "i"
        own = f"({kind.c_text}){low}", f"({kind.c_text}){high}"
        return f"pwf_max_{suffix}({first}, {own[0]})", f"pwf_min_{suffix}({last}, {own[1]})"


def _values_in(words: list[Word]) -> set[str]:
    """The names whose values count: of an array in `size` and its kind only the bounds do."""
    names = set()
    for number, word in enumerate(words):
        before = words[number - 2].text if number > 1 and words[number - 1].text == "(" else ""
        if before not in ("size", "lbound", "ubound"):
            names.add(word.text)
    return names


def _bare(text: str) -> str:
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _words(node: Node) -> list[Word]:
    words: list[Word] = []
    for inner in walk([node]):
        if isinstance(inner, Assign):
            words += inner.target + inner.value
        elif isinstance(inner, If):
            words += [word for _, condition, _ in inner.branches for word in condition or ()]
        elif isinstance(inner, CallOf):
            words += [word for part in inner.arguments for word in part]
        elif isinstance(inner, Loop):
            words += inner.condition
            if inner.do:
                words += [inner.do.index, *inner.do.first, *inner.do.last, *inner.do.step]
    return words


def _never_outside(node: Loop, name: str) -> bool:
    """Is a variable only used in loops whose index it is?"""
    for inner in node.body:
        is_its_loop = isinstance(inner, Loop) and inner.do is not None and inner.do.index.text == name
        if not is_its_loop and any(word.text == name for word in _words(inner)):
            return False
    return True
