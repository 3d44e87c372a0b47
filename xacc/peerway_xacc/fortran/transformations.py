"""The transformational procedures of XcalableMP: `call xmp_transpose(to, from, 0)` and its kind."""

from __future__ import annotations

from collections.abc import Callable

from peerway_xacc.analysis.mapping import DistributedArray
from peerway_xacc.fortran.generated import Call
from peerway_xacc.fortran.structure import Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import Word, closing, split
from peerway_xacc.frontend.diagnostics import Refused
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering.c_text import at

_Arrays = list[DistributedArray]


def _address(array: DistributedArray) -> str:
    return f"(void*){array.address}"


def _transpose(_kind: str, arrays: _Arrays) -> str:
    return f"xmp_transpose({_address(arrays[0])}, {_address(arrays[1])}, 0);"


def _matmul(kind: str, arrays: _Arrays) -> str:
    """C has the dimensions in the other order, and in that the factors are swapped."""
    product, left, right = (_address(array) for array in arrays)
    return f"pwx_matmul({kind}, {product}, {right}, {left});"


def _packed(function: str) -> Callable[[str, _Arrays], str]:
    def text(_kind: str, arrays: _Arrays) -> str:
        mask = _address(arrays[2]) if len(arrays) > 2 else "0"
        return f"{function}({_address(arrays[0])}, {_address(arrays[1])}, {mask});"

    return text


def _indexed(function: str, whose: int) -> Callable[[str, _Arrays], str]:
    def text(_kind: str, arrays: _Arrays) -> str:
        indices = ", ".join(_address(array) for array in arrays[:1:-1])
        first = f"{arrays[whose].symbol}__lb"
        to, given = (_address(array) for array in arrays[:2])
        return f"{function}({to}, {given}, (void* const[]){{{indices}}}, {first});"

    return text


def _sort(up: int) -> Callable[[str, _Arrays], str]:
    def text(kind: str, arrays: _Arrays) -> str:
        return f"pwx_sort({kind}, {_address(arrays[0])}, {_address(arrays[1])}, {up});"

    return text


# The text of the call, how many arrays it has at least and at most, and: does it need the elements' type?
_PROCEDURES: dict[str, tuple[Callable[[str, _Arrays], str], int, int, bool]] = {
    "xmp_transpose": (_transpose, 2, 2, False),
    "xmp_matmul": (_matmul, 3, 3, True),
    "xmp_pack": (_packed("xmp_pack"), 2, 3, False),
    "xmp_unpack": (_packed("xmp_unpack"), 3, 3, False),
    "xmp_gather": (_indexed("pwx_gather", 1), 3, 9, False),
    "xmp_scatter": (_indexed("pwx_scatter", 0), 3, 9, False),
    "xmp_sort_up": (_sort(1), 2, 2, True),
    "xmp_sort_down": (_sort(0), 2, 2, True),
}


def transformations(unit: FortranUnit) -> None:
    """Replace the calls of a file."""
    for statement in unit.structure.statements:
        for number, word in enumerate(statement.words[:-2]):
            if word.text == "call" and statement.words[number + 1].text in _PROCEDURES:
                with unit.diagnostics.collecting():
                    _replace(unit, statement, number)


def _replace(unit: FortranUnit, statement: Statement, call: int) -> None:
    words = statement.words
    name = words[call + 1]
    text, least, most, typed = _PROCEDURES[name.text]
    if words[call + 2].text != "(":
        raise Refused(name.place, f"{name.text} needs arrays as its arguments")
    parts = split(words[call + 3 : closing(words, call + 2)], ",")
    if name.text == "xmp_transpose" and len(parts) == 3:
        parts = parts[:2]  # whether `from` may change does not matter
    if not least <= len(parts) <= most:
        raise Refused(name.place, f"{name.text} has {len(parts)} arguments here")
    arrays = [_array(unit, statement, part, name) for part in parts]
    if name.text in ("xmp_gather", "xmp_scatter"):
        indexed = arrays[1] if name.text == "xmp_gather" else arrays[0]
        if len(arrays) - 2 != len(indexed.dimensions):
            message = f"{name.text} needs an array of indices for each dimension of '{indexed.name}'"
            raise Refused(name.place, message)
    kind = f"pwx_f_type(c0, PWX_SUM, {quoted(arrays[0].name)}, {at(name.place)})"
    others = [("any", arrays[0].name)] if typed else []
    made = Call(unit.name("transform"), [text(kind, arrays)], others=others)
    start, end = words[call].start, words[closing(words, call + 2)].end
    unit.generated.edit(statement.number, start, end, unit.generated.call(statement.scope, made))
    unit.moved.add(statement.number)


def _array(unit: FortranUnit, statement: Statement, part: list[Word], name: Word) -> DistributedArray:
    """The array of an argument, which is its name or `xmp_desc_of(name)`."""
    texts = [word.text for word in part]
    word = part[2] if texts[:2] == ["xmp_desc_of", "("] and len(part) == 4 else part[0] if part else name
    array = unit.array_at(word.text, statement.scope)
    if array is None or len(part) not in (1, 4):
        raise Refused(word.place, f"{name.text} needs the names of distributed arrays")
    return array
