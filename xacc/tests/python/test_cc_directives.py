"""Each directive that a grammar parses is lowered by one function, so that none is silently ignored."""

from __future__ import annotations

from types import ModuleType

import pytest

from peerway_xacc import directive_table
from peerway_xacc.codegen import foreign_acc
from peerway_xacc.frontend import grammar_acc, grammar_xmp
from peerway_xacc.lowering import communication, data
from peerway_xacc.lowering.table import HasStatement, StandsAlone

PARSED = {f"xmp {word}" for word in grammar_xmp.GRAMMAR} | {f"acc {words}" for words in grammar_acc.GRAMMAR}


def test_each_directive_that_is_parsed_is_lowered() -> None:
    assert directive_table.lowerings().keys() == PARSED


def test_a_directive_that_two_modules_lower_is_refused() -> None:
    second = ModuleType("second")
    second.LOWERINGS = {"acc wait": data.LOWERINGS["acc wait"]}  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match="second lowers acc wait, which another module lowers, too"):
        directive_table.gathered([communication, data, second])


def test_another_compiler_gets_each_directive_of_acc_and_no_other() -> None:
    own = directive_table.lowerings()
    foreign = foreign_acc.passed_on(own)
    assert {spelling for spelling in own if foreign[spelling] != own[spelling]} == {
        spelling for spelling in PARSED if spelling.startswith("acc ")
    }
    for spelling, lowering in own.items():
        assert type(foreign[spelling]) is type(lowering)
        if isinstance(lowering, StandsAlone | HasStatement):
            assert foreign[spelling].host == lowering.host
