"""Spack's recipe, carried out by a stand-in of Spack: it asks for what pyproject.toml asks for."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import products

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "packaging" / "spack" / "packages" / "peerway" / "package.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
# What is no Python package in Spack. fmt of a system may be older than its first wheel.
NAMES = {"py-cmeel-fmt": "fmt", "py-nlohmann-json": "nlohmann-json"}
ANY = "fmt"


class Recipe:
    """The recipe's class, and all that it asked for."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.needs: dict[str, str] = {}  # name -> lowest version
        self.pip: list[tuple[str, ...]] = []
        stand_in: Any = ModuleType("spack.package")

        def note(*_: object, **__: object) -> None:
            pass

        def depends_on(spec: str, **__: object) -> None:
            name, _, version = spec.partition("@")
            assert not version or version.endswith(":"), spec
            self.needs[name] = version.removesuffix(":")

        def when(_: str) -> AbstractContextManager[None]:
            return nullcontext()

        def run_after(_: str, **__: object) -> Callable[[Any], Any]:
            return lambda function: function

        for name in ("license", "version", "variant", "conflicts", "generator"):
            setattr(stand_in, name, note)
        stand_in.depends_on = stand_in.extends = depends_on
        stand_in.when, stand_in.run_after, stand_in.CMakePackage = when, run_after, object
        stand_in.pip = lambda *words: self.pip.append(words)
        stand_in.__all__ = [name for name in vars(stand_in) if not name.startswith("_")]
        monkeypatch.setitem(sys.modules, "spack", ModuleType("spack"))
        monkeypatch.setitem(sys.modules, "spack.package", stand_in)
        module: dict[str, Any] = {"__name__": "recipe"}
        exec(compile(RECIPE.read_text(), RECIPE, "exec"), module)
        self.package = module["Peerway"]


def lowest(needs: list[str]) -> dict[str, str]:
    """Spack's name -> lowest version, of Python requirements."""
    parts = (need.split(">=") for need in needs)
    named = ((f"py-{name}", version) for name, version in parts)
    return {NAMES.get(name, name): version for name, version in named}


def test_it_asks_for_what_the_package_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = Recipe(monkeypatch).needs
    project = PROJECT["project"]
    wanted = lowest([*products.groups()["base"], *products.own("jobs")])
    wanted |= {"python": project["requires-python"].removeprefix(">=")}
    wanted |= {"cmake": PROJECT["tool"]["scikit-build"]["cmake"]["version"].removeprefix(">=")}
    assert {name: needs.get(name) for name in wanted if name != ANY} == {
        name: version for name, version in wanted.items() if name != ANY
    }
    assert set(needs) - set(wanted) == {"c", "cxx", "ninja", "py-pip"}


def test_it_asks_for_no_more_than_cmake_does(monkeypatch: pytest.MonkeyPatch) -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text()
    minimum = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)", cmake)
    assert minimum is not None
    assert Recipe(monkeypatch).needs["cmake"] == minimum[1]


def test_it_installs_the_package_without_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = Recipe(monkeypatch)
    package = recipe.package()
    package.prefix = "/prefix"
    package.spec = {
        "fmt": SimpleNamespace(prefix="/fmt"), "nlohmann-json": SimpleNamespace(prefix="/json")
    }  # fmt: skip
    package.install_python_package()
    (words,) = recipe.pip
    assert words[0] == "install"
    assert {"--no-deps", "--no-index", "--no-build-isolation", "--prefix=/prefix"} <= set(words)
    assert {"./common", ".", "./measure", "./trace", "./xacc", "./jobs"} <= set(words)
    assert words[-1].endswith("CMAKE_PREFIX_PATH=/fmt;/json")
