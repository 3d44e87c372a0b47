"""Writing to a file: what is said when it cannot be written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path


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
