"""The tables of jobs, intervals, verdicts, people and tokens, and how a database is migrated to them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from peerway_jobs.store.disk import Connection, explained

CACHE_KIB = 256  # per connection
RESTORE = "stop the server and restore jobs.db from its last backup (docs/jobs/server.md)"
WAITING = (
    "stop the server and restore this file from a backup, or move it elsewhere: the batches that wait in it "
    "are lost then"
)

# Each entry migrates a database by one version; an entry is never changed after its release.
VERSIONS = [
    """
    -- a requeued job keeps its id: each start of it is a row of its own
    CREATE TABLE jobs (
      job TEXT NOT NULL, restart INTEGER NOT NULL,
      user TEXT NOT NULL, account TEXT NOT NULL DEFAULT '', name TEXT NOT NULL DEFAULT '',
      partition TEXT NOT NULL DEFAULT '', qos TEXT NOT NULL DEFAULT '',
      state TEXT NOT NULL DEFAULT 'RUNNING', reason TEXT NOT NULL DEFAULT '',
      exit_code INTEGER, signal INTEGER, out_of_memory INTEGER NOT NULL DEFAULT 0,
      submitted REAL, started REAL, ended REAL, time_limit REAL,
      nodes INTEGER NOT NULL DEFAULT 0, cores REAL NOT NULL DEFAULT 0, gpus REAL NOT NULL DEFAULT 0,
      gpu_type TEXT NOT NULL DEFAULT '', memory REAL NOT NULL DEFAULT 0,
      node_list TEXT NOT NULL DEFAULT '', node_type TEXT NOT NULL DEFAULT '',
      script TEXT NOT NULL DEFAULT '', steps TEXT NOT NULL DEFAULT '[]',
      -- what lists and sums need of the verdict
      verdict TEXT NOT NULL DEFAULT 'waiting', tag TEXT NOT NULL DEFAULT '',
      severity INTEGER NOT NULL DEFAULT 0,
      cpu_efficiency REAL, gpu_efficiency REAL, memory_efficiency REAL,
      idle_core_hours REAL NOT NULL DEFAULT 0, idle_gpu_hours REAL NOT NULL DEFAULT 0,
      freed_core_hours REAL NOT NULL DEFAULT 0, freed_gpu_hours REAL NOT NULL DEFAULT 0,
      judged REAL NOT NULL DEFAULT 0,
      PRIMARY KEY (job, restart)
    ) WITHOUT ROWID;
    CREATE INDEX jobs_of_user ON jobs (user, started DESC);
    CREATE INDEX jobs_of_account ON jobs (account, started DESC);
    CREATE INDEX jobs_started ON jobs (started DESC);
    CREATE INDEX jobs_ended ON jobs (ended);

    -- who had what of a node; an agent may tell of one again and again
    CREATE TABLE intervals (
      node TEXT NOT NULL, id TEXT NOT NULL, job TEXT NOT NULL, step TEXT, slot INTEGER, restart INTEGER,
      start INTEGER NOT NULL, end INTEGER, user TEXT, partition TEXT, cpus INTEGER, cores TEXT,
      gpus TEXT NOT NULL DEFAULT '[]', memory INTEGER, source TEXT NOT NULL, told INTEGER NOT NULL,
      PRIMARY KEY (node, id)
    ) WITHOUT ROWID;
    CREATE INDEX intervals_of_job ON intervals (job, start);
    CREATE INDEX intervals_of_node ON intervals (node, start) WHERE step IS NULL;
    -- what is no figure: batch_check.NOTES
    CREATE TABLE seen (
      node TEXT NOT NULL, kind TEXT NOT NULL, time INTEGER NOT NULL, job TEXT, owner TEXT, gpu TEXT,
      count INTEGER, pids TEXT NOT NULL DEFAULT '[]', text TEXT NOT NULL DEFAULT ''
    );
    CREATE INDEX seen_of_job ON seen (job, time);
    CREATE INDEX seen_of_owner ON seen (owner, time);

    CREATE TABLE verdicts (
      job TEXT NOT NULL, restart INTEGER NOT NULL, rules TEXT NOT NULL, judged REAL NOT NULL,
      body TEXT NOT NULL, PRIMARY KEY (job, restart)
    ) WITHOUT ROWID;
    CREATE TABLE rulesets (hash TEXT PRIMARY KEY, since REAL NOT NULL, text TEXT NOT NULL, by TEXT NOT NULL);

    -- which batches of an agent's stream are kept: [[1, 17], [19, 20]]
    CREATE TABLE received (
      node TEXT NOT NULL, stream TEXT NOT NULL, ranges TEXT NOT NULL, PRIMARY KEY (node, stream)
    ) WITHOUT ROWID;
    CREATE TABLE nodes (node TEXT PRIMARY KEY, facts TEXT NOT NULL, told INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE cluster (one INTEGER PRIMARY KEY CHECK (one = 1), at REAL NOT NULL, body TEXT NOT NULL);

    CREATE TABLE people (
      name TEXT PRIMARY KEY, password TEXT NOT NULL DEFAULT '', role TEXT NOT NULL DEFAULT 'user',
      accounts TEXT NOT NULL DEFAULT '[]'
    ) WITHOUT ROWID;
    CREATE TABLE sessions (hash TEXT PRIMARY KEY, name TEXT NOT NULL, ends REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE tokens (
      hash TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, node TEXT NOT NULL DEFAULT '',
      made REAL NOT NULL, ends REAL
    ) WITHOUT ROWID;
    CREATE TABLE notices (name TEXT NOT NULL, sent REAL NOT NULL, body TEXT NOT NULL);
    CREATE INDEX notices_of ON notices (name, sent);
    """,
    # whether a person wants notices
    "ALTER TABLE people ADD COLUMN mail INTEGER NOT NULL DEFAULT 1",
    # difference between a node's time since boot and the server's clock: clock.py's Arrivals
    """
    CREATE TABLE clocks (
      node TEXT PRIMARY KEY, boot TEXT NOT NULL, difference INTEGER NOT NULL
    ) WITHOUT ROWID
    """,
    # the job's name within an array: 123_4
    """
    ALTER TABLE jobs ADD COLUMN array TEXT NOT NULL DEFAULT '';
    CREATE INDEX jobs_of_array ON jobs (array) WHERE array != '';
    """,
    # Slurm's WCKey: what a site calls a project
    "ALTER TABLE jobs ADD COLUMN project TEXT NOT NULL DEFAULT ''",
    # all columns that lists.sums reads, so that the scripts need not be read
    """
    DROP INDEX jobs_ended;
    CREATE INDEX jobs_ended ON jobs (
      ended, started, user, account, project, partition, tag, verdict, cores, gpus,
      idle_core_hours, idle_gpu_hours, freed_core_hours, freed_gpu_hours
    );
    """,
    # parts of heterogeneous jobs, suspended time, the accounts' memory
    """
    ALTER TABLE jobs ADD COLUMN component TEXT NOT NULL DEFAULT '';
    ALTER TABLE jobs ADD COLUMN suspended REAL NOT NULL DEFAULT 0;
    ALTER TABLE jobs ADD COLUMN max_rss REAL NOT NULL DEFAULT 0;
    CREATE INDEX jobs_of_component ON jobs (component) WHERE component != '';
    """,
    # runs that agents reported and Slurm has not confirmed yet; alarms about agents
    """
    ALTER TABLE jobs ADD COLUMN provisional INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX jobs_provisional ON jobs (node_list) WHERE provisional;
    DROP INDEX jobs_ended;
    CREATE INDEX jobs_ended ON jobs (
      ended, started, user, account, project, partition, tag, verdict, cores, gpus,
      idle_core_hours, idle_gpu_hours, freed_core_hours, freed_gpu_hours, provisional
    );
    CREATE TABLE alarms (
      node TEXT NOT NULL, kind TEXT NOT NULL, job TEXT NOT NULL, text TEXT NOT NULL,
      first REAL NOT NULL, last REAL NOT NULL, count INTEGER NOT NULL, PRIMARY KEY (node, kind, job)
    ) WITHOUT ROWID;
    """,
    # who logged in, and who changed rules, people and tokens
    """
    CREATE TABLE audit (
      at REAL NOT NULL, who TEXT NOT NULL, address TEXT NOT NULL, action TEXT NOT NULL, detail TEXT NOT NULL
    );
    CREATE INDEX audit_at ON audit (at);
    """,
    # nodes that a run had and gave back
    "ALTER TABLE jobs ADD COLUMN former_nodes TEXT NOT NULL DEFAULT ''",
    # how much of the cluster was in use: sums over the minutes of a step (utilization.py)
    """
    CREATE TABLE utilization (
      step INTEGER NOT NULL, at INTEGER NOT NULL, node_type TEXT NOT NULL,
      minutes REAL NOT NULL, nodes REAL NOT NULL,
      cores REAL NOT NULL, cores_allocated REAL NOT NULL,
      cores_measured REAL NOT NULL, cores_used REAL NOT NULL,
      gpus REAL NOT NULL, gpus_allocated REAL NOT NULL, gpus_measured REAL NOT NULL, gpus_used REAL NOT NULL,
      memory REAL NOT NULL, memory_allocated REAL NOT NULL, memory_measured REAL NOT NULL,
      memory_used REAL NOT NULL, power_minutes REAL NOT NULL, watts REAL NOT NULL,
      PRIMARY KEY (step, at, node_type)
    ) WITHOUT ROWID
    """,
    # the jobs that wait, as Slurm last reported them (queue.py)
    "CREATE TABLE queue (one INTEGER PRIMARY KEY CHECK (one = 1), at REAL NOT NULL, body TEXT NOT NULL)",
    # sums of the finished jobs of each month (months.py)
    """
    CREATE TABLE months (
      month INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL, project TEXT NOT NULL,
      partition TEXT NOT NULL, tag TEXT NOT NULL, jobs INTEGER NOT NULL, inefficient INTEGER NOT NULL,
      core_hours REAL NOT NULL, gpu_hours REAL NOT NULL,
      idle_core_hours REAL NOT NULL, idle_gpu_hours REAL NOT NULL,
      freed_core_hours REAL NOT NULL, freed_gpu_hours REAL NOT NULL,
      PRIMARY KEY (month, user, account, project, partition, tag)
    ) WITHOUT ROWID;
    CREATE INDEX months_of_user ON months (user, month);
    """,
    # messages to webhooks, and what policies did
    """
    CREATE TABLE deliveries (
      hook TEXT NOT NULL, event TEXT NOT NULL, sent REAL NOT NULL, upto REAL NOT NULL, outcome TEXT NOT NULL
    );
    CREATE INDEX deliveries_of ON deliveries (hook, event, sent);
    CREATE TABLE acts (
      at REAL NOT NULL, policy TEXT NOT NULL, form TEXT NOT NULL, act TEXT NOT NULL, job TEXT NOT NULL,
      restart INTEGER NOT NULL, user TEXT NOT NULL, account TEXT NOT NULL, dry INTEGER NOT NULL,
      outcome TEXT NOT NULL, evidence TEXT NOT NULL
    );
    CREATE INDEX acts_of_job ON acts (job, at);
    CREATE INDEX acts_at ON acts (at);
    """,
    # what servers that share a database tell each other: the time of each node's newest batch, the rules
    """
    CREATE TABLE arrivals (node TEXT PRIMARY KEY, newest INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE shared (name TEXT PRIMARY KEY, since REAL NOT NULL, text TEXT NOT NULL) WITHOUT ROWID;
    """,
    # with the key, so that the list by waste is ranked in the index; in SQLite each index has it anyway
    """
    DROP INDEX jobs_ended;
    CREATE INDEX jobs_ended ON jobs (
      ended, started, user, account, project, partition, tag, verdict, cores, gpus,
      idle_core_hours, idle_gpu_hours, freed_core_hours, freed_gpu_hours, provisional, job, restart
    );
    """,
    # how much waited over time (queue_history.py)
    """
    CREATE TABLE queue_history (
      step INTEGER NOT NULL, at INTEGER NOT NULL,
      minutes REAL NOT NULL, jobs REAL NOT NULL, cores REAL NOT NULL, gpus REAL NOT NULL,
      PRIMARY KEY (step, at)
    ) WITHOUT ROWID
    """,
    # the power of whole nodes
    """
    ALTER TABLE utilization ADD COLUMN node_power_minutes REAL NOT NULL DEFAULT 0;
    ALTER TABLE utilization ADD COLUMN node_watts REAL NOT NULL DEFAULT 0;
    """,
]


def opened(path: Path | str, *, readonly: bool = False) -> sqlite3.Connection:
    """Open a connection whose commits are on disk when they return. Raises DiskFailed, now or in later
    calls.
    """
    where = f"file:{quote(str(path))}" + ("?mode=ro" if readonly else "")
    if not readonly:
        _make(path)
    try:
        base = sqlite3.connect(
            where, uri=True, timeout=30, check_same_thread=False, isolation_level=None, factory=Connection
        )
    except sqlite3.OperationalError as error:
        raise explained(Path(path), error) from None
    base.path = Path(path)
    base.row_factory = sqlite3.Row
    base.text_factory = _decoded
    if not readonly:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA synchronous = FULL")
    base.execute("PRAGMA foreign_keys = ON")
    base.execute("PRAGMA mmap_size = 268435456")
    # Each thread of the server has its own connections, and each connection fills its cache over days: to 2
    # MiB by default. Pages are read through the memory mapping, so the cache need only hold new ones.
    base.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    return base


@contextmanager
def advising(path: Path, advice: str) -> Iterator[None]:
    """Raises sqlite3.DatabaseError, of a damaged file with its name and the advice."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if type(error) is not sqlite3.DatabaseError:  # a full disk or a lock, which damage nothing
            raise
        raise sqlite3.DatabaseError(f"{path.name}: {error}; {advice}") from None


def _decoded(text: bytes) -> str:
    """Decode a text, even a damaged one: it must not fail the query, because the other rows are good."""
    return text.decode(errors="replace")


def _make(path: Path | str) -> None:
    """Create the file if there is none, readable by its user alone; SQLite gives its logs the same mode.

    An existing file is not opened, because closing it would release SQLite's locks of this process.
    """
    with suppress(FileExistsError):
        number = os.open(os.path.realpath(path), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.fchmod(number, 0o600)  # despite the umask
        os.close(number)


def emptied(path: Path) -> str:
    """The evidence that an empty file was a database of jobs; empty if it may be new.

    SQLite would take it for a new database and delete its log.
    """
    if not path.exists() or path.stat().st_size:
        return ""
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        return log.name
    # The folder of samples is created after the database.
    return "samples" if (path.parent / "samples").exists() else ""


def bring_up(base: sqlite3.Connection, versions: list[str]) -> None:
    """Migrate a database to the newest version; each step is all or nothing. Other processes may do the same
    at this moment: each step is done once.
    """
    have = _version(base)
    if have > len(versions):
        raise ValueError(too_new(have, len(versions)))
    for number, script in enumerate(versions[have:], start=have + 1):
        base.execute("BEGIN IMMEDIATE")
        try:
            if _version(base) < number:
                for statement in statements_of(script):
                    base.execute(statement)
                base.execute(f"PRAGMA user_version = {number}")
            base.commit()
        except BaseException:
            base.rollback()
            raise


def too_new(have: int, known: int) -> str:
    """Why a database of a newer version cannot be used."""
    return f"the database is of version {have}, this Peerway knows {known}: install a newer one"


def _version(base: sqlite3.Connection) -> int:
    version: int = base.execute("PRAGMA user_version").fetchone()[0]
    return version


def statements_of(script: str) -> Iterator[str]:
    """The statements of a script, for executing them in a transaction: executescript() would end it."""
    statement = ""
    for part in script.split(";"):
        statement += f"{part};"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
