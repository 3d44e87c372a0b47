"""Writing a file anew, whole or not at all, so that a reader never sees half of it."""

from __future__ import annotations

import os
from pathlib import Path


def replace(path: Path, text: str) -> None:
    """Write the text beside the file and rename it over it. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
