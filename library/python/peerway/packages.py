"""Finds NVIDIA's and UCX's libraries that were installed as Python packages, because only Python knows all of
its folders.

The library looks for them there last, after the settings (nvrtc_library, ucx_library), the toolkit and the
system. The folders are passed in PEERWAY_PACKAGES, so that ranks and other children find them too, in
whatever language they are written.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from importlib.machinery import PathFinder

_VARIABLE = "PEERWAY_PACKAGES"
_PACKAGES = ("nvidia", "libucx")


def folders() -> list[str]:
    """The folders of this Python's path that hold such packages. Imports none of them."""
    result: list[str] = []
    for name in _PACKAGES:
        spec = PathFinder.find_spec(name)
        for place in (spec.submodule_search_locations if spec else None) or ():
            result.append(os.path.dirname(place))  # noqa: PTH120  (pathlib costs a tenth of a second to import)
    return list(dict.fromkeys(result))


def announce(environment: MutableMapping[str, str] = os.environ) -> None:
    """Add the folders to the environment of this process and its children, before those that its parent
    named.
    """
    inherited = environment.get(_VARIABLE, "").split(os.pathsep)
    named = os.pathsep.join(dict.fromkeys(filter(None, [*folders(), *inherited])))
    if named:
        environment[_VARIABLE] = named
