"""Reads docs/apps/hpl.md and its records, for the tests that compare them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "results" / "hpl"
PAGE = (ROOT / "docs" / "apps" / "hpl.md").read_text()
TEXT = " ".join(PAGE.split())

Run = dict[str, Any]


def runs_of(file: str) -> list[Run]:
    """The runs of a file of records; all must have passed."""
    runs = [json.loads(line) for line in (RESULTS / file).read_text().splitlines()]
    assert all(run["passed"] and run["residual"] < run["threshold"] for run in runs)
    return runs


def table_behind(words: str) -> list[list[str]]:
    """The cells of the first table after these words, or of the table with these words in its header;
    sorted.
    """
    lines = PAGE.split(words)[1].split("| --- |", 1)[1].split("\n\n")[0].splitlines()[1:]
    return sorted([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)


class Runs:
    """Runs by name, N, NB, and whether they are the first or second run of their process."""

    def __init__(self, runs: Iterable[Run], name: Callable[[Run], str]) -> None:
        self._rates: dict[tuple[str, int, int], tuple[list[float], list[float]]] = {}
        for run in runs:
            rates = self._rates.setdefault((name(run), run["n"], run["nb"]), ([], []))
            rates[run["run"]].append(run["gflops"] / 1e3)

    def of(self, name: str, n: int, nb: int, turn: int) -> list[float]:
        """TFLOP/s in the order of the records."""
        return self._rates[name, n, nb][turn]

    def rows(self, least_n: int = 0) -> list[list[str]]:
        """The rows of a table: name, N, NB, first runs, second runs; sorted."""
        return sorted(
            [name, f"{n:,}", f"{nb:,}", *(", ".join(f"{rate:.1f}" for rate in turn) for turn in rates)]
            for (name, n, nb), rates in self._rates.items()
            if n >= least_n
        )
