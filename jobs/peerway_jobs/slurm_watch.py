"""Asks Slurm regularly for jobs, nodes, accounts and scripts, each in its own thread.

So a question that is slow, fails or is not answered holds up no other. squeue comes first: sacct is asked
about the jobs that squeue does not know, and scripts are fetched of those that it knows. The nodes are those
of sinfo's last answer.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from peerway_jobs import sync
from peerway_jobs.accounting import Accounts
from peerway_jobs.scripts import Scripts
from peerway_jobs.slurm_json import SlurmFailed, answer_of
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.runs import Run

EVERY = 3  # in sampling periods: twice a minute
_LEAST_S, _AFTER_FAILURE_S = 1.0, 10.0
_AGAIN = "it is asked again; on a host that has no Slurm start the server with --no-slurm"
_FIRST_S = 5.0  # at first, jobs wait this long for the nodes' types, and the other questions for squeue


class Question(threading.Thread):
    """A thread that asks, then waits `pause()` seconds or until woken.
    A failure is logged once for each new reason.
    """

    def __init__(
        self,
        name: str,
        ask: Callable[[], None],
        pause: Callable[[], float],
        leads: Callable[[], bool],
        warn: Callable[[str], None],
        failed: Callable[[str, Exception], None],
    ) -> None:
        super().__init__(name=name, daemon=True)
        self._ask, self._pause, self._leads = ask, pause, leads
        self._warn, self._failed = warn, failed
        self._woken = threading.Event()
        self._ended = False
        self._reported = ""

    def run(self) -> None:
        """Ask until told to end."""
        while True:
            self._woken.clear()
            if self._ended:  # after clear(): end() may have been called just before
                return
            pause = _AFTER_FAILURE_S
            try:
                self._once()
                pause = self._pause()
            except Exception as error:
                self._failed(f"asking Slurm for {self.name}", error)
            self._woken.wait(max(_LEAST_S, pause))

    def wake(self) -> None:
        """Ask now, because there is news."""
        self._woken.set()

    def end(self) -> None:
        """Stop asking."""
        self._ended = True
        self._woken.set()

    def _once(self) -> None:
        try:
            if self._leads():  # of the servers that share a database, one asks
                self._ask()
            self._reported = ""
        except SlurmFailed as error:
            if str(error) != self._reported:
                self._warn(f"{error}; {_AGAIN}")
            self._reported = str(error)


class Watch:
    """All questions, and the answers that one question needs of another."""

    def __init__(
        self, store: JobStore, warn: Callable[[str], None], failed: Callable[[str, Exception], None]
    ) -> None:
        self._store = store
        self._scripts, self._accounts = Scripts(), Accounts()
        self._nodes: list[dict[str, Any]] = []
        self._nodes_asked = threading.Event()
        self._runs: list[Run] = []  # all runs that squeue knows
        self._jobs_asked = threading.Event()
        self._questions = {
            name: Question(name, ask, pause, store.database.leads, warn, failed)
            for name, ask, pause in (
                ("nodes", self._ask_nodes, self._every),
                ("jobs", self._ask_jobs, self._every),
                ("accounts", self._ask_accounts, lambda: self._until(self._accounts.next())),
                ("scripts", self._ask_scripts, lambda: self._until(self._scripts.next())),
            )
        }
        store.slurm_answered = store.accounts_answered = 0.0

    def start(self) -> None:
        """Start the threads."""
        for question in self._questions.values():
            question.start()

    def stop(self, patience_s: float = 5.0) -> None:
        """End the threads; a command that still runs after `patience_s` seconds is left alone."""
        for question in self._questions.values():
            question.end()
        self._nodes_asked.set()
        self._jobs_asked.set()
        deadline = time.monotonic() + patience_s
        for question in self._questions.values():
            question.join(max(0.0, deadline - time.monotonic()))

    def _every(self) -> float:
        return EVERY * self._store.period()

    def _until(self, when: float) -> float:
        return min(when - time.time(), self._every())

    def _ask_nodes(self) -> None:
        try:
            nodes = answer_of("sinfo", "--all").get("nodes", [])
            self._nodes = [node for node in nodes if isinstance(node, dict)]
        finally:
            self._nodes_asked.set()

    def _ask_jobs(self) -> None:
        self._nodes_asked.wait(_FIRST_S)
        now = time.time()
        try:
            entries = answer_of("squeue", "--all", "--states=all").get("jobs", [])
            jobs = [job for job in entries if isinstance(job, dict)]
            self._runs = sync.take(self._store, jobs, self._nodes, now)
        finally:
            self._jobs_asked.set()
            for name in ("accounts", "scripts"):
                self._questions[name].wake()

    def _ask_accounts(self) -> None:
        """Ask sacct, even if squeue does not answer. Verdicts wait for sacct,
        but not while it does not answer.
        """
        self._jobs_asked.wait(_FIRST_S)
        now = time.time()
        listed = {(run.job, run.restart) for run in self._runs}
        sync.file(self._store, self._accounts.missed(self._store, listed, now), self._nodes)
        self._store.accounts_answered = None if self._accounts.refused else now
        if self._accounts.refused:
            raise SlurmFailed(self._accounts.refused)

    def _ask_scripts(self) -> None:
        self._jobs_asked.wait(_FIRST_S)
        self._scripts.fetch(self._store, self._runs, time.time())
        if self._scripts.refused:
            raise SlurmFailed(self._scripts.refused)
