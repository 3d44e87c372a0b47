"""The cells, notes and sentences of the answer, for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from peerway_common.units import counted
from peerway_measure.worth.assumptions import Assumptions
from peerway_measure.worth.hours import Field, Row, Sum, Worth
from peerway_measure.worth.notices import Effect

UNKNOWN = "unknown"
HEADINGS: dict[Field, str] = {
    "application": "application", "node_type": "node type", "account": "account", "project": "project",
}  # fmt: skip
NO_NAME = "(no name)"
MOST_ROWS = 40  # of a table; usage by the names of jobs may have thousands
MOST_NOTES = 20


def head(resource: str, *, a_year: bool) -> tuple[str, ...]:
    """The heading of the table of rows."""
    year = " a year" if a_year else ""
    return (
        "application",
        "node type",
        f"{unit(resource)}{year}",
        "in transfers",
        "less time",
        f"freed{year}",
    )


def sum_head(by: Field, resource: str, *, a_year: bool) -> tuple[str, ...]:
    """The heading of the table of sums."""
    year = " a year" if a_year else ""
    return (HEADINGS[by], f"{unit(resource)}{year}", "of them known", f"freed{year}")


def unit(resource: str) -> str:
    """GPU-hours or core-hours."""
    return "GPU-hours" if resource == "gpu" else "core-hours"


def cells(row: Row) -> tuple[str, ...]:
    """A row of the table."""
    gain = row.gain
    less = UNKNOWN if gain.value is None else _with_interval(
        percent(gain.value), row.interval and tuple(_number(end * 100) for end in row.interval)
    )  # fmt: skip
    if gain.measured is not None:
        in_transfers = share(gain.measured)
    else:
        in_transfers = "-" if gain.value is not None else UNKNOWN
    return (row.application or NO_NAME, row.node_type or "all", hours_text(row.sum.hours), in_transfers, less,
            freed_text(row.sum))  # fmt: skip


def sum_cells(each: Sum) -> tuple[str, ...]:
    """A row of the table of sums."""
    known = share(each.known_hours / each.hours) if each.hours else UNKNOWN
    return (each.name or NO_NAME, hours_text(each.hours), known, freed_text(each))


def total_sentence(total: Sum, resource: str, *, a_year: bool) -> str:
    """The answer in a sentence."""
    year = " a year" if a_year else ""
    if total.hours is None:
        return "Freed hours are unknown: --usage is missing; `peerway jobs usage -o FILE` writes it"
    if total.freed is None:
        of_all = f"{hours_text(total.hours)} {unit(resource)}{year}"
        return f"Freed hours are unknown: no row is known, of {of_all}"
    verb = "freed" if total.freed >= 0 else "lost"
    text = f"{size(abs(total.freed))} {unit(resource)}{year} {verb}"
    if total.interval:
        ends = sorted(total.interval if total.freed >= 0 else [-end for end in total.interval])
        text += f", 95 % interval {size(ends[0])} to {size(ends[1])}"
        text += ", which does not show that any are" if ends[0] <= 0 <= ends[1] else ""
    else:
        text += ", with an unknown interval"
    rest = 1 - total.known_hours / total.hours if total.hours else 0.0
    return f"{text}; {share(rest)} of the allocated hours are unknown" if rest > 1e-9 else text


def notes(rows: Sequence[Row]) -> list[str]:
    """What is unknown and what measures it; and what to know of the other rows."""
    lines = []
    for row in rows:
        name = f"{row.application or NO_NAME} on {row.node_type or 'all node types'}"
        if row.gain.value is None:
            todo = f"; measure: {'; '.join(row.gain.commands)}" if row.gain.commands else ""
            lines.append(f"{name} is unknown: {row.gain.problem}{todo}")
        lines += [f"{name}: {note}" for note in row.gain.notes]
    return [*lines[:MOST_NOTES], *more(len(lines) - MOST_NOTES, "note")]


def more(number: int, noun: str) -> list[str]:
    """A line about what a table or list leaves out; none if that is nothing."""
    return [f"and {counted(number, f'more {noun}')}, all of them with --json"] if number > 0 else []


def assumption_lines(assumed: Assumptions, *, notices: bool, transfers: bool) -> list[tuple[str, str]]:
    """The assumptions that this answer uses: NAME=VALUE and its sentence."""
    of_notices = ("used", "control")
    return [
        (value, sentence) for value, sentence in assumed.sentences()
        for name in [value.partition("=")[0]]
        if (notices and name in of_notices) or (transfers and name != "control")
    ]  # fmt: skip


def effect_lines(effect: Effect, resource: str) -> list[str]:
    """What notices freed, in sentences."""
    if effect.before is None or effect.after is None:
        return [f"What notices freed is unknown: {effect.problem}."]
    lines = [
        f"{effect.users} users with a notice: {share(effect.before)} of their {unit(resource)} were idle "
        f"before it, {share(effect.after)} after it."
    ]
    if effect.control is not None:
        direction = "fell" if effect.control >= 0 else "rose"
        lines.append(f"{effect.controls} users without a notice: their idle share {direction} by "
                     f"{_number(abs(effect.control) * 100)} points meanwhile.")  # fmt: skip
    if effect.omitted:
        lines.append(f"{effect.omitted} users are left out, because they have no hours before or after.")
    if effect.freed is None:
        return [*lines, f"What notices freed is unknown: {effect.problem}."]
    bounds = effect.interval
    interval = f" [{size(bounds[0])}, {size(bounds[1])}]" if bounds else f", interval unknown: {effect.note}"
    lines.append(
        f"Freed a year, of {hours_text(effect.hours)} {unit(resource)}: {size(effect.freed)}{interval}."
    )
    return lines


def freed_text(each: Sum) -> str:
    """Hours with their interval."""
    if each.freed is None:
        return UNKNOWN
    bounds = each.interval
    return _with_interval(size(each.freed), bounds and (size(bounds[0]), size(bounds[1])))


def hours_text(hours: float | None) -> str:
    """Allocated hours, to the hour."""
    return UNKNOWN if hours is None else f"{hours:,.0f}"


def share(value: float) -> str:
    """A share as per cent: "31 %", "0.4 %"."""
    return f"{_number(value * 100)} %"


def percent(value: float) -> str:
    """A change as per cent, with three digits."""
    return f"{_number(value * 100)} %"


def _with_interval(text: str, bounds: Sequence[str] | None) -> str:
    return f"{text} [{bounds[0]}, {bounds[1]}]" if bounds else f"{text} [{UNKNOWN}]"


def _number(value: float) -> str:
    """Up to three digits."""
    rounded = _three(value)
    return f"{rounded:.3g}" if abs(rounded) < 1000 else f"{rounded:,.0f}"


def size(value: float) -> str:
    """Hours with three digits: more would claim too much."""
    rounded = _three(value)
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def _three(value: float) -> float:
    if not value:
        return 0.0
    return round(value, 2 - floor(log10(abs(value))))


def names_of(worth: Worth, by: Field) -> bool:
    """Whether a table of sums by this column says more than the rows."""
    return len(worth.sums) > 1 or by in ("account", "project")
