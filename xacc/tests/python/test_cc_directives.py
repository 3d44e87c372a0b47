"""Each directive is lowered by exactly one function, so that none is silently ignored."""

from __future__ import annotations

from peerway_xacc.codegen import openacc
from peerway_xacc.frontend import directives as d
from peerway_xacc.lowering import coarray, communication, declare, gmove, locks, loops, reflects

PASSED_ON = {d.Omp}  # to the C compiler
BASES = {d.Communication}  # no directive, but what several share


def test_each_directive_is_lowered_once() -> None:
    modules = (coarray, communication, declare, gmove, locks, loops, openacc, reflects)
    lowered = [directive for module in modules for directive in module.LOWERINGS]
    assert len(lowered) == len(set(lowered))
    every = {*d.Directive.__subclasses__(), *d.Communication.__subclasses__()}
    classes = {each for each in every if each.__module__ == d.__name__}  # Fortran has some of its own
    assert set(lowered) == classes - BASES - PASSED_ON
