"""Tests lie beside their product, where a make target collects them, and use no helper of another product."""

from __future__ import annotations

import ast
import tomllib
from collections import Counter
from pathlib import Path

import pytest
from launching import ROOT

FOLDERS = ("library", "nic", "measure", "trace", "xacc", "jobs", "common", "apps", "tests")
MODULES = {
    path.relative_to(ROOT): path.read_text()
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if "tests" in path.relative_to(ROOT).parts and "programs" not in path.parts
}


def product_of(path: Path) -> str:
    """The folder at the root, or nothing for what all products share."""
    return "" if path.parts[:2] == ("tests", "shared") else path.parts[0]


def test_every_file_of_tests_is_collected() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    collected = {folder for pattern in settings["testpaths"] for folder in ROOT.glob(pattern)}
    collected |= {*ROOT.glob("*/tests/gpu")}  # by scripts/gpu_test.py
    collected |= {*ROOT.glob("*/tests/amd")}  # by scripts/amd_test.py
    tests = [path for path in MODULES if path.name.startswith("test_")]
    assert len(tests) > 100
    assert [str(path) for path in tests if (ROOT / path).parent not in collected] == []


def test_modules_of_tests_have_a_name_each() -> None:
    """Pytest imports a test by its file's name alone."""
    counts = Counter(path.name for path in MODULES if path.name != "conftest.py")
    assert [name for name, count in counts.items() if count > 1] == []


@pytest.mark.parametrize("product", ["", *FOLDERS])
def test_no_test_needs_a_module_of_another_products_tests(product: str) -> None:
    products = {path.stem: product_of(path) for path in MODULES if path.name != "conftest.py"}
    foreign = []
    for path, text in MODULES.items():
        if product_of(path) != product:
            continue
        for node in ast.walk(ast.parse(text)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) and not node.level else []
            away = [name for name in names if products.get(name, "") not in ("", product)]
            foreign += [f"{path} imports {name}" for name in away]
    assert foreign == []
