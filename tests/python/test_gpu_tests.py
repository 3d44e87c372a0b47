"""The GPU tests can be imported: no CI has a GPU, and a renamed helper would break them unseen."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from launching import ROOT

FOLDERS = sorted(ROOT.glob("*/tests/gpu"))
PROGRAMS = sorted(program for folder in FOLDERS for program in (folder / "programs").glob("*.py"))


def test_all_are_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    collection = subprocess.run([*command, *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False)
    assert collection.returncode == 0, collection.stdout + collection.stderr
    for module in (module for folder in FOLDERS for module in folder.glob("test_*.py")):
        assert f"{module.relative_to(ROOT)}::" in collection.stdout


def imports_of(program: Path) -> list[tuple[str, str]]:
    """The modules of this repository that a program imports from, each with a name that it takes."""
    return [
        (node.module, alias.name)
        for node in ast.walk(ast.parse(program.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("peerway")
        for alias in node.names
    ]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_their_programs_import_what_there_is(program: Path) -> None:
    for module, name in imports_of(program):
        assert hasattr(importlib.import_module(module), name) or find_spec(f"{module}.{name}"), name
