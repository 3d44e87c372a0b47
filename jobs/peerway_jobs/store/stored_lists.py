"""Lists that the database keeps as JSON. A row may be older than the checks of what comes in, or damaged:
such a list reads as empty, and `is_damaged` lets a page say so.
"""

from __future__ import annotations

import json
from typing import Any, TypeVar

_T = TypeVar("_T", int, str)


def stored_list(text: Any, kind: type[_T]) -> list[_T]:
    """The list in a column. An absent one and a damaged one are empty."""
    return _parsed(text, kind) or []


def is_damaged(text: Any, kind: type[int | str]) -> bool:
    """Whether a column holds something else than such a list."""
    return text is not None and _parsed(text, kind) is None


def _parsed(text: Any, kind: type[int | str]) -> list[Any] | None:
    try:
        content = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return content if isinstance(content, list) and all(type(each) is kind for each in content) else None
