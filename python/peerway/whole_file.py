"""Files as wholes: written anew at once or not at all, so that a reader never sees half of one; read at once
where they are small, as they should be.
"""

from __future__ import annotations

import os
from pathlib import Path


def read(path: Path, most: int) -> bytes:
    """All of a file of at most `most` bytes. Raises OSError, or ValueError for a longer one."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"it has more than {most:,} bytes")
    return data


def replace(path: Path, text: str) -> None:
    """Write the text beside the file and rename it over it. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
