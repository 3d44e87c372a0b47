"""The loader's variables that load a library of Peerway into a program before all others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from peerway.errors import Unsupported


def preload(library: Path, inherited: Mapping[str, str]) -> dict[str, str]:
    """The variables that load `library` first, before the libraries that `inherited` already loads.

    LD_PRELOAD ends a name at a space, so a library in a folder with a space is given by its name alone, which
    the loader finds through LD_LIBRARY_PATH. Raises peerway.Unsupported for a folder that no variable can
    name.
    """
    folder = str(library.parent)
    if ":" in folder or ";" in folder:
        raise Unsupported(
            f"{library} cannot be loaded into a program: the loader ends a folder's name at ':' and ';'; "
            "install Peerway in a folder without them"
        )
    variables = {}
    name = str(library)
    if any(character.isspace() for character in name):
        name = library.name
        variables["LD_LIBRARY_PATH"] = _first(folder, inherited.get("LD_LIBRARY_PATH"))
    return {"LD_PRELOAD": _first(name, inherited.get("LD_PRELOAD")), **variables}


def _first(item: str, others: str | None) -> str:
    return f"{item}:{others}" if others else item
