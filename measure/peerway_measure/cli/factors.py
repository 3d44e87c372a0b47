"""The option --factor of comparisons: a name, or a name with a value for each side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import BadInput
from peerway_common.suggestion import did_you_mean
from peerway_measure.bench.shapes import parse_size
from peerway_measure.compare.changes import listed
from peerway_measure.compare.groups import ENVIRONMENT, IDENTITY

if TYPE_CHECKING:
    from peerway_measure.records import Record

Factors = Mapping[str, tuple[str, str] | None]
HELP = (
    "An intended change: a field of the records, or a name in their extra, such as kernel. It does not "
    "separate groups; every other change gives a warning. May be repeated. With values, as in "
    "block=1M:16M, BEFORE uses the first and AFTER the second; both may be the same file."
)


def parse(words: Sequence[str]) -> Factors:
    """ "block=1M:16M" -> {"block": ("1M", "16M")}; None for a factor without values. Raises UsageError."""
    factors: dict[str, tuple[str, str] | None] = {}
    for word in words:
        name, equals, text = word.partition("=")
        old, colon, new = text.partition(":")
        if equals and not (old and new and colon):
            raise click.UsageError(f"--factor {word}: write the values of both sides, as in block=1M:16M")
        factors[name] = (old, new) if equals else None
    return factors


def check(factors: Iterable[str], records: Sequence[Record]) -> None:
    """Refuse a factor that no record has, because it is probably misspelt. Raises UsageError."""
    known = {*IDENTITY, *ENVIRONMENT, *(name for record in records for name in record.extra)}
    for name in factors:
        if name not in known:
            raise click.UsageError(
                f"--factor {name}: no record has it{did_you_mean(name, known) or '.'} "
                f"There are {', '.join(sorted(known))}"
            )


def chosen(
    factors: Factors, sides: tuple[list[Record], list[Record]], files: tuple[Path, Path]
) -> tuple[list[Record], list[Record]]:
    """The records of both sides with the requested values. Raises BadInput."""
    wanted = {name: values for name, values in factors.items() if values}
    kept = [_with({name: values[i] for name, values in wanted.items()}, sides[i], files[i]) for i in range(2)]
    return kept[0], kept[1]


def _with(wanted: Mapping[str, str], records: list[Record], file: Path) -> list[Record]:
    for name, value in wanted.items():
        matches = [record for record in records if _value(_text(record, name)) == _value(value)]
        if not matches:
            known_values = listed({_text(record, name) for record in records})
            raise BadInput(f"no record of {file} has {name}={value}; its values there: {known_values}")
        records = matches
    return records


def _text(record: Record, name: str) -> str:
    """The value in `extra`, or else the value of the field, as text.

    `extra` comes first because a campaign may have a factor `device`, whose values are not the devices that
    records name.
    """
    known = name in (*IDENTITY, *ENVIRONMENT) and name not in record.extra
    return str(getattr(record, name) if known else record.extra.get(name, ""))


def _value(text: str) -> int | str:
    """The value in bytes if the text is a size, so that 1M equals 1 MiB; otherwise the text."""
    try:
        return parse_size(text.replace(" ", ""))
    except ValueError:
        return text
