"""The monitor without a network: it files agents' batches, judges runs and thins old samples."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from peerway_common.atomic_file import replace
from peerway_jobs.damage import Damage, damaged_rows
from peerway_jobs.measured import Measured
from peerway_jobs.rules.job_fields import job_fields
from peerway_jobs.rules.judging import Verdict, judge
from peerway_jobs.rules.load import SHIPPED, BadRules, read_rules
from peerway_jobs.rules.ruleset import RuleSet
from peerway_jobs.store.chunks import ChunkStore
from peerway_jobs.store.database import place_in
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.pending import SETTLE, due
from peerway_jobs.store.retention import Retention, delete_old
from peerway_jobs.store.runs import Run
from peerway_jobs.store.sample_damage import SampleDamage, damaged_samples
from peerway_jobs.store.samples import Samples, StoreFailed, Thinning
from peerway_jobs.store.unconfirmed import delete_unconfirmed
from peerway_jobs.verdicts import keep, keep_rules

_DELETE_EVERY_S = 3600.0
_LOOK_EVERY_S = 86_400.0


class NotJudged(Exception):
    """A run could not be judged; the message says which, and why."""


class Monitor:
    """The stores and the rules of one folder."""

    def __init__(
        self,
        folder: Path,
        rules: Path | None = None,
        samples: Samples | None = None,
        thinning: Thinning | None = None,
        clock: Callable[[], float] = time.time,
        database: str | None = None,
    ) -> None:
        """Open the folder, or create it. Raises BadRules if the rules cannot be used.

        `database`: the address of PostgreSQL, if it is not the one that the folder names.
        """
        self.folder, self.clock = folder, clock
        self.rules_file = rules or folder / "rules.toml"
        self.thinning = thinning or Thinning()
        self.retention = Retention()
        self.jobs = JobStore(database or place_in(folder))
        self.samples = samples or ChunkStore(folder / "samples")
        self.rules_error = ""
        self._deleted = 0.0  # when runs that Slurm has not confirmed were last deleted
        self.damage: list[Damage | SampleDamage] = []  # as it was last looked for
        self._looked = 0.0  # when that was
        self.verdicts = 0  # since this monitor was opened
        self.judging_s = 0.0  # the time that they took
        self._stamp: tuple[int, int] | None = None
        self.rules: RuleSet = self._first_rules(rules)

    def close(self) -> None:
        """Close the stores."""
        self.samples.close()
        self.jobs.close()

    def _first_rules(self, named: Path | None) -> RuleSet:
        path = self.rules_file if named or self.rules_file.exists() else SHIPPED
        rules = read_rules(path)
        self._stamp = self._stamp_of_file()
        keep_rules(self.jobs, rules, str(path), self.clock())
        return rules

    def _stamp_of_file(self) -> tuple[int, int] | None:
        with suppress(OSError):
            status = self.rules_file.stat()
            return status.st_mtime_ns, status.st_size
        return None

    def reload(self) -> bool:
        """Read the rules again if their file changed; returns whether they changed.

        If the new rules cannot be used, `rules_error` says why and the old rules stay.
        """
        try:
            self._take_shared_rules()
        except OSError as error:
            self.rules_error = f"cannot write {self.rules_file}: {error.strerror or error}"
        stamp = self._stamp_of_file()
        if stamp is None or stamp == self._stamp:
            return False
        self._stamp = stamp
        try:
            self.rules, self.rules_error = read_rules(self.rules_file), ""
        except (BadRules, OSError) as error:
            self.rules_error = str(error)
            return False
        keep_rules(self.jobs, self.rules, str(self.rules_file), self.clock())
        return True

    def share_rules(self, text: str) -> None:
        """Give rules that were saved here to the other servers of the database."""
        if self.jobs.database.is_shared:
            self.jobs.write(
                "INSERT INTO shared VALUES ('rules', ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET since = excluded.since, text = excluded.text",
                (self.clock(), text),
            )

    def _take_shared_rules(self) -> None:
        """Write rules that were saved at another server, later than the file, to the file."""
        if self.jobs.database.is_shared:
            since = (self._stamp_of_file() or (0, 0))[0] / 1e9
            row = self.jobs.reader.execute(
                "SELECT text FROM shared WHERE name = 'rules' AND since > ?", (since,)
            ).fetchone()
            if row and (not self.rules_file.exists() or row[0] != self.rules_file.read_text()):
                replace(self.rules_file, row[0])

    def measured(self, run: Run, only: Iterable[str] | None = None) -> Measured:
        """What was measured of a run up to now; `only` are the sets that will be used, None for all. Others
        cost another read.
        """
        return Measured(run, self.jobs, self.samples, self.clock(), only)

    def judge(self, run: Run, rules: RuleSet | None = None) -> Verdict:
        """The verdict on a run, which is not stored."""
        rules = rules or self.rules
        measured = self.measured(run, rules.sets)
        return judge(rules, measured, job_fields(measured, self.jobs))

    def judge_due(self) -> int:
        """Judge the runs that are due, and store each verdict at once; returns the number of runs.

        A run that cannot be judged does not hold up the others: the last NotJudged is raised after all runs
        are done.
        """
        now = self.clock()
        runs = due(self.jobs, now)
        failed: NotJudged | None = None
        for run in runs:
            begun = time.monotonic()
            try:
                keep(self.jobs, run, self.judge(run), now)
                self.verdicts += 1
            except StoreFailed:
                raise  # no run's samples can be read
            except Exception as error:
                failed = NotJudged(f"job {run.job} cannot be judged: {type(error).__name__}: {error}")
                failed.__cause__ = error
            finally:
                self.judging_s += time.monotonic() - begun
        if failed:
            raise failed
        return len(runs)

    def _judge_if_first(self) -> None:
        if self.jobs.database.leads():
            self.judge_due()

    def late_ms(self) -> int:
        """Batches made before this time (ms since 1970) are late: verdicts did not wait for them."""
        return int((self.clock() - SETTLE * self.jobs.period()) * 1000)

    def tidy(self) -> None:
        """Seal, thin and drop samples; once an hour, delete runs that Slurm has not confirmed for too
        long.
        """
        now = self.clock()
        self.samples.tidy(int(now * 1000), self.thinning)
        if now - self._deleted >= _DELETE_EVERY_S and self.jobs.database.leads():
            before, self._deleted = self._deleted, now
            delete_unconfirmed(self.jobs, now)
            delete_old(self.jobs, self.retention, now, before)

    def look_for_damage(self) -> None:
        """Once a day, search for rows that cannot be read."""
        now = self.clock()
        if now - self._looked >= _LOOK_EVERY_S:
            self._looked = now
            self.damage = [*damaged_rows(self.jobs.reader), *damaged_samples(self.folder / "samples")]

    def all_damage(self) -> list[Damage | SampleDamage]:
        """What was looked for, and what was met since: each place once."""
        known = {each.place for each in self.damage if isinstance(each, SampleDamage)}
        return [*self.damage, *(each for each in self.samples.damage() if each.place not in known)]

    def work(self, stop: threading.Event, failed: Callable[[str, Exception], None]) -> None:
        """Judge and tidy until `stop` is set. A failure is passed to `failed` and tried again later.

        Of the servers that share a database only one judges.
        """
        tidied = 0.0
        while not stop.wait(self.jobs.period() / 2):
            for task, step in (("rules", self.reload), ("judging", self._judge_if_first)):
                try:
                    step()
                except Exception as error:
                    failed(task, error)
            if self.clock() - tidied > 60:
                tidied = self.clock()
                for task, chore in (("tidying", self.tidy), ("looking for damage", self.look_for_damage)):
                    try:
                        chore()
                    except Exception as error:
                        failed(task, error)
