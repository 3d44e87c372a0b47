"""Metrics of jobs: from Slurm's last report, and from the verdicts in the database. No label names a user."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from peerway_jobs.serve.cached import Cached
from peerway_jobs.serve.server_metrics import DAY_S
from peerway_jobs.serve.state import State
from peerway_jobs.store.cluster import cluster_state
from peerway_jobs.store.lists import sound, sums
from peerway_jobs.store.pending import OLDEST_S
from peerway_jobs.store.runs import STATES

_KEPT_OF_ALL_S = 600.0  # a count that reads every job: seconds of the database's time with ten million
_COUNTS = {
    "jobs_not_judged": ("Runs that ended in the last 14 days and have no verdict.", "SELECT count(*) "
                        "FROM jobs WHERE ended >= :oldest AND judged <= 0 AND NOT provisional"),
    "jobs_unconfirmed": ("Runs that Slurm has not confirmed.", "SELECT count(*) FROM jobs WHERE provisional"),
    "alarms": ("Alarms about agents.", "SELECT count(*) FROM alarms"),
    "nodes": ("Nodes whose agents have told what they are.", "SELECT count(*) FROM nodes"),
}  # fmt: skip
_OF_SLURM = {
    "running": ("running", "Jobs that run."),
    "users": ("running_users", "Users with a running job."),
    "waiting": ("waiting", "Jobs that wait."),
    "waiting_cores": ("waiting_cores", "Cores that waiting jobs ask for."),
    "waiting_gpus": ("waiting_gpus", "GPUs that waiting jobs ask for."),
}
_ALL = 100_000  # more accounts or rules than any site has
_MOST_ACCOUNTS = 20
_DEVICES = ("gpu", "core")
_EVERYBODY: tuple[str, list[str]] = ("TRUE", [])  # the jobs that are counted, as a condition


class JobMetrics(Collector):
    """Read on each scrape, at most every few seconds; the count of all jobs at most every ten minutes."""

    def __init__(self, state: State) -> None:
        self._monitor = state.monitor
        self._cached = Cached(lambda: list(self._families()))
        self._jobs = Cached(self._count_jobs, _KEPT_OF_ALL_S)

    def collect(self) -> Iterator[Metric]:
        """Yield every metric."""
        yield GaugeMetricFamily("peerway_jobs_jobs", "Runs that are kept.", self._jobs.value())
        yield from self._cached.value()

    def _families(self) -> Iterator[Metric]:
        yield from self._counts()
        yield from self._of_slurm()
        yield from self._of_verdicts()
        yield from self._of_hours()

    def _count_jobs(self) -> int:
        query = "SELECT count(*) FROM jobs WHERE NOT provisional"
        return int(self._monitor.jobs.reader.execute(query).fetchone()[0])

    def _counts(self) -> Iterator[Metric]:
        oldest = {"oldest": self._monitor.clock() - OLDEST_S}  # runs that ended before are judged no more
        for name, (text, query) in _COUNTS.items():
            count = self._monitor.jobs.reader.execute(query, oldest).fetchone()[0]
            yield GaugeMetricFamily(f"peerway_jobs_{name}", text, count)

    def _of_slurm(self) -> Iterator[Metric]:
        cluster = cluster_state(self._monitor.jobs.reader)
        if not cluster.at:  # Slurm has not answered yet
            return
        for key, (name, text) in _OF_SLURM.items():
            if (count := cluster.totals.get(key)) is not None:
                yield GaugeMetricFamily(f"peerway_jobs_{name}", text, count)
        reasons = GaugeMetricFamily(
            "peerway_jobs_waiting_reasons", "Waiting jobs by reason.", labels=["reason"]
        )
        for reason, count in cluster.totals.get("reasons", []):
            reasons.add_metric([reason], count)
        yield reasons

    def _of_verdicts(self) -> Iterator[Metric]:
        running = GaugeMetricFamily(
            "peerway_jobs_running_verdicts", "Running jobs by verdict.", labels=["verdict"]
        )
        ended = GaugeMetricFamily(
            "peerway_jobs_ended_last_day", "Jobs that ended in 24 hours.", labels=["verdict"]
        )
        idle_hours = 0.0
        base, since = self._monitor.jobs.reader, self._monitor.clock() - DAY_S
        for family, condition, values in (
            (running, "ended IS NULL AND started IS NOT NULL", ()),
            (ended, "ended >= ?", (since,)),
        ):
            rows = base.execute(
                f"SELECT verdict, count(*) AS jobs, sum({sound('idle_gpu_hours')}) AS idle FROM jobs "
                f"WHERE {condition} AND NOT provisional GROUP BY verdict",
                values,
            )
            counts = {row["verdict"]: (row["jobs"], row["idle"]) for row in rows}
            for verdict in STATES:
                count, idle = counts.get(verdict, (0, 0.0))
                family.add_metric([verdict], count)
                idle_hours += idle if family is running else 0.0
        yield running
        yield ended
        yield GaugeMetricFamily(
            "peerway_jobs_running_idle_gpu_hours", "GPU-hours that running jobs left idle.", idle_hours
        )

    def _of_hours(self) -> Iterator[Metric]:
        base, since = self._monitor.jobs.reader, self._monitor.clock() - DAY_S
        accounts = sums(base, _EVERYBODY, "account", since, _ALL)
        rules = sums(base, _EVERYBODY, "tag", since, _ALL)
        hours = GaugeMetricFamily(
            "peerway_jobs_hours_last_day", "Hours of jobs that ended in 24 hours.", labels=["device", "use"]
        )
        jobs = GaugeMetricFamily(
            "peerway_jobs_rule_jobs_last_day", "Jobs by the rule of their first finding.", labels=["rule"]
        )
        of_rules = GaugeMetricFamily(
            "peerway_jobs_rule_idle_hours_last_day", "Their idle hours.", labels=["rule", "device"]
        )
        for device in _DEVICES:
            hours.add_metric([device, "allocated"], sum(row[f"{device}_hours"] for row in accounts))
            hours.add_metric([device, "idle"], sum(row[f"idle_{device}_hours"] for row in accounts))
            for row in rules:
                if row["name"]:
                    of_rules.add_metric([row["name"], device], row[f"idle_{device}_hours"])
        for row in rules:
            if row["name"]:
                jobs.add_metric([row["name"]], row["jobs"])
        yield from (hours, jobs, of_rules)


class AccountMetrics(Collector):
    """Idle hours by account, which only administrators may see."""

    def __init__(self, state: State) -> None:
        self._monitor = state.monitor
        self._cached = Cached(self._family)

    def collect(self) -> Iterator[Metric]:
        """Yield the one metric."""
        yield self._cached.value()

    def _family(self) -> Metric:
        since = self._monitor.clock() - DAY_S
        family = GaugeMetricFamily(
            "peerway_jobs_account_idle_hours_last_day",
            "Idle hours of the accounts that wasted most.",
            labels=["account", "device"],
        )
        for row in sums(self._monitor.jobs.reader, _EVERYBODY, "account", since, _MOST_ACCOUNTS):
            for device in _DEVICES:
                family.add_metric([row["name"], device], row[f"idle_{device}_hours"])
        return family
