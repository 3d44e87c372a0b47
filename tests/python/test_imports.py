"""Imports and includes form no circle, and products import downward only.

Imports inside functions and those for types count, too. Includes are checked between the folders of
library/src, which are the layers of the library, between the phases of plans, and between the folders of
xacc/runtime.
"""

from __future__ import annotations

import ast
import functools
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ROOT / "library" / "src"
# Each product's package, and the packages that it may import.
PRODUCTS = {
    "common/peerway_common": set(),
    "library/python/peerway": {"peerway_common"},
    "nic/peerway_nic": {"peerway", "peerway_common"},
    "measure/peerway_measure": {"peerway", "peerway_common"},
    "trace/peerway_trace": {"peerway", "peerway_common", "peerway_measure"},
    "xacc/peerway_xacc": {"peerway", "peerway_common", "peerway_measure"},
    "jobs/peerway_jobs": {"peerway_common"},
}

Graph = dict[str, set[str]]


def modules(package: Path) -> dict[str, Path]:
    """By name; compiled modules by the file that describes their types."""
    by_name = {}
    for path in sorted([*package.rglob("*.py"), *package.rglob("*.pyi")]):
        name = ".".join(path.relative_to(package.parent).with_suffix("").parts)
        by_name[name.removesuffix(".__init__")] = path
    return by_name


def imports(name: str, path: Path, known: dict[str, Path]) -> set[str]:
    """The modules that one module names anywhere in its text."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    named: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            members = {f"{source}.{alias.name}" for alias in node.names}
            named |= {member if member in known else source for member in members}
    return (named & known.keys()) - {name}


@functools.cache  # reading all files takes a second
def graph(*packages: Path) -> Graph:
    known = {name: path for package in packages for name, path in modules(package).items()}
    return {name: imports(name, path, known) for name, path in known.items()}


def layers(sources: Path, prefix: str = "") -> Graph:
    """The folders that files of each folder include from; `prefix` stands before their names in includes."""
    included: Graph = {folder.name: set() for folder in sources.iterdir() if folder.is_dir()}
    for path in sources.rglob("*.[hc]*"):
        layer = path.relative_to(sources).parts[0]
        if layer in included:
            named = set(re.findall(rf'^#include "{prefix}(\w+)/', path.read_text(), re.MULTILINE))
            included[layer] |= (named & included.keys()) - {layer}
    return included


def packages_of(modules: Graph) -> Graph:
    """The sub-packages of a package and the modules beside them, and which of them each imports from."""
    parts: Graph = {}
    for name, imported in modules.items():
        if "." in name:  # the package's own __init__ belongs to all of them
            part = name.split(".")[1]
            others = {other.split(".")[1] for other in imported if "." in other}
            parts.setdefault(part, set()).update(others - {part})
    return parts


def circle(of: Graph) -> str:
    """The modules of one circle in the order of their imports, or nothing."""
    try:
        TopologicalSorter(of).prepare()
    except CycleError as error:
        return " -> ".join(reversed(error.args[1]))
    return ""


def test_no_module_needs_itself() -> None:
    imported = graph(*(ROOT / folder for folder in PRODUCTS))
    assert imported["peerway.context"] >= {"peerway._core", "peerway.halo"}
    assert not circle(imported), (
        f"imports run in a circle: {circle(imported)}; move what both need below both"
    )


def test_no_part_of_the_job_monitor_needs_itself() -> None:
    imported = packages_of(graph(ROOT / "jobs" / "peerway_jobs"))
    assert imported["serve"] >= {"rules", "store"}
    assert not circle(imported), (
        f"imports run in a circle: {circle(imported)}; move what both need below both"
    )


@pytest.mark.parametrize("folder", PRODUCTS)
def test_a_product_imports_only_those_below_it(folder: str) -> None:
    package = Path(folder).name
    all_imports = graph(*(ROOT / product for product in PRODUCTS))
    above = {
        f"{name} imports {other}"
        for name, imported in all_imports.items()
        if name.partition(".")[0] == package
        for other in imported
        if other.partition(".")[0] not in {package, *PRODUCTS[folder]}
    }
    assert above == set()


def test_a_phase_of_the_compiler_imports_only_those_before_it() -> None:
    phases = ["frontend", "analysis", "device_loops", "lowering", "codegen"]
    all_imports = graph(ROOT / "xacc" / "peerway_xacc")

    def phase(module: str) -> int:
        return next((n for n, name in enumerate(phases) if f"peerway_xacc.{name}" in module), len(phases))

    backwards = {
        f"{name} imports {other}"
        for name, imported in all_imports.items()
        for other in imported
        if phase(other) > phase(name) and phase(other) < len(phases)
    }
    assert backwards == set()


def test_a_circle_is_named(tmp_path: Path) -> None:
    package = tmp_path / "house"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "roof.py").write_text("def build():\n    from house import wall\n")
    (package / "wall.py").write_text("if TYPE_CHECKING:\n    from .floor import Floor\n")
    (package / "floor.py").write_text("import house.roof\n")
    way = circle(graph(package))
    assert way.count(" -> ") == 3
    assert way in " -> ".join(["house.roof", "house.wall", "house.floor"] * 3)


def test_no_layer_of_the_core_needs_itself() -> None:
    included = layers(SOURCES)
    assert included["transport"] >= {"base", "memory"}
    assert not included["base"]
    assert not circle(included), (
        f"includes run in a circle: {circle(included)}; move what both need below both"
    )


def test_a_phase_of_plans_includes_only_those_before_it() -> None:
    folder = SOURCES / "plan"
    included = layers(folder, "plan/")
    assert included["lowering"] >= {"builder", "negotiation", "run"}
    assert not circle(included), f"includes run in a circle: {circle(included)}"
    upward = [
        path.relative_to(folder)
        for path in folder.glob("*/*.[hc]*")
        if re.search(r'^#include "plan/[a-z_]+\.h"', path.read_text(), re.MULTILINE)
    ]
    assert not upward, "a phase includes what leads all phases"


def test_a_folder_of_the_run_time_of_directives_includes_only_those_before_it() -> None:
    # the rows of xacc/runtime/README.md; folders of one row do not include each other
    rows = re.findall(r"^\| (`.*?/`) \|", (ROOT / "xacc" / "runtime" / "README.md").read_text(), re.MULTILINE)
    rooms = layers(ROOT / "xacc" / "runtime", "xacc/runtime/")
    assert rooms["data"] >= {"gpu", "program"}
    row = {folder: n for n, text in enumerate(rows) for folder in re.findall(r"`(\w+)/`", text)}
    assert row.keys() == rooms.keys()
    wrong = {
        f"{folder} includes {other}"
        for folder, included in rooms.items()
        for other in included
        if row[other] >= row[folder]
    }
    assert not wrong
    flat = [path.name for path in (ROOT / "xacc" / "runtime").glob("*.[hc]*")]
    assert not flat, "each file of the run time lies in one of these folders"
