"""Functions of the program that kernels call: those of scalars, as functions of C before the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from peerway_xacc.fortran.blocks import Blocks
from peerway_xacc.fortran.declarations import INTRINSIC, Entity
from peerway_xacc.fortran.kernel_code import KernelCode, note_changes
from peerway_xacc.fortran.kernel_names import KernelNames, c_name, number_text
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.types import Type, value_words
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.values import Value, converted
from peerway_xacc.fortran.words import Word, written
from peerway_xacc.frontend.diagnostics import Refused, counted

_DEEPEST = 20


def called(names: KernelNames, word: Word, arguments: list[Value], depth: int = 0) -> Value:
    """A call of a function of this file. Raises Refused where a kernel cannot have it."""
    function = _function(names.unit, names.scope, word.text)
    if function is None:
        message = f"the function '{word.text}' is not in this file, so a kernel cannot call it"
        raise Refused(word.place, message)
    if depth > _DEEPEST:
        raise Refused(word.place, f"'{word.text}' calls itself, which kernels do not have")
    if len(arguments) != len(function.dummies):
        message = f"'{word.text}' has {counted(len(function.dummies), 'argument')}, and "
        raise Refused(word.place, f"{message}{len(arguments)} here")
    name = f"pwf_of_{function.name}_{function.number}"
    own = FunctionNames(names.unit, function, names.types, functions=names.functions, depth=depth)
    kind = own.result_type(word)
    if name not in names.functions:
        text = own.text(name, kind)
        names.functions[name] = text
    texts = [
        converted(value, own.type_of(dummy), word)
        for value, dummy in zip(arguments, function.dummies, strict=True)
    ]
    return Value(f"{name}({', '.join(texts)})", kind)


def _function(unit: FortranUnit, scope: Scope, name: str) -> Scope | None:
    """The function that a name means: of the program units around, or of the modules that they use."""
    for around in scope.chain():
        places = [around, *(unit.fortran.module(module) for module, _ in around.modules)]
        for place in places:
            for other in unit.structure.scopes:
                if other.kind == "function" and other.name == name and other.parent is place and place:
                    return None if other.foreign else other
    return None


@dataclass
class FunctionNames(KernelNames):
    """The names of a function: its dummy arguments, its own variables and constants."""

    depth: int = 0
    own: dict[str, Type] = field(default_factory=dict)

    def result_type(self, word: Word) -> Type:
        """The type of its value: in its header, or of the variable that has it."""
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
        """A variable of the function, or a constant."""
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
        if declared and declared[0] is not self.scope:
            message = f"'{self.scope.name}', which a kernel calls, uses '{name}', which is not its own; "
            raise Refused(word.place, message + "pass it as an argument")
        if declared and (declared[1].initialised or "save" in declared[1].attributes):
            message = f"'{self.scope.name}', which a kernel calls, keeps '{name}' from call to call"
            raise Refused(word.place, message)
        kind = self.type_of(word)
        self.own[name] = kind
        self.declared.append(f"{kind.c_text} {c_name(name)};")
        return Value(c_name(name), kind)

    def value(self, fortran: str) -> str:
        """Fortran computes nothing for a function."""
        place = self.scope.statements[0].words[0].place
        message = f"a kernel cannot call '{self.scope.name}', which needs {fortran} when it begins"
        raise Refused(place, message)

    def call(self, word: Word, arguments: list[Value]) -> Value:
        """Another function."""
        return called(self, word, arguments, self.depth + 1)

    def text(self, name: str, kind: Type) -> str:
        """The function as C, in one line."""
        blocks = Blocks(self.unit, {}).read(self.scope.first_executable, self.scope.end - 1)
        note_changes(self, blocks)
        parameters = []
        for dummy in self.scope.dummies:
            if self.is_array(dummy):
                message = f"'{self.scope.name}', which a kernel calls, has the array '{dummy.text}'; "
                raise Refused(dummy.place, message + "only scalars are possible yet")
            if dummy.text in self.assigned:
                message = f"'{self.scope.name}', which a kernel calls, changes its argument '{dummy.text}'"
                raise Refused(dummy.place, message)
            of_dummy = self.type_of(dummy)
            self.own[dummy.text] = of_dummy
            parameters.append(f"{of_dummy.c_text} {c_name(dummy.text)}")
        self.own[self.scope.result_name] = kind
        self.returned = c_name(self.scope.result_name)
        self.declared.append(f"{kind.c_text} {c_name(self.scope.result_name)};")
        code = KernelCode(self, lambda _: None, lambda directive, _: _no_directive(directive.place), {})
        code.nodes(blocks)
        body = " ".join(text for _, text in code.out.pieces)
        end = f"return {self.returned};"
        return (
            f"static {kind.c_text} {name}({', '.join(parameters) or 'void'}) "
            f"{{ {' '.join(self.declared)} {body} {end} }}"
        )


def _no_directive(place: object) -> str:
    raise AssertionError(place)
