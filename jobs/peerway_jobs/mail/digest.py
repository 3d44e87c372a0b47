"""Composes the mails that are due: one per person, about the jobs found inefficient since the last mail."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import formatdate, make_msgid

from peerway_common.printable import shortened
from peerway_jobs.mail.settings import Mail
from peerway_jobs.rules.template import duration, figure
from peerway_jobs.store.connection import Connection
from peerway_jobs.store.jobs import JobStore
from peerway_jobs.store.lists import CORES_A_GPU
from peerway_jobs.store.pending import HOLD
from peerway_jobs.store.runs import Run, of_row
from peerway_jobs.store.stored import NOTICES, is_damaged
from peerway_jobs.verdicts import verdict_of

MOST_JOBS = 10  # listed one by one; only the number of the others is given
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}", re.ASCII)
_WORDS = {
    "en": {
        "subject": "Inefficient jobs: {jobs}; {gpu} GPU-hours and {core} core-hours idle",
        "begin": "These jobs of yours held what they did not use. What was idle until now:\n"
        "{gpu} GPU-hours and {core} core-hours.",
        "runs": "still running",
        "more": "And {count} more: {page}/jobs?verdict=inefficient",
        "end": "This mail comes at most once in {every}. To get none: {page}/tokens",
    },
    "ru": {
        "subject": "Неэффективных заданий: {jobs}; простой {gpu} GPU-часов и {core} ядро-часов",
        "begin": "Эти ваши задания занимали ресурсы, которых не использовали. Простой на данный момент:\n"
        "{gpu} GPU-часов и {core} ядро-часов.",
        "runs": "ещё выполняется",
        "more": "И ещё {count}: {page}/jobs?verdict=inefficient",
        "end": "Такое письмо приходит не чаще одного раза за {every}. Отказаться: {page}/tokens",
    },
}  # fmt: skip


@dataclass(frozen=True)
class Digest:
    """The inefficient jobs of one person, the most wasteful first."""

    user: str
    runs: list[Run]

    @property
    def gpu_hours(self) -> float:
        """Idle GPU-hours of all these jobs."""
        return sum(run.idle_gpu_hours for run in self.runs)

    @property
    def core_hours(self) -> float:
        """Idle core-hours of all these jobs."""
        return sum(run.idle_core_hours for run in self.runs)


def digests(store: JobStore, mail: Mail, now: float) -> Iterator[Digest]:
    """The digests that are due: the last mail is long ago, the person wants mails, and enough was wasted."""
    base = store.reader
    good = f"NOT {is_damaged(NOTICES, 'name', 'sent')}"
    last = dict(base.execute(f"SELECT name, max(sent) FROM notices WHERE {good} GROUP BY name").fetchall())
    none = {row[0] for row in base.execute("SELECT name FROM people WHERE mail = FALSE")}
    since = now - mail.every_s
    oldest = min([since, *last.values()])
    of_user: defaultdict[str, list[Run]] = defaultdict(list)
    for run in inefficient(base, max(oldest, now - 14 * 86_400)):
        of_user[run.user].append(run)
    for user, runs in sorted(of_user.items()):
        if user in none or last.get(user, 0) > since or not is_user_name(user):
            continue
        new = [run for run in runs if run.ended is None or run.judged > last.get(user, since)]
        digest = Digest(user, new)
        if digest.gpu_hours >= mail.least_gpu_hours or digest.core_hours >= mail.least_core_hours:
            yield digest


def is_user_name(user: str) -> bool:
    """Whether this may be a user's name, so that it may stand in an address."""
    return _USER.fullmatch(user) is not None


def inefficient(base: Connection, since: float) -> list[Run]:
    """Running inefficient runs, and those that ended and were judged after `since`; the most wasteful
    first.
    """
    rows = base.execute(
        "SELECT * FROM jobs WHERE verdict = 'inefficient' AND user != '' AND ended IS NULL "
        "UNION ALL SELECT * FROM jobs WHERE verdict = 'inefficient' AND user != '' "
        "AND ended > ? AND judged > ?",
        (since - 2 * HOLD, since),
    )
    runs = [run for run in map(of_row, rows) if run.has_key]
    return sorted(runs, key=lambda run: -(run.idle_gpu_hours * CORES_A_GPU + run.idle_core_hours))


def message(store: JobStore, mail: Mail, digest: Digest, now: float) -> EmailMessage:
    """The mail for a digest. Job names may contain anything, so they are made printable
    and kept out of headers.
    """
    words, lang = _WORDS[mail.language], mail.language
    page = mail.page.rstrip("/")
    places = {
        "jobs": len(digest.runs), "gpu": figure(digest.gpu_hours, lang),
        "core": figure(digest.core_hours, lang), "page": page, "every": duration(mail.every_s, lang),
        "count": len(digest.runs) - MOST_JOBS,
    }  # fmt: skip
    parts = [words["begin"].format(**places)]
    parts += [_of_run(store, run, page, lang) for run in digest.runs[:MOST_JOBS]]
    if len(digest.runs) > MOST_JOBS:
        parts.append(words["more"].format(**places))
    parts.append("-- \n" + words["end"].format(**places))
    email = EmailMessage()
    email["From"], email["To"] = mail.sender, mail.to.replace("{user}", digest.user)
    email["Subject"] = words["subject"].format(**places)
    email["Date"], email["Message-ID"] = formatdate(now), make_msgid(domain=mail.sender.partition("@")[2])
    email["Auto-Submitted"], email["Precedence"] = "auto-generated", "bulk"
    email.set_content("\n\n".join(parts).replace("\u00a0", " ") + "\n")
    return email


def _of_run(store: JobStore, run: Run, page: str, lang: str) -> str:
    verdict = verdict_of(store, run)
    findings = verdict["findings"] if verdict else []
    more = f" ({_WORDS[lang]['runs']})" if run.ended is None else ""
    lines = [f"* {run.job} {shortened(run.name, 80)}{more}".rstrip()]
    for each in findings[:2]:
        lines += [f"  {each['tag'][lang]}: {each['conclusion'][lang]}", f"  {each['advice'][lang]}"]
        lines += [f"      {each['script']}"] if each.get("script") else []
    query = f"?restart={run.restart}" if run.restart else ""
    return "\n".join([*lines, f"  {page}/jobs/{run.job}{query}"])
