"""The inquiry functions of XcalableMP, `ierr = xmp_array_lbound(xmp_desc_of(a), 1, low)`, and xmp_desc_of."""

from __future__ import annotations

from peerway_xacc.fortran.generated import KINDS
from peerway_xacc.fortran.grammar import place_of
from peerway_xacc.fortran.structure import Scope, Statement
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.fortran.words import closing
from peerway_xacc.frontend.diagnostics import Refused

# The declarations of arguments, by their letters below.
_KINDS = {
    "d": "type(*) :: c{}",
    "n": "integer(4), intent(in) :: c{}",
    "i": "integer(4), intent(out) :: c{}",
    "l": "logical(4), intent(out) :: c{}",
    "m": "integer(4), intent(out) :: c{}(*)",
}
FUNCTIONS = {
    "xmp_nodes_ndims": "di", "xmp_nodes_index": "dni", "xmp_nodes_size": "dni",
    "xmp_template_fixed": "dl", "xmp_template_ndims": "di", "xmp_template_lbound": "dni",
    "xmp_template_ubound": "dni", "xmp_dist_format": "dni", "xmp_dist_blocksize": "dni",
    "xmp_dist_gblockmap": "dnm", "xmp_dist_axis": "dni", "xmp_dist_nodes": "dd",
    "xmp_align_axis": "dni", "xmp_align_offset": "dni", "xmp_align_replicated": "dnl",
    "xmp_align_template": "dd", "xmp_array_ndims": "di", "xmp_array_lbound": "dni",
    "xmp_array_ubound": "dni", "xmp_array_gcllbound": "dni", "xmp_array_gclubound": "dni",
    "xmp_array_gsize": "dni", "xmp_array_lsize": "dni", "xmp_array_lshadow": "dni",
    "xmp_array_ushadow": "dni", "xmp_array_gtol": "dnni",
}  # fmt: skip
DESCRIPTOR = "xmp_desc_of"


def inquiries(unit: FortranUnit) -> None:
    """Let the calls of a file reach the run-time library."""
    known: dict[str, str] = {}
    for statement in unit.structure.statements:
        if statement.number in unit.moved:
            continue
        with unit.diagnostics.collecting():
            for number, word in enumerate(statement.words[:-1]):
                if word.kind != "name" or statement.words[number + 1].text != "(":
                    continue
                if word.text in FUNCTIONS:
                    unit.generated.edit(
                        statement.number, word.start, word.end, _declared(unit, statement, word.text)
                    )
                elif word.text == DESCRIPTOR:
                    _descriptor(unit, statement, number, known)


def _declared(unit: FortranUnit, statement: Statement, name: str) -> str:
    """Declare a function of the run-time library in a scope; its name there."""
    function = name.replace("xmp_", "pwx_f_", 1)
    letters = FUNCTIONS[name]
    arguments = ", ".join(f"c{number}" for number in range(len(letters)))
    _interface(unit, statement.scope, function, [
        f"function {function}({arguments})", f"integer(4) :: {function}",
        *(_KINDS[letter].format(number) for number, letter in enumerate(letters)), f"end function {function}",
    ])  # fmt: skip
    return function


def _interface(unit: FortranUnit, scope: Scope, function: str, lines: list[str]) -> None:
    have = unit.generated.interfaces.setdefault(scope.number, [])
    if f"end function {function}" not in have:
        have += lines


def _descriptor(unit: FortranUnit, statement: Statement, number: int, known: dict[str, str]) -> None:
    """The address of a descriptor, as an integer or, where it is assigned, as what the type xmp_desc has."""
    words = statement.words
    end = closing(words, number + 1)
    inside = words[number + 2 : end]
    if len(inside) != 1 and [word.text for word in inside[1:2]] != ["%"]:
        raise Refused(place_of(words[number : end + 1]), f"{DESCRIPTOR} needs one name")
    name = "".join(word.text for word in inside)
    offset = statement.logical.start
    declared = unit.array_at(name, statement.scope) or unit.scopes.find(name, statement.scope, offset)
    if declared is None:
        message = f"'{name}' is neither a node array nor a template nor a distributed array"
        raise Refused(inside[0].place, message)
    address = declared.address
    if address not in known:
        known[address] = unit.name("described")
        unit.generated.ending.append(
            f"int64_t {known[address]}(void) {{ return (int64_t)(intptr_t){address}; }}"
        )
    function = known[address]
    lines = [f"function {function}() bind(C)", KINDS, f"integer(c_int64_t) :: {function}"]
    _interface(unit, statement.scope, function, [*lines, f"end function {function}"])
    text = f"{function}()"
    if words[number - 1].text == "=" and end == len(words) - 1 and words[0].text not in ("call", "if"):
        text = f"xmp_desc({text})"
    unit.generated.edit(statement.number, words[number].start, words[end].end, text)
