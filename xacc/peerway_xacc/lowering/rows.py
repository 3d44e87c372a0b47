"""Lowers sections through pointers to pointers, `a[0:n][0:m]` of `T **a`, whose rows lie apart.

One list of pwx_data has the pointers; another has the rows, and is filled when the directive is executed.
Then the GPU's copy of the pointers is made to point to the copies of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.tokens import quoted
from peerway_xacc.lowering import memory
from peerway_xacc.lowering.c_text import where
from peerway_xacc.lowering.unit import Unit


@dataclass(frozen=True)
class Rows:
    """The rows of one section: the name of their list, and the C text that fills and attaches it."""

    name: str
    filled: str
    attached: str

    def begin(self, tail: str) -> str:
        """The call that begins a structured region.

        `tail` are the last arguments: the queue and the place.
        """
        return (
            f"pwx_data_begin(&{self.name}__region, (int){self.name}__n, {self.name}, {tail} {self.attached}"
        )

    def end(self, tail: str) -> str:
        """The call that ends a structured region."""
        return f"pwx_data_end(&{self.name}__region, (int){self.name}__n, {self.name}, {tail}"

    def declared(self, where_: str) -> str:
        """A variable whose cleanup releases the rows.

        Declare it after that of the pointers, so that it ends first.
        """
        return (
            f"__attribute__((cleanup(pwx_declared_end))) pwx_declared {self.name}__declared = "
            f"{{(int){self.name}__n, {self.name}, {where_}}};"
        )

    def call(self, function: str, tail: str) -> str:
        """A call of a function that takes a count and a list."""
        return f"{function}((int){self.name}__n, {self.name}, {tail}"


def named(unit: Unit, directives: list[d.Acc], kinds: dict[str, str]) -> set[str]:
    """The pointers to pointers whose rows the clauses name."""
    return {
        section.name.text
        for directive in directives
        for section in directive.named(*kinds)
        if memory.row_parts(unit, directive, section) is not None
    }


def of(unit: Unit, directive: d.Acc, kinds: dict[str, str], skipped: set[str] | None = None) -> list[Rows]:
    """The rows that a directive's clauses of these kinds name, without the variables in `skipped`."""
    all_rows = []
    for clause in directive.clauses:
        for section in clause.sections if clause.name in kinds else ():
            parts = memory.row_parts(unit, directive, section)
            if parts is None or section.name.text in (skipped or ()):
                continue
            table, count, offset, bytes_ = parts
            zero = "_ZERO" if clause.modifier == "zero" else ""
            name, text = unit.output.new_name(f"{section.name.text}__rows"), quoted(section.name.text)
            filled = (
                f"static __attribute__((unused)) pwx_data_region {name}__region; "
                f"const long {name}__n = {count}; "
                f"pwx_data {name}[{name}__n > 0 ? {name}__n : 1]; pwx_rows({name}, {name}__n, "
                f"PWX_DATA_{kinds[clause.name]}{zero}, {text}, {table}, {offset}, {bytes_});"
            )
            attach = f"pwx_rows_attach({text}, {table}, {name}__n, {offset}, {where(directive)});"
            all_rows.append(Rows(name, filled, "" if kinds[clause.name] in ("PRESENT", "DELETE") else attach))
    return all_rows
