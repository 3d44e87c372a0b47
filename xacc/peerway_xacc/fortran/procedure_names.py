"""The names of a procedure that kernels call, and its text in C."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.fortran.blocks import Blocks, Node
from peerway_xacc.fortran.c_names import c_name, number_text
from peerway_xacc.fortran.declarations import INTRINSIC, Entity
from peerway_xacc.fortran.intrinsic_types import LONG, Type
from peerway_xacc.fortran.kernel_code import KernelCode, note_changes
from peerway_xacc.fortran.kernel_names import ArrayOf, KernelNames
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.types import value_words
from peerway_xacc.fortran.values import Value
from peerway_xacc.fortran.words import Word, words_in, written
from peerway_xacc.frontend.diagnostics import Refused

_END = "pwf_end"


@dataclass
class ProcedureNames(KernelNames):
    """The names of a procedure: its dummy arguments, its own variables and constants."""

    own: dict[str, Type] = field(default_factory=dict)
    blocks: list[Node] = field(default_factory=list)

    def read(self) -> None:
        """Read its statements."""
        self.blocks = Blocks(self.unit, {}).read(self.scope.first_executable, self._last())
        note_changes(self, self.blocks)

    def _last(self) -> int:
        return (self.scope.end if self.scope.contains is None else self.scope.contains) - 1

    def changes(self, dummy: Word) -> bool:
        """Does it change an argument?"""
        return dummy.text in self.assigned | self.written

    def result_type(self, word: Word) -> Type:
        """The type of a function's value: in its header, or of the variable that has it."""
        name = self.scope.result_name
        if name in self.scope.entities:
            return self.types.of(self.scope, self.scope.entities[name], word.place)
        header = next(s for s in self.scope.statements if s.number == self.scope.header)
        before = [w.text for w in header.words].index("function")
        start = next((n for n, w in enumerate(header.words[:before]) if w.text in INTRINSIC), before)
        end = before
        while end > start and header.words[end - 1].text in ("pure", "elemental", "recursive", "impure"):
            end -= 1
        text = written(header.logical, header.words[start:end])
        if text:
            return self.types.of_text(self.scope, text, name, word.place)
        return self.types.of(self.scope, Entity(name, word), word.place)

    def scalar(self, word: Word) -> Value:
        """A variable of the procedure, or a constant."""
        name = word.text
        if name in self.own:
            return Value(c_name(name), self.own[name])
        declared = self.entity(word)
        if declared and "parameter" in declared[1].attributes:
            kind = self.type_of(word)
            value = self.types.integer(self.scope, name) if kind.base == "integer" else None
            if value is not None:
                return Value(number_text(value, kind), kind)
            words = value_words(*declared)
            if words:
                constant = self.expressions.read(words)
                return Value(f"(({kind.c_text}){constant.text})", kind)
        self._check_own(word, declared)
        kind = self.type_of(word)
        self.own[name] = kind
        self.declared.append(f"{kind.c_text} {c_name(name)};")
        return Value(c_name(name), kind)

    def _check_own(self, word: Word, declared: tuple[Scope, Entity] | None) -> None:
        procedure = f"'{self.scope.name}', which a kernel calls,"
        if declared and declared[0] is not self.scope:
            message = f"{procedure} uses '{word.text}', which is not its own; pass it as an argument"
            raise Refused(word.place, message)
        if declared and (declared[1].initialised or "save" in declared[1].attributes):
            raise Refused(word.place, f"{procedure} keeps '{word.text}' from call to call")

    def array(self, word: Word) -> ArrayOf:
        """A dummy argument, or an array of its own whose size is a constant."""
        if "%" in word.text:
            message = f"'{self.scope.name}', which a kernel calls, uses '{word.text}'; pass it as an argument"
            raise Refused(word.place, message)
        if word.text not in self.arrays and word.text not in self.own_arrays:
            self._check_own(word, self.entity(word))
            self.own_array(word)
        return super().array(word)

    def value(self, fortran: str) -> str:
        """Fortran computes nothing for a procedure."""
        place = self.scope.statements[0].words[0].place
        message = f"a kernel cannot call '{self.scope.name}', which needs {fortran} when it begins"
        raise Refused(place, message)

    def text(self, name: str, kind: Type | None, word: Word) -> str:
        """The procedure as C, in one line. A function has a `kind`."""
        arrays = [dummy for dummy in self.scope.dummies if self.is_array(dummy)]
        parameters = {
            dummy.text: self._scalar_parameter(dummy, kind)
            for dummy in self.scope.dummies
            if dummy not in arrays
        }
        for dummy in arrays:
            parameters[dummy.text] = self._array_parameter(dummy, kind)
        if kind:
            result = c_name(self.scope.result_name)
            self.own[self.scope.result_name] = kind
            self.leaving = f"return {result};"
            self.declared.append(f"{kind.c_text} {result};")
        else:
            self.leaving = f"goto {_END};"
        code = KernelCode(self, lambda _: None, lambda directive, _: _no_directive(directive.place), {})
        code.nodes(self.blocks)
        body = " ".join(text for _, text in code.out.pieces)
        listed = ", ".join(parameters[dummy.text] for dummy in self.scope.dummies)
        end = self.leaving if kind else " ".join([f"{_END}:;" if _END in body else "", *self.ending])
        return (
            f"static inline {kind.c_text if kind else 'void'} {name}({listed or 'void'}) "
            f"{{ {' '.join(self.declared)} {body} {end} }}"
        )

    def _scalar_parameter(self, dummy: Word, kind: Type | None) -> str:
        of_dummy, name = self.type_of(dummy), c_name(dummy.text)
        self.own[dummy.text] = of_dummy
        if not self.changes(dummy):
            return f"{of_dummy.c_text} {name}"
        self._check_function(dummy, kind)
        self.declared.append(f"{of_dummy.c_text} {name} = *pwr_{dummy.text};")
        self.ending.append(f"*pwr_{dummy.text} = {name};")
        return f"{of_dummy.c_text}* restrict pwr_{dummy.text}"

    def _array_parameter(self, dummy: Word, kind: Type | None) -> str:
        if self.changes(dummy):
            self._check_function(dummy, kind)
        entity, of_dummy = self.scope.entities[dummy.text], self.type_of(dummy)
        lower, extents = [], []
        for dimension in entity.dimensions or ():
            if dimension.upper is None and not dimension.assumed:
                message = f"'{self.scope.name}', which a kernel calls, has '{dummy.text}' without bounds; "
                raise Refused(dummy.place, f"{message}give them, as in {dummy.text}(n)")
            low = self._number(dimension.lower or "1", dummy)
            high = self._number(dimension.upper, dummy) if dimension.upper else ""
            lower.append(low)
            extents.append(f"({high} - {low} + 1)" if high else "")
        self.arrays[dummy.text] = ArrayOf(dummy.text, of_dummy, lower, extents, -1)
        const = "" if self.changes(dummy) else "const "
        return f"{const}{of_dummy.c_text}* restrict {c_name(dummy.text)}"

    def _number(self, text: str, dummy: Word) -> str:
        """A bound: a constant, or an expression of other arguments."""
        value = self.types.integer(self.scope, text)
        if value is not None:
            return number_text(value, LONG)
        return f"(long){self.expressions.integer(words_in(text, dummy.place)).text}"

    def _check_function(self, dummy: Word, kind: Type | None) -> None:
        if kind:
            message = f"'{self.scope.name}', which a kernel calls, changes its argument '{dummy.text}'"
            raise Refused(dummy.place, message)


def _no_directive(place: object) -> str:
    raise AssertionError(place)
