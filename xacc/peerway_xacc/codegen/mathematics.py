"""Gives kernels C's functions of math.h, which compute in double whatever their argument is.

CUDA C++ chooses them by the type of the argument, as tgmath.h does: its `exp` of a float is a float.
"""

from __future__ import annotations

from peerway_xacc.lowering.unit import Unit

_ONE = (
    "acos acosh asin asinh atan atanh cbrt ceil cos cosh erf erfc exp exp2 expm1 fabs floor lgamma log log10 "
    "log1p log2 logb nearbyint rint round sin sinh sqrt tan tanh tgamma trunc"
)
_TWO = "atan2 copysign fdim fmax fmin fmod hypot nextafter pow remainder"
_PARAMETERS = {
    **dict.fromkeys(_ONE.split(), ("x", "(double)(x)")),
    **dict.fromkeys(_TWO.split(), ("x, y", "(double)(x), (double)(y)")),
    **dict.fromkeys(("ldexp", "scalbn"), ("x, n", "(double)(x), n")),
    "fma": ("x, y, z", "(double)(x), (double)(y), (double)(z)"),
    "abs": ("n", "(int)(n)"),
    "labs": ("n", "(long)(n)"),
}


def of_c(unit: Unit, names: set[str]) -> list[str]:
    """Macros that call these functions as C does, without names that the program defines itself."""
    own = {*unit.texts.defines, *(function.name for function in unit.syntax.functions)}
    return [
        f"#define {name}({_PARAMETERS[name][0]}) {name}({_PARAMETERS[name][1]})"
        for name in sorted(names & set(_PARAMETERS) - own)
    ]
