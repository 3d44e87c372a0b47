"""Checks judge facts: each is a pure function of Facts that gives one Finding. Their order is the page's
order."""

from __future__ import annotations

from ..facts import Facts
from ..finding import Finding
from . import between, cpu, gpus, host, libraries, network, storage

CHECKS = (
    *gpus.CHECKS,
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
