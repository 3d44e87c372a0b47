"""The table of directives: what lowers each one, by its spelling, gathered from the modules that do it."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from types import ModuleType

from peerway_xacc import codegen, lowering
from peerway_xacc.codegen import foreign_acc
from peerway_xacc.lowering.table import Lowering
from peerway_xacc.lowering.unit import Unit


def lowerings_of(unit: Unit) -> dict[str, Lowering]:
    """The entries of all directives for a file; with `foreign_acc`, another compiler gets those of acc."""
    return foreign_acc.passed_on(lowerings()) if unit.foreign_acc else lowerings()


@functools.cache
def lowerings() -> dict[str, Lowering]:
    return gathered(_modules())


def gathered(modules: Iterable[ModuleType]) -> dict[str, Lowering]:
    """The LOWERINGS of these modules in one table. Raises ValueError if two of them lower one directive."""
    table: dict[str, Lowering] = {}
    for module in modules:
        entries: dict[str, Lowering] = getattr(module, "LOWERINGS", {})
        if twice := sorted(table.keys() & entries):
            raise ValueError(f"{module.__name__} lowers {', '.join(twice)}, which another module lowers, too")
        table |= entries
    return table


def _modules() -> Iterator[ModuleType]:
    """All modules of the two folders, so that a new one need not be named anywhere else."""
    for package in (lowering, codegen):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            yield importlib.import_module(module.name)
