"""The intrinsic types that kernels have, with kinds as numbers of bytes, and their types in C."""

from __future__ import annotations

from dataclasses import dataclass

_INTEROPERABLE = {
    ("integer", 1): "c_int8_t", ("integer", 2): "c_int16_t", ("integer", 4): "c_int32_t",
    ("integer", 8): "c_int64_t", ("real", 4): "c_float", ("real", 8): "c_double",
    ("complex", 4): "c_float_complex", ("complex", 8): "c_double_complex",
}  # fmt: skip
_C = {
    ("integer", 1): "signed char", ("integer", 2): "short", ("integer", 4): "int", ("integer", 8): "long",
    ("logical", 1): "signed char", ("logical", 2): "short", ("logical", 4): "int", ("logical", 8): "long",
    ("real", 4): "float", ("real", 8): "double",
    ("complex", 4): "float _Complex", ("complex", 8): "double _Complex",
}  # fmt: skip


@dataclass(frozen=True)
class Type:
    """`integer`, `real`, `complex` or `logical`, and its kind, which is a number of bytes (of one part)."""

    base: str
    kind: int

    @property
    def c_text(self) -> str:
        """The type of C with the same memory."""
        return _C[self.base, self.kind]

    @property
    def in_kernels(self) -> bool:
        """Do kernels have it?"""
        return (self.base, self.kind) in _C

    @property
    def bytes(self) -> int:
        """The size of a value."""
        return self.kind * (2 if self.base == "complex" else 1)

    @property
    def interface(self) -> str:
        """The type in the interface of a function of C, which the Fortran compiler compares; logicals have
        none.
        """
        kind = _INTEROPERABLE.get((self.base, self.kind))
        return f"{self.base}({kind})" if kind else "type(*)"

    @property
    def fortran(self) -> str:
        """The type as Fortran writes it."""
        return f"{self.base}({self.kind})"


INTEGER, LONG, REAL, DOUBLE = Type("integer", 4), Type("integer", 8), Type("real", 4), Type("real", 8)
LOGICAL = Type("logical", 4)
