"""Finds the code blocks in the documents."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TUTORIALS = ROOT / "docs" / "tutorials"  # whole programs; tests/system/test_tutorials.py runs them
BLOCK = re.compile(r"^ *```(\S+)[^\n]*\n(.*?)^ *```", re.MULTILINE | re.DOTALL)


def blocks(*languages: str) -> dict[str, str]:
    """All blocks in these languages, without their indentation, by page and number within the page."""
    by_name = {}
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    pages = [page for page in pages if TUTORIALS not in page.parents]
    for page in pages:
        pairs = BLOCK.findall(page.read_text())
        texts = [text for language, text in pairs if language in languages]
        for number, text in enumerate(texts, 1):
            by_name[f"{page.relative_to(ROOT)} {number}"] = textwrap.dedent(text)
    return by_name
