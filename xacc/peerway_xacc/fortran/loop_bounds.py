"""The bounds of a DO that xmp distributes: between them what the node owns."""

from __future__ import annotations

from peerway_xacc.analysis.mapping import TemplateOf
from peerway_xacc.fortran.do_loops import Do
from peerway_xacc.fortran.generated import KINDS
from peerway_xacc.fortran.grammar import place_of
from peerway_xacc.fortran.structure import Scope
from peerway_xacc.fortran.unit import FortranUnit
from peerway_xacc.frontend import directives as d
from peerway_xacc.frontend.diagnostics import Refused

NUMBERS_OF_SPAN, NUMBERS_OF_CYCLE = 2, 5


def bound(unit: FortranUnit, scope: Scope, do: Do, variable: str, at: int, exact: bool) -> None:
    """Edit the first and the last value of a DO: between them what the node owns. `exact` numbers are within
    the loop's bounds already, or leave them on purpose.
    """
    first, last = do.text(do.first), do.text(do.last)
    span = f"{variable}({at + 1}:{at + 2})"
    if exact:
        low, high = f"{variable}({at + 1})", f"{variable}({at + 2})"
    elif do.counts_by_one:
        low = f"max(int({first}, 8), {variable}({at + 1}))"
        high = f"min(int({last}, 8), {variable}({at + 2}))"
    else:
        step = f"int({do.text(do.step)}, 8)"
        low = f"pwx_f_first(int({first}, 8), {step}, {span})"
        high = f"pwx_f_until(int({last}, 8), {step}, {span})"
        _helpers(unit, scope)
    number, kind = do.statement.number, f"kind({do.index.text})"
    unit.generated.edit(number, do.first[0].start, do.first[-1].end, f"int({low}, {kind})")
    unit.generated.edit(number, do.last[0].start, do.last[-1].end, f"int({high}, {kind})")


def _helpers(unit: FortranUnit, scope: Scope) -> None:
    """The interfaces of the run time's functions for bounds."""
    have = unit.generated.interfaces.setdefault(scope.number, [])
    if any("pwx_f_first" in line for line in have):
        return
    for name in ("pwx_f_first", "pwx_f_until"):
        have += [
            f"function {name}(bound, step, own) bind(C)", KINDS,
            "integer(c_int64_t), intent(in) :: bound, step, own(2)",
            f"integer(c_int64_t) :: {name}", f"end function {name}",
        ]  # fmt: skip
    have += [
        "function pwx_f_dealt(cycle, bound) bind(C)", KINDS,
        "integer(c_int64_t), intent(in) :: cycle(5), bound",
        "integer(c_int64_t) :: pwx_f_dealt", "end function pwx_f_dealt",
    ]  # fmt: skip


def cycle_lines(mapping: TemplateOf, dimension: int, offset: str, at: int) -> list[str]:
    """C that writes the numbers of a cyclic dimension, from place `at` on."""
    names = ("lower", "upper", "width", "parts", "at")
    values = " ".join(f"c0[{at + number}] = s.{name};" for number, name in enumerate(names))
    return [f"{{ const pwx_cycle s = pwx_cycle_of({mapping.address}, {dimension}, {offset}); {values} }}"]


def deal(unit: FortranUnit, scope: Scope, do: Do, variable: str, at: int) -> None:
    """A loop over a cyclic dimension counts what the node owns, and makes the index of the count."""
    _helpers(unit, scope)
    first, last = do.text(do.first), do.text(do.last)
    number = do.statement.number
    count = f"pwx_q{number}"
    unit.generated.declare(scope, f"integer(8) :: {count}")
    cycle = f"{variable}({at + 1}:{at + 5})"
    lower, _, width, parts, mine = (f"{variable}({at + place})" for place in range(1, 6))
    if do.step and do.text(do.step).startswith("-"):
        raise Refused(place_of(do.step), "a loop over a cyclic dimension must go upwards")
    unit.generated.edit(number, do.index.start, do.index.end, count)
    unit.generated.edit(number, do.first[0].start, do.first[-1].end, f"pwx_f_dealt({cycle}, int({first}, 8))")
    end = do.step[-1].end if do.step else do.last[-1].end
    unit.generated.edit(number, do.last[0].start, end, f"pwx_f_dealt({cycle}, int({last}, 8) + 1) - 1")
    value = f"{lower} + ({count}/{width}*{parts} + {mine})*{width} + mod({count}, {width})"
    lines = [f"{do.index.text} = int({value}, kind({do.index.text}))"]
    if not do.counts_by_one:
        lines.append(f"if (mod({do.index.text} - ({first}), {do.text(do.step)}) /= 0) cycle")
    unit.generated.behind(number, *lines)


def not_for_threads(unit: FortranUnit, directive: d.Loop, outer: Do) -> None:
    """Raises Refused for a directive of OpenMP or OpenACC between that of the loop and its DO."""
    logicals = unit.structure.logicals
    for number in range(unit.number_of(directive) + 1, outer.statement.number):
        if logicals[number].model in ("omp", "acc"):
            place = unit.text.place(logicals[number].start)
            raise Refused(place, "a loop over a cyclic dimension cannot be shared by threads yet; use block")
