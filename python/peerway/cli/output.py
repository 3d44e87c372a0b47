"""Writing to the terminal, a pipe or a file: the width of tables, and what is said when a file cannot be
written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from rich.console import Console

if TYPE_CHECKING:
    from pathlib import Path

PLAIN_WIDTH = 120  # of tables that go to a file or a pipe


def table_console() -> Console:
    """Standard output, as wide as the terminal is."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=PLAIN_WIDTH)


def cannot_write(path: Path, error: OSError) -> click.ClickException:
    """The error to raise for a file that cannot be written."""
    return click.ClickException(
        f"cannot write {path}: {error.strerror or error}; name another file with --out"
    )


def ensure_writable(path: Path) -> None:
    """Make the folder of a file, and see that the file can be written; one that is there keeps its content.

    Before a long measurement, not after it. Raises click.ClickException.
    """
    there = path.exists()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
        if not there:
            path.unlink()
    except OSError as error:
        raise cannot_write(path, error) from None
