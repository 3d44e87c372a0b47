"""The distributions of this repository, and what each needs, from the pyproject.toml of each."""

from __future__ import annotations

import re
import tomllib

from steps import ROOT

# Pure Python, each in a folder of its own. The root folder has the library and the NIC kit.
PRODUCTS = ("common", "measure", "trace", "xacc", "jobs")


def groups() -> dict[str, list[str]]:
    """Give what can be installed, by name: "base" is what a build, the library and measuring need; then each
    other product, "jobs-server", and the extras of the library's pyproject.toml.
    """
    library = tomllib.loads((ROOT / "pyproject.toml").read_text())
    products = {name: tomllib.loads((ROOT / name / "pyproject.toml").read_text()) for name in PRODUCTS}
    result = {name: project["project"]["dependencies"] for name, project in products.items()}
    for name, project in products.items():
        for extra, needs in project["project"].get("optional-dependencies", {}).items():
            result[f"{name}-{extra}"] = needs
    base = [
        *library["build-system"]["requires"],
        *library["project"]["dependencies"],
        *result.pop("common"),
        *result.pop("measure"),
    ]
    all_groups = {"base": base, **result, **library["project"]["optional-dependencies"]}
    return {name: [need for need in needs if not _is_ours(need)] for name, needs in all_groups.items()}


def _is_ours(requirement: str) -> bool:
    return re.match(r"peerway(-[a-z]+)*\b", requirement) is not None
