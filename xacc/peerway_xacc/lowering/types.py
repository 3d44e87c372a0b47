"""Maps types of C to their names in the run-time library."""

from __future__ import annotations

from peerway_xacc.frontend.diagnostics import Place, Refused
from peerway_xacc.frontend.source import Variable

_TYPES = {
    "char": "PWX_CHAR", "signed char": "PWX_SIGNED_CHAR", "unsigned char": "PWX_UNSIGNED_CHAR",
    "_Bool": "PWX_BOOL", "short": "PWX_SHORT", "unsigned short": "PWX_UNSIGNED_SHORT", "int": "PWX_INT",
    "unsigned int": "PWX_UNSIGNED_INT", "long": "PWX_LONG", "unsigned long": "PWX_UNSIGNED_LONG",
    "long long": "PWX_LONG_LONG", "unsigned long long": "PWX_UNSIGNED_LONG_LONG", "float": "PWX_FLOAT",
    "double": "PWX_DOUBLE", "long double": "PWX_LONG_DOUBLE", "_Complex float": "PWX_FLOAT_COMPLEX",
    "_Complex double": "PWX_DOUBLE_COMPLEX",
}  # fmt: skip
_BITS = ("&", "|", "^")
OPERATORS = {
    "+": "PWX_SUM", "-": "PWX_SUM", "*": "PWX_PRODUCT", "max": "PWX_MAX", "min": "PWX_MIN",
    "&": "PWX_BIT_AND", "|": "PWX_BIT_OR", "^": "PWX_BIT_XOR", "&&": "PWX_AND", "||": "PWX_OR",
}  # fmt: skip


def run_time_type(variable: Variable, place: Place, operator: str) -> str:
    """The run-time name of a variable's type for a reduction with an operator.

    Raises Refused if there is none.
    """
    kind = _TYPES.get(c_type(variable))
    if kind is None:
        raise Refused(
            place, f"'{variable.name}' is of type {variable.element}, which no reduction is defined for"
        )
    floating = kind in ("PWX_FLOAT", "PWX_DOUBLE", "PWX_LONG_DOUBLE")
    if "COMPLEX" in kind and operator not in ("+", "-", "*"):
        raise Refused(place, f"'{operator}' is not defined for the complex '{variable.name}'")
    if floating and operator in _BITS:
        raise Refused(place, f"'{operator}' is not defined for the floating-point '{variable.name}'")
    return kind


def c_type(variable: Variable) -> str:
    """The type of a variable or of its elements, without qualifiers."""
    words = [word for word in variable.element.split() if word not in ("const", "volatile", "restrict")]
    return " ".join(words)
