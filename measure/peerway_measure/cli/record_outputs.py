"""Opens the outputs for the records of `peerway bench`, and reports on them at the end."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from peerway_common.cli.options import BadInput
from peerway_common.terminal import say
from peerway_measure.bench import machine
from peerway_measure.cli.output import cannot_write
from peerway_measure.record_output import STANDARD, RecordFile, StandardOutput, Unusable

if TYPE_CHECKING:
    from peerway_common.ending import Ended
    from peerway_measure.record_output import Output


class Outputs:
    """The outputs for records. They are opened and tried before anything is measured."""

    def __init__(self, out: Path | None, append: bool, form: str) -> None:
        self.file: RecordFile | None = None
        try:
            if out is not None and out != STANDARD:
                self.file = RecordFile(out, append)
        except Unusable as error:
            raise BadInput(str(error)) from None
        except OSError as error:
            assert out is not None
            raise cannot_write(out, error) from None
        self.before = self.file.before if self.file else ()
        self.all: list[Output] = [self.file] if self.file else []
        self.all += [StandardOutput()] if form == "jsonl" else []

    def tell(self, new: int) -> None:
        """Say where the new records are."""
        if self.file and (new or self.before):
            more = f", {new} of them new" if self.before else ""
            _say(f"{new + len(self.before)} records in {self.file.path}{more}")

    def tell_end(self, count: int, end: Ended) -> None:
        """Say, after a signal ended the benchmark, how many records are kept and which command measures the
        rest.
        """
        summary = f"peerway: ended by {end.name} after {count} record{'s' if count > 1 else ''}"
        more = "" if "--append" in sys.argv else " --append"
        if not count:
            _say(f"peerway: ended by {end.name} before the first record")
        elif self.file is None:
            _say(
                f"{summary}, which are in no file; with --out they would be, and --append would go on from "
                "them"
            )
        else:
            _say(f"{summary}; they are in {self.file.path}, and this goes on from there:")
            _say(machine.command() + more)

    def close(self) -> None:
        """Close the outputs."""
        for each in self.all:
            each.close()


def _say(text: str) -> None:
    with suppress(OSError):  # the terminal may be gone
        say(text, err=True)
