"""The batch scripts of jobs, asked of Slurm once a run: `scontrol write batch_script`.

Slurm gives a script to its owner, to root and to operators (`sacctmgr modify user NAME set
AdminLevel=Operator`). Where it refuses, that is said once and the rest works without.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable

from peerway.jobs.store.jobs import JobStore
from peerway.jobs.store.runs import FINISHED, Run
from peerway.printable import printable

MOST_BYTES = 64 << 10
_A_ROUND, _TRIES = 50, 3
_TIMEOUT_S = 20


class Scripts:
    """Remembers how often runs were asked for: a controller that is busy may give no answer, and a job that
    was not submitted as a script has none.
    """

    def __init__(self) -> None:
        self._asked: dict[tuple[str, int], int] = {}
        self.refused = ""  # why the last one that should be there could not be had

    def fetch(self, store: JobStore, runs: Iterable[Run]) -> None:
        """Ask for the scripts of runs that have none yet, some of them each time."""
        self.refused = ""
        known = {(run.job, run.restart) for run in runs}
        # Slurm has forgotten the others.
        self._asked = {key: times for key, times in self._asked.items() if key in known}
        due = [run for run in runs if run.started and self._asked.get((run.job, run.restart), 0) < _TRIES]
        for run in due[:_A_ROUND]:
            key = (run.job, run.restart)
            old = store.run(*key)
            if old is not None and old.script:
                self._asked[key] = _TRIES
                continue
            self._asked[key] = self._asked.get(key, 0) + 1
            text = self._script(run)
            if text:
                store.write(
                    "UPDATE jobs SET script = ? WHERE job = ? AND restart = ?", (text, run.job, run.restart)
                )

    def _script(self, run: Run) -> str:
        command = ["scontrol", "write", "batch_script", run.job, "-"]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            self.refused = f"scontrol write batch_script: {error}"
            return ""
        if done.returncode:
            why = done.stderr.decode(errors="replace").strip()
            # Of a job that has ended Slurm may have deleted the script.
            if run.state not in FINISHED and "denied" in why:
                self.refused = f"scripts of jobs cannot be had: {printable(why[:200])}"
            return ""
        return done.stdout[:MOST_BYTES].decode(errors="replace").replace("\0", "")
