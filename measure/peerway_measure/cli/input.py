"""Reads record files for a command; mistakes in a file become errors of the command line."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import BadInput
from peerway_common.printable import shell_word
from peerway_common.terminal import say
from peerway_measure import records
from peerway_measure.file_kinds import is_route_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SKIP_TRUNCATED = click.option(
    "--skip-truncated", is_flag=True, help="Skip a last line that a killed run left cut off, with a warning."
)


def read_records(paths: Sequence[Path], skip_truncated: bool) -> list[records.Record]:
    """The records of all files, with text that is safe to print. Raises BadInput if a file cannot be read or
    has no records.
    """
    result = []
    for path in paths:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always", records.TruncatedRecordWarning)
                part = records.read(path, truncated="skip" if skip_truncated else "error")
        except records.RecordError as error:
            if is_route_table(path):
                raise BadInput(
                    f"{path} is a route table, not records; give it to --table of `peerway report`, and "
                    "records, as `peerway bench --out FILE` writes, here"
                ) from None
            hint = " (--skip-truncated)" if "cut off" in str(error) else ""
            raise BadInput(f"{error}{hint}") from None
        except OSError as error:
            raise BadInput(f"cannot read {path}: {error.strerror or error}") from None
        for warning in caught:
            say(f"peerway: {warning.message}", err=True)
        if not part:
            file = path if path.is_file() else "FILE"
            raise BadInput(f"{path} has no records; `peerway bench --out {shell_word(file)}` writes some")
        result += [record.as_printable() for record in part]
    return result
