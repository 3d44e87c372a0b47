"""Runs conformance tests of one NIC plugin with one configuration after another, in one process.

Reads a list of [configuration, names of tests, effort] from standard input and prints, for each, a list of
[test, outcome, found]: all as JSON. With no names all tests run.
"""

from __future__ import annotations

import json
import sys

from peerway import _core

PATIENCE = 0.5  # seconds of CPU time after which an expected event counts as missing


def check(plugin: str, configuration: str, only: list[str], effort: float) -> list[list[str]]:
    verdicts: list[list[str]] = []

    def tell(verdict: _core.NicVerdict) -> None:
        verdicts.append([verdict.test, verdict.outcome.name, verdict.evidence])

    _core.nic_check(plugin, configuration, 1, effort, PATIENCE, only, tell)
    return verdicts


if __name__ == "__main__":
    for configuration, only, effort in json.load(sys.stdin):
        print(json.dumps(check(sys.argv[1], configuration, only, effort)), flush=True)
