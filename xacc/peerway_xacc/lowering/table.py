"""The entries of the table of directives: the function that lowers one, when, and where it may be.

A module's LOWERINGS has an entry for each directive that the module lowers, by the directive's spelling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from peerway_xacc.analysis.mapped import AnnotatedStatement
from peerway_xacc.lowering.unit import Unit


@dataclass(frozen=True)
class Declares:
    """A directive that declares names, or describes them further. All of them are lowered before others."""

    lower: Callable[[Unit, Any], None]


@dataclass(frozen=True)
class StandsAlone:
    """A directive without a statement.

    One for the `host` must be in a function, and outside the statements that a GPU executes.
    """

    lower: Callable[[Unit, Any], None]
    host: bool = True


@dataclass(frozen=True)
class HasStatement:
    """A directive that belongs to the statement behind it.

    One for the `host` must be outside the statements that a GPU executes.
    """

    lower: Callable[[Unit, AnnotatedStatement, Any], None]
    host: bool = False


Lowering = Declares | StandsAlone | HasStatement
