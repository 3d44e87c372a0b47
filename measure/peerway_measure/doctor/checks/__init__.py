"""Checks judge facts: pure functions from Facts to one Finding each, in the page's order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import amd, between, cpu, gpus, host, libraries, network, storage

if TYPE_CHECKING:
    from ..facts import Facts
    from ..finding import Finding

CHECKS = (
    *gpus.CHECKS,
    *amd.CHECKS,
    *between.CHECKS,
    *cpu.CHECKS,
    *network.CHECKS,
    *storage.CHECKS,
    *host.CHECKS,
    *libraries.CHECKS,
)


def examine(facts: Facts) -> list[Finding]:
    """All findings, always the same ids in the same order, whatever the node has."""
    return [check(facts) for check in CHECKS]
