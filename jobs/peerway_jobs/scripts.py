"""The batch scripts of jobs, asked of Slurm once a run: `scontrol write batch_script`.

Slurm gives a script to its owner, to root and to operators (`sacctmgr modify user NAME set
AdminLevel=Operator`). Where it refuses, that is said once and the rest works without.
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
_AGAIN_S = (5, 60)  # a job that was not submitted as a script has none
_NOBODY = (
    "Socket timed out",
    "Unable to contact",
)  # the controller gives no answer, and scontrol ends with 0

Key = tuple[str, int, float | None]


class Scripts:
    """Remembers which runs were asked for."""

    def __init__(self) -> None:
        self._backoff: Backoff[Key] = Backoff(_AGAIN_S)
        self.refused = ""  # why the last one that should be there could not be had

    def fetch(self, store: JobStore, runs: Iterable[Run], now: float) -> None:
        """Ask for the scripts of runs that have none yet, some of them each time; `runs` are all that Slurm
        knows. Raises SlurmFailed if it gives no answer: the others would wait for theirs as long.
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
        """When there is something to ask for, of the runs that were asked for before."""
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
            # Of a job that has ended Slurm may have deleted the script.
            if run.state not in FINISHED and "denied" in why:
                self.refused = f"scripts of jobs cannot be had: {why}"
            return ""
        return done.stdout[:MOST_BYTES].decode(errors="replace").replace("\0", "")


def _key(run: Run) -> Key:
    return run.job, run.restart, run.submitted
