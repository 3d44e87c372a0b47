"""What the names of a kernel's statements are in C: variables, arrays, and values that Fortran computes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran.blocks import CallOf
from peerway_xacc.fortran.c_names import c_name, number_text
from peerway_xacc.fortran.component_values import constructed
from peerway_xacc.fortran.declarations import Dimension, Entity
from peerway_xacc.fortran.derived_types import defined
from peerway_xacc.fortran.expressions import Expressions
from peerway_xacc.fortran.grammar import Arguments
from peerway_xacc.fortran.intrinsic_types import INTEGER, LONG, Type
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.types import Types
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.values import Value
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend.diagnostics import Refused, counted
from peerway_xacc.frontend.tokens import quoted

_UNKNOWN_EXTENT = ""


@dataclass
class ArrayOf:
    """An array of a kernel: its bounds as C text, in Fortran's order; the last extent may be unknown."""

    name: str
    type: Type
    lower: list[str]
    extents: list[str]
    number: int  # of the argument

    @property
    def count(self) -> str:
        """The number of its elements; empty where that is not known."""
        return "" if _UNKNOWN_EXTENT in self.extents else self.count_name

    @property
    def count_name(self) -> str:
        """What has the number of its elements, in C."""
        return f"pwn_{c_name(self.name)}"


class Calls(Protocol):
    """Writes the calls of procedures of the program, which need all of this for a procedure's own names."""

    def value(self, names: KernelNames, word: Word, parts: list[list[Word]]) -> Value:
        """A call of a function."""
        ...

    def statement(self, names: KernelNames, node: CallOf) -> str:
        """A call of a subroutine, as C text."""
        ...

    def changed(self, names: KernelNames, node: CallOf) -> list[Word]:
        """What a call changes in the caller."""
        ...


@dataclass
class KernelNames:
    """The variables of one kernel. `assigned` are the scalars that its statements change."""

    unit: FortranUnit
    scope: Scope
    types: Types
    procedures: Calls
    assigned: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)  # arrays
    values: Arguments = field(default_factory=lambda: Arguments("pwv"))
    passed: list[tuple[Type, str, str]] = field(default_factory=list)  # type, dimensions, Fortran text
    arrays: dict[str, ArrayOf] = field(default_factory=dict)
    own_arrays: dict[str, str] = field(default_factory=dict)  # private ones: their declarations
    scalars: dict[str, Type] = field(default_factory=dict)
    declared: list[str] = field(default_factory=list)  # C before the construct
    ending: list[str] = field(default_factory=list)  # C behind it
    functions: dict[str, str] = field(default_factory=dict)  # C of functions that are called
    shapes: dict[object, str] = field(default_factory=dict)  # the first array of each shape
    leaving: str = ""  # what RETURN is in a procedure
    local: set[str] = field(default_factory=set)  # scalars that a loop's body declares

    def __post_init__(self) -> None:
        self.expressions = Expressions(self)

    # ---- what expressions ask ----

    def entity(self, word: Word) -> tuple[Scope, Entity] | None:
        """What is declared of a name."""
        return self.unit.fortran.entity(word.text, self.scope)

    def is_array(self, word: Word) -> bool:
        """Is it an array?"""
        declared = self.entity(word)
        return declared is not None and declared[1].dimensions is not None

    def type_of(self, word: Word) -> Type:
        """The type of a variable."""
        declared = self.entity(word)
        if declared is None:
            return self.types.of(self.scope, Entity(word.text, word), word.place)
        return self.types.of(*declared, word.place)

    def scalar(self, word: Word) -> Value:
        """A variable or a named constant."""
        name = word.text
        if name in self.scalars:
            return Value(c_name(name), self.scalars[name])
        declared = self.entity(word)
        kind = self.type_of(word)
        if declared and "parameter" in declared[1].attributes and kind.base == "integer":
            value = self.types.integer(self.scope, name)
            if value is not None:
                return Value(number_text(value, kind), kind)
        self.scalars[name] = kind
        if name in self.local:
            return Value(c_name(name), kind)
        if kind.base == "integer" and name not in self.assigned:
            value_text = self.value(name)
            self.declared.append(f"const {kind.c_text} {c_name(name)} = ({kind.c_text}){value_text};")
        else:
            self._check_size(kind, name)
            changes = name in self.assigned
            argument = self._pass(kind, "", name)
            const = "" if changes else "const "
            self.declared.append(f"{const}{kind.c_text} {c_name(name)} = *({const}{kind.c_text}*){argument};")
            if changes:
                self.ending.append(f"*({kind.c_text}*){argument} = {c_name(name)};")
        return Value(c_name(name), kind)

    def initial(self, name: str, kind: Type) -> str:
        """The value that a variable has before the construct, as C text."""
        text = f"pwb_{name}"
        self._check_size(kind, name)
        argument = self._pass(kind, "", name)
        line = f"const {kind.c_text} {text} = *(const {kind.c_text}*){argument};"
        if line not in self.declared and not any(f" {text} = " in line for line in self.declared):
            self.declared.append(line)
        return text

    def element(self, word: Word, subscripts: list[Value]) -> Value:
        """An element of an array, by one subscript into its memory."""
        array = self.array(word)
        if len(subscripts) != len(array.lower):
            message = f"{counted(len(subscripts), 'subscript')} for '{word.text}', which has "
            raise Refused(word.place, message + counted(len(array.lower), "dimension"))
        text = ""
        for lower, extent, subscript in reversed(
            list(zip(array.lower, array.extents, subscripts, strict=True))
        ):
            own = _minus(subscript.text, lower)
            text = f"({text}) * {extent} + {own}" if text else own
        return Value(f"{c_name(word.text)}[{text}]", array.type)

    def kind(self, words: list[Word]) -> int:
        """The value of a kind."""
        text = " ".join(word.text for word in words)
        value = self.types.integer(self.scope, text)
        if value is None:
            raise Refused(words[0].place, f"the kind {text} is not known here; write a number")
        return value

    def bound(self, function: str, words: list[list[Word]], word: Word) -> Value:
        """size, lbound or ubound of an array, which Fortran computes before."""
        if not words or len(words[0]) != 1 or not self.is_array(words[0][0]):
            raise Refused(word.place, f"{function} in a kernel needs the name of an array")
        texts = [words[0][0].text]
        if len(words) > 1:
            texts.append(self.expressions.integer(words[1]).text)
            if not texts[1].isdigit():
                raise Refused(words[1][0].place, f"{function} in a kernel needs a constant dimension")
        elif function != "size":
            raise Refused(word.place, f"{function} in a kernel needs a dimension, as {function}(a, 1)")
        return Value(f"(int){self.value(f'{function}({chr(44).join(texts)})')}", INTEGER)

    def call(self, word: Word, arguments: list[list[Word]]) -> Value:
        """A call of a function of the program, or a value of a derived type from its components."""
        if defined(self.unit, self.scope, word.text):
            derived = self.types.derived.of(self.scope, word.text, word.text, word.place)
            return constructed(self.expressions, derived, word, arguments)
        return self.procedures.value(self, word, arguments)

    # ---- arguments ----

    def value(self, fortran: str) -> str:
        """A number that Fortran computes before the construct, as C text."""
        known = fortran in self.values.texts
        text = self.values.c_text(fortran)
        name = f"pwv_{self.values.texts.index(fortran)}"
        if not known:
            self.declared.append(f"const long {name} = {text};")
        return name

    def constant_or_value(self, fortran: str) -> str:
        """The same, or a number that is known here."""
        value = self.types.integer(self.scope, fortran)
        return self.value(fortran) if value is None else number_text(value, LONG)

    def array(self, word: Word) -> ArrayOf:
        """An array, which the kernel's function gets by its address."""
        name = word.text
        if name in self.arrays:
            return self.arrays[name]
        declared = self.entity(word)
        assert declared is not None
        assert declared[1].dimensions is not None
        kind = self.type_of(word)
        lower, extents = self._bounds(declared[1], declared[1].dimensions)
        if name in self.own_arrays:
            count = self.own_arrays[name]
            self.declared.append(f"{kind.c_text} {c_name(name)}[{count}];")
            self.arrays[name] = ArrayOf(name, kind, lower, extents, -1)
            return self.arrays[name]
        self._check_size(kind, name)
        argument = self._pass(kind, "(*)", name)
        const = "" if name in self.written else "const "
        address = f"pwf_aligned({argument})" if self.unit.array_at(name, self.scope) else argument
        self.declared.append(
            f"{const}{kind.c_text}* restrict {c_name(name)} = ({const}{kind.c_text}*){address};"
        )
        array = ArrayOf(name, kind, lower, extents, len(self.passed) - 1)
        if array.count:
            self.declared.append(f"const long {array.count} = {' * '.join(extents)};")
        self.arrays[name] = array
        return array

    def own_array(self, word: Word) -> None:
        """An array that each iteration has of its own, of a size that is known here."""
        declared = self.entity(word)
        assert declared is not None
        count = 1
        for dimension in declared[1].dimensions or ():
            low = self.types.integer(declared[0], dimension.lower or "1")
            high = self.types.integer(declared[0], dimension.upper or "")
            if low is None or high is None:
                message = f"the size of the private array '{word.text}' must be a constant"
                raise Refused(word.place, message)
            count *= max(0, high - low + 1)
        self.own_arrays[word.text] = str(count)

    def _check_size(self, kind: Type, name: str) -> None:
        """A derived type has the same memory in both languages."""
        if kind.base == "type":
            bits = self.value(f"storage_size({name})")
            check = f"pwf_check_size({bits}, sizeof({kind.c_text}), {quoted(kind.fortran)});"
            if check not in self.declared:
                self.declared.append(check)

    def _pass(self, kind: Type, dimensions: str, fortran: str) -> str:
        passed = (kind, dimensions, fortran)
        if passed not in self.passed:
            self.passed.append(passed)
        return f"pwc{self.passed.index(passed)}"

    def _bounds(self, entity: Entity, dimensions: list[Dimension]) -> tuple[list[str], list[str]]:
        lower, extents = [], []
        array = self.unit.array_at(entity.name, self.scope)
        name = self._shaped_alike(array, entity) if array else entity.name
        for number, dimension in enumerate(dimensions, 1):
            at = len(dimensions) - number  # in C's order
            parted = array is not None and not (
                array.dimensions[at] is None and array.shadow(at) == ("0", "0")
            )
            asked = parted or entity.deferred or (dimension.upper is None and not dimension.assumed)
            low = None if asked else self.types.integer(self.scope, dimension.lower or "1")
            high = None if asked else self.types.integer(self.scope, dimension.upper or "")
            asked_low = f"lbound({name}, {number})"
            lower.append(self.value(asked_low) if low is None else number_text(low, LONG))
            if dimension.assumed and not parted:
                extents.append(_UNKNOWN_EXTENT)
            elif low is not None and high is not None:
                extents.append(number_text(max(0, high - low + 1), LONG))
            else:
                extents.append(self.value(f"size({name}, {number})"))
        return lower, extents

    def _shaped_alike(self, array: DistributedArray, entity: Entity) -> str:
        """The first array of the kernel with the same bounds on each node: a kernel gets these once."""
        if entity.deferred or entity.dimensions is None:
            return array.name
        shadows = tuple(array.shadow(at) for at in range(len(array.dimensions)))
        bounds = tuple((bound.lower or "1", bound.upper) for bound in entity.dimensions)
        key = (id(array.function), id(array.template), tuple(array.dimensions), shadows, bounds)
        return self.shapes.setdefault(key, array.name)


def _minus(subscript: str, lower: str) -> str:
    if lower == "0L":
        return subscript
    return f"({subscript} - {lower})"
