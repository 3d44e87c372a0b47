"""The intrinsic functions of Fortran that kernels have, as C."""

from __future__ import annotations

from peerway_xacc.fortran.intrinsic_types import DOUBLE, INTEGER, LOGICAL, REAL, Type
from peerway_xacc.fortran.values import Value, promoted
from peerway_xacc.fortran.words import Word
from peerway_xacc.frontend.diagnostics import Refused

# Functions that may get a kind, and the number of that argument.
WITH_KIND = {"int": 1, "real": 1, "nint": 1, "floor": 1, "ceiling": 1, "aint": 1, "anint": 1, "cmplx": 2}
# Functions of C's mathematics, of reals: the same name but for these.
_MATHEMATICS = {
    "sqrt": "sqrt", "exp": "exp", "log": "log", "log10": "log10", "sin": "sin", "cos": "cos", "tan": "tan",
    "asin": "asin", "acos": "acos", "atan": "atan", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh",
    "asinh": "asinh", "acosh": "acosh", "atanh": "atanh", "erf": "erf", "erfc": "erfc", "gamma": "tgamma",
    "log_gamma": "lgamma",
}  # fmt: skip
_OF_COMPLEX = ("sqrt", "exp", "log", "sin", "cos", "abs")
_TWO_REALS = {"atan2": "atan2", "hypot": "hypot"}
# The older names, which say the type: each with the generic one.
_OLDER = {
    **{f"d{name}": name for name in (*_MATHEMATICS, "atan2", "abs", "mod", "sign", "int", "nint")},
    "dlog10": "log10", "iabs": "abs", "amod": "mod", "isign": "sign", "idnint": "nint", "idint": "int",
    "ifix": "int", "alog": "log", "alog10": "log10", "dmax1": "max", "dmin1": "min", "amax1": "max",
    "amin1": "min", "max0": "max", "min0": "min", "cabs": "abs",
}  # fmt: skip
_OTHERS = (
    "abs", "max", "min", "mod", "modulo", "sign", "dim", "dble", "float", "sngl", "conjg", "aimag", "iand",
    "ior", "ieor", "not", "ishft", "shiftl", "shiftr", "btest", "merge", "huge", "tiny", "epsilon",
)  # fmt: skip
KNOWN = frozenset((*_MATHEMATICS, *_TWO_REALS, *_OLDER, *_OTHERS))
_LIMITS = {
    ("huge", "integer", 1): "127", ("huge", "integer", 2): "32767", ("huge", "integer", 4): "2147483647",
    ("huge", "integer", 8): "9223372036854775807L", ("huge", "real", 4): "3.40282346638528859812e+38f",
    ("huge", "real", 8): "1.79769313486231570815e+308", ("tiny", "real", 4): "1.17549435082228750797e-38f",
    ("tiny", "real", 8): "2.22507385850720138309e-308", ("epsilon", "real", 4): "1.1920928955078125e-07f",
    ("epsilon", "real", 8): "2.2204460492503130808e-16",
}  # fmt: skip
_WIDE_ENOUGH = ("shiftl", "shiftr", "ishft", "btest")


def call(word: Word, values: list[Value], kind: int | None) -> Value:
    """A call of an intrinsic function. Raises Refused where the arguments do not fit."""
    name = _OLDER.get(word.text, word.text)
    if name in ("max", "min"):
        return _extreme(word, name, values)
    counts = {"merge": (3,), "cmplx": (1, 2)}
    two = (*_TWO_REALS, "mod", "modulo", "sign", "dim", "iand", "ior", "ieor", *_WIDE_ENOUGH)
    allowed = counts.get(name, (2,) if name in two else (1,))
    if len(values) not in allowed:
        raise Refused(word.place, f"{word.text} has {len(values)} arguments here")
    return _GROUPS[name](word, name, values, kind)


def power(base: Value, exponent: Value, kind: Type, word: Word) -> Value:
    """`base ** exponent`."""
    if exponent.type.base == "integer":
        if base.type.base == "complex":
            raise Refused(word.place, "a power of a complex number is not possible in a kernel yet")
        if exponent.text == "2" and base.text.replace("_", "").isalnum():
            return Value(f"({base.text} * {base.text})", base.type)
        suffix = _suffix(base.type) if base.type.base == "real" else "l"
        return Value(f"(({base.type.c_text})pwf_power_{suffix}({base.text}, {exponent.text}))", base.type)
    if kind.base != "real":
        raise Refused(word.place, "a power of complex numbers is not possible in a kernel yet")
    return Value(f"{_named('pow', kind)}({base.text}, {exponent.text})", kind)


def complex_of(real: Value, imaginary: Value, kind: Type) -> Value:
    """A complex number from its parts."""
    part = Type("real", kind.kind).c_text
    text = f"(({part})({real.text}) + ({part})({imaginary.text}) * ({kind.c_text})_Complex_I)"
    return Value(text, kind)


def _suffix(kind: Type) -> str:
    return {"integer": "l" if kind.kind == 8 else "i", "real": "d" if kind.kind == 8 else "f"}[kind.base]


def _named(name: str, kind: Type) -> str:
    return name if kind.kind == 8 else f"{name}f"


def _needs(word: Word, value: Value, *bases: str) -> None:
    if value.type.base not in bases:
        raise Refused(word.place, f"{word.text} of {value.type.fortran} is not possible in a kernel")


def _common(word: Word, values: list[Value], *bases: str) -> Type:
    kind = values[0].type
    for value in values:
        _needs(word, value, *bases)
        kind = promoted(kind, value.type, word)
    return kind


def _extreme(word: Word, name: str, values: list[Value]) -> Value:
    if len(values) < 2:
        raise Refused(word.place, f"{word.text} needs two arguments")
    kind = _common(word, values, "integer", "real")
    text = values[0].text
    for value in values[1:]:
        text = f"pwf_{name}_{_suffix(kind)}({text}, {value.text})"
    if word.text in ("amax1", "amin1", "max0", "min0", "dmax1", "dmin1"):
        return Value(text, kind)
    return Value(text if kind.kind in (4, 8) else f"(({kind.c_text}){text})", kind)


def _mathematics(word: Word, name: str, values: list[Value], _kind: int | None) -> Value:
    [value] = values
    if value.type.base == "complex" and name in _OF_COMPLEX:
        return Value(f"{_named(f'c{name}', value.type)}({value.text})", value.type)
    _needs(word, value, "real")
    return Value(f"{_named(_MATHEMATICS[name], value.type)}({value.text})", value.type)


def _two_reals(word: Word, name: str, values: list[Value], _kind: int | None) -> Value:
    kind = _common(word, values, "real")
    return Value(f"{_named(name, kind)}({values[0].text}, {values[1].text})", kind)


def _abs(word: Word, _name: str, values: list[Value], _kind: int | None) -> Value:
    [value] = values
    if value.type.base == "complex":
        return Value(f"{_named('cabs', value.type)}({value.text})", Type("real", value.type.kind))
    _needs(word, value, "integer", "real")
    if value.type.base == "integer":
        return Value(f"(({value.type.c_text})pwf_abs_{_suffix(value.type)}({value.text}))", value.type)
    return Value(f"{_named('fabs', value.type)}({value.text})", value.type)


def _pairs(word: Word, name: str, values: list[Value], _kind: int | None) -> Value:
    """mod, modulo, sign, dim."""
    kind = _common(word, values, "integer", "real")
    left, right = (value.text for value in values)
    if name == "mod":
        text = f"({left} % {right})" if kind.base == "integer" else f"{_named('fmod', kind)}({left}, {right})"
    elif name == "sign" and kind.base == "real":
        text = f"{_named('copysign', kind)}({left}, {right})"
    else:
        text = f"pwf_{name}_{_suffix(kind)}({left}, {right})"
    return Value(f"(({kind.c_text}){text})", kind)


def _number(word: Word, name: str, values: list[Value], kind: int | None) -> Value:
    """Conversions."""
    [value] = values
    if name in ("dble", "float", "sngl"):
        to = DOUBLE if name == "dble" else REAL
    elif name in ("real", "aint", "anint"):
        keeps = value.type.base == "complex" or (value.type.base == "real" and name != "real")
        to = Type("real", kind or (value.type.kind if keeps else 4))
    else:
        to = Type("integer", kind or 4)
    if value.type.base == "complex":
        value = Value(f"{_named('creal', value.type)}({value.text})", Type("real", value.type.kind))
    _needs(word, value, "integer", "real")
    rounding = {"nint": "round", "floor": "floor", "ceiling": "ceil", "aint": "trunc", "anint": "round"}
    text = value.text
    if name in rounding:
        _needs(word, value, "real")
        text = f"{_named(rounding[name], value.type)}({text})"
    return Value(f"(({to.c_text})({text}))", to)


def _complex(word: Word, name: str, values: list[Value], kind: int | None) -> Value:
    if name == "cmplx":
        to = Type("complex", kind or 4)
        if values[0].type.base == "complex":
            return Value(f"(({to.c_text})({values[0].text}))", to)
        zero = Value("0", INTEGER)
        return complex_of(values[0], values[1] if len(values) > 1 else zero, to)
    [value] = values
    _needs(word, value, "complex")
    if name == "conjg":
        return Value(f"{_named('conj', value.type)}({value.text})", value.type)
    return Value(f"{_named('cimag', value.type)}({value.text})", Type("real", value.type.kind))


def _bits(word: Word, name: str, values: list[Value], _kind: int | None) -> Value:
    if name == "not":
        _needs(word, values[0], "integer")
        return Value(f"(~{values[0].text})", values[0].type)
    kind = _common(word, values, "integer")
    if name in _WIDE_ENOUGH:
        kind = values[0].type
        left, right = (value.text for value in values)
        whole = f"unsigned {'char' if kind.kind == 1 else kind.c_text}"
        if name == "btest":
            return Value(f"((int)((({whole}){left} >> {right}) & 1))", LOGICAL)
        moved = {"shiftl": f"({whole}){left} << {right}", "shiftr": f"({whole}){left} >> {right}",
                 "ishft": f"pwf_shift({left}, {right}, {8 * kind.kind})"}  # fmt: skip
        return Value(f"(({kind.c_text})({moved[name]}))", kind)
    sign = {"iand": "&", "ior": "|", "ieor": "^"}[name]
    return Value(f"({values[0].text} {sign} {values[1].text})", kind)


def _merge(word: Word, _name: str, values: list[Value], _kind: int | None) -> Value:
    _needs(word, values[2], "logical")
    if values[0].type != values[1].type:
        raise Refused(word.place, "the first two arguments of merge must have the same type")
    return Value(f"({values[2].text} ? {values[0].text} : {values[1].text})", values[0].type)


def _limit(word: Word, name: str, values: list[Value], _kind: int | None) -> Value:
    kind = values[0].type
    if (name, kind.base, kind.kind) not in _LIMITS:
        raise Refused(word.place, f"{name} of {kind.fortran} is not possible in a kernel")
    return Value(_LIMITS[name, kind.base, kind.kind], kind)


_GROUPS = {
    **dict.fromkeys(_MATHEMATICS, _mathematics), **dict.fromkeys(_TWO_REALS, _two_reals), "abs": _abs,
    **dict.fromkeys(("mod", "modulo", "sign", "dim"), _pairs),
    **dict.fromkeys(("int", "nint", "floor", "ceiling", "real", "aint", "anint", "dble", "float", "sngl"),
                    _number),
    **dict.fromkeys(("cmplx", "conjg", "aimag"), _complex),
    **dict.fromkeys(("iand", "ior", "ieor", "not", *_WIDE_ENOUGH), _bits),
    "merge": _merge, **dict.fromkeys(("huge", "tiny", "epsilon"), _limit),
}  # fmt: skip
