"""Writes output files: the errors if one cannot be written, and a check before a long measurement."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import click

from peerway_common.terminal import say
from peerway_measure.record_output import STANDARD

if TYPE_CHECKING:
    from pathlib import Path


def cannot_write(path: Path, error: OSError, option: str = "--out") -> click.ClickException:
    """The error if the file of this option cannot be written. Its exit status is 1, because the command line
    is right.
    """
    why = error.strerror or error
    if isinstance(error, FileNotFoundError) and not path.parent.is_dir():
        why = f"there is no folder {path.parent}"
    return click.ClickException(f"cannot write {path}: {why}; name another file with {option}")


def ensure_replaceable(path: Path, option: str = "--out") -> None:
    """Check before long work that a file can be replaced, by trying every step but the last. Raises
    click.ClickException.
    """
    if path == STANDARD:
        return
    try:
        if _is_special(path):
            with path.open("wb", buffering=0) as file:
                file.write(b"\n" if stat.S_ISCHR(path.stat().st_mode) else b"")
            return
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            draft.write_bytes(b"\n")
        finally:
            draft.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(path, error, option) from None


def beside_text(ctx: click.Context, parameter: click.Parameter, value: Path | None) -> Path | None:
    """The callback of an option that refuses "-" for a page, because the text output goes to
    standard output.
    """
    if value == STANDARD:
        raise click.BadParameter(
            "standard output has the text; name a file, such as page.html", ctx, parameter
        )
    return value


def write_directly(path: Path, text: str) -> bool:
    """Write the text to standard output, a device or a pipe, which cannot be replaced by a new file. Returns
    False for anything else. Raises click.ClickException.
    """
    if path == STANDARD:
        say(text.removesuffix("\n"))
        return True
    if not _is_special(path):
        return False
    try:
        path.write_text(text)
    except OSError as error:
        raise cannot_write(path, error) from None
    return True


def _is_special(path: Path) -> bool:
    return path.exists() and not path.is_file()
