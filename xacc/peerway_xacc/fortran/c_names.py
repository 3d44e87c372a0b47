"""Names and numbers of Fortran as C has them."""

from __future__ import annotations

from peerway_xacc.fortran.intrinsic_types import Type

# Names that C or its headers have.
_WORDS_OF_C = """
    auto break case char const continue default do double else enum extern float for goto if inline int long
    register restrict return short signed sizeof static struct switch typedef union unsigned void volatile
    while asm typeof unix linux bool true false complex imaginary class new delete this template operator
    private public protected namespace using try catch throw abs labs sqrt exp log log10 sin cos tan asin
    acos atan sinh cosh tanh asinh acosh atanh erf erfc tgamma lgamma gamma pow fmod fabs floor ceil round
    trunc copysign atan2 hypot fmax fmin creal cimag conj cabs cexp clog csin ccos csqrt y0 y1 yn j0 j1 jn
    main assert offsetof and or not xor signbit isnan isinf isfinite half warp block grid dim3
"""
_RESERVED = frozenset(_WORDS_OF_C.split())


def c_name(name: str) -> str:
    """A variable's name in C."""
    return f"{name}_" if name in _RESERVED else name.replace("%", "__")


def number_text(value: int, kind: Type) -> str:
    """An integer as C text."""
    text = f"{value}L" if kind.kind == 8 else str(value)
    return f"({text})" if value < 0 else text
