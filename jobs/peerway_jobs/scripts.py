"""Fetches jobs' batch scripts from Slurm, once per run: `scontrol write batch_script`.

Slurm gives a script to its owner, to root and to operators (`sacctmgr modify user NAME set
AdminLevel=Operator`). If Slurm refuses, this is logged once and all else works without scripts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from peerway_common.printable import one_line
from peerway_jobs.backoff import Backoff
from peerway_jobs.slurm_json import SlurmFailed, ran
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import FINISHED, Run

MOST_BYTES = 64 << 10
_A_ROUND = 50
_AGAIN_S = (5, 60)  # then no more: a job that was not submitted as a script has none
_NOBODY = (
    "Socket timed out",
    "Unable to contact",
)  # the controller does not answer, and scontrol exits with 0

Key = tuple[str, int, float | None]


class Scripts:
    """Remembers which runs it has asked about."""

    def __init__(self) -> None:
        self._backoff: Backoff[Key] = Backoff(_AGAIN_S)
        self.refused = ""  # why a script that should exist could not be fetched

    def fetch(self, store: JobStore, runs: Iterable[Run], now: float) -> None:
        """Ask for up to _A_ROUND scripts of runs without one; `runs` are all that Slurm knows.

        Raises SlurmFailed if Slurm does not answer, because the other questions would wait just as long.
        """
        self.refused = ""
        begun = [run for run in runs if run.started]
        self._backoff.keep(map(_key, begun))
        for run in islice(self._missing(store, begun, now), _A_ROUND):
            text = self._script(run)
            self._backoff.tried(_key(run), now)
            if text:
                store.write(
                    "UPDATE jobs SET script = ? WHERE job = ? AND restart = ? AND submitted IS ?",
                    (text, run.job, run.restart, run.submitted),
                )

    def next(self) -> float:
        """When the next run that was asked about before is due again."""
        return self._backoff.next()

    def _missing(self, store: JobStore, runs: Iterable[Run], now: float) -> Iterator[Run]:
        for run in runs:
            if self._backoff.due(_key(run), now):
                kept = store.run(run.job, run.restart)
                if kept is not None and kept.script:
                    self._backoff.end(_key(run))
                else:
                    yield run

    def _script(self, run: Run) -> str:
        done = ran("scontrol", "write", "batch_script", run.job, "-")
        why = one_line("scontrol", done.stderr.decode(errors="replace"))
        if any(words in why for words in _NOBODY):
            raise SlurmFailed(f"scontrol write batch_script: {why}")
        if done.returncode:
            # Slurm may have deleted the script of a job that has ended.
            if run.state not in FINISHED and "denied" in why:
                self.refused = f"scripts of jobs cannot be had: {why}"
            return ""
        return done.stdout[:MOST_BYTES].decode(errors="replace").replace("\0", "")


def _key(run: Run) -> Key:
    return run.job, run.restart, run.submitted
