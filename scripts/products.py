"""The distributions of this repository, and what each needs, from the pyproject.toml of each."""

from __future__ import annotations

import re
import tomllib

from steps import ROOT

# Pure Python, each in its own folder. The root folder is the library with the NIC kit.
PRODUCTS = ("common", "measure", "trace", "xacc", "jobs")


def groups() -> dict[str, list[str]]:
    """The requirements of everything that can be installed, by name.

    "base" is what a build, the library and measuring need. The others are the other products, "jobs-server",
    and the extras of the library's pyproject.toml.
    """
    everything = _declared()
    base = [need for name in ("build", "library", "common", "measure") for need in everything.pop(name)]
    return {"base": base, **everything}


def own(group: str) -> list[str]:
    """The requirements of one group itself: "library", a product, or one of its extras ("jobs-server")."""
    return _declared()[group]


def _declared() -> dict[str, list[str]]:
    library = tomllib.loads((ROOT / "pyproject.toml").read_text())
    declared = {
        "build": library["build-system"]["requires"],
        "library": library["project"]["dependencies"],
        **library["project"]["optional-dependencies"],
    }
    for name in PRODUCTS:
        project = tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"]
        declared[name] = project["dependencies"]
        for extra, needs in project.get("optional-dependencies", {}).items():
            declared[f"{name}-{extra}"] = needs
    return {name: [need for need in needs if not _is_ours(need)] for name, needs in declared.items()}


def _is_ours(requirement: str) -> bool:
    return re.match(r"peerway(-[a-z]+)*\b", requirement) is not None
