"""Slurm's MailProg: passes Slurm's mails on, with a job's summary in those about its end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email import policy
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from urllib.parse import urlsplit

from peerway_common.located_toml import LocatedToml
from peerway_common.printable import shortened
from peerway_jobs.address import is_address, is_open
from peerway_jobs.mail.settings import Mail
from peerway_jobs.server_folder import parse_since
from peerway_jobs.toml_table import from_table

# What Slurm writes in a subject: "Slurm Job_id=42 Name=x Ended, Run time 00:01:00, COMPLETED, ExitCode 0" or
# "Slurm Array Task Job_id=42_7 (49) Name=x Failed, Run time ...". A user chooses the name, so the job's
# number is taken from what stands before it.
_JOB = re.compile(
    r"^(?:\S+ )?Slurm (?:Array (?:Summary|Task) )?Job_id=(\d{1,10})(?:_(\d{1,10}))?[ ,]", re.ASCII
)
_ENDED = re.compile(r".* (?:Ended|Failed|Invalid dependency), Run time [0-9:-]+", re.ASCII)
_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]{1,64}(@[A-Za-z0-9.-]{1,255})?", re.ASCII)
AGAIN_S = (30.0, 120.0, 300.0, 600.0, 900.0)  # pauses between tries to send a mail
_NO_ANSWER = {
    "en": "There is no summary of this job: {why}.",
    "ru": "Сводки этого задания нет: {why}.",
}


_UNFOLDED = policy.default.clone(max_line_length=900)  # a folded subject would begin with a space


class BadMailSettings(ValueError):
    """A setting cannot be used; the message says which one and what is allowed."""


@dataclass(frozen=True)
class MailSettings:
    """Where summaries come from, and how mails go out."""

    server: str
    token_file: str
    mail: str
    sender: str
    domain: str
    wait: str = "5m"
    language: str = "en"
    ca_file: str = ""

    @property
    def wait_s(self) -> float:
        """How long to wait for the final verdict, in seconds."""
        return parse_since(self.wait)

    @property
    def outgoing(self) -> Mail:
        """The same as settings of mails to owners, for post.send."""
        return Mail(self.mail, self.sender, "{user}@" + self.domain, self.server, language=self.language)


def read(file: Path) -> MailSettings:
    """Read and check a file. Raises BadMailSettings, OSError."""
    content = LocatedToml.read(file, BadMailSettings).values
    settings = from_table(MailSettings, content, str(file), BadMailSettings)
    _check(file, settings)
    return settings


def _check(file: Path, settings: MailSettings) -> None:
    if not is_address(settings.server) or is_open(settings.server):
        raise BadMailSettings(
            f"{file}: server = {settings.server!r} is not https://HOST; a token goes over TLS only"
        )
    parts = urlsplit(settings.mail)
    smtp = parts.scheme in ("smtp", "smtps") and parts.hostname and not parts.username
    if not smtp and not (parts.scheme == "sendmail" and Path(parts.path).is_absolute()):
        raise BadMailSettings(
            f"{file}: mail = {settings.mail!r} is none of sendmail:/usr/sbin/sendmail, smtp://HOST[:PORT] "
            "and smtps://HOST[:PORT]"
        )
    match = _ADDRESS.fullmatch(settings.sender)
    if not (match and match[1]):
        raise BadMailSettings(f"{file}: sender = {settings.sender!r} is not an address")
    if not re.fullmatch(r"[A-Za-z0-9.-]{1,255}", settings.domain):
        raise BadMailSettings(f"{file}: domain = {settings.domain!r} is not a domain")
    if settings.language not in _NO_ANSWER:
        raise BadMailSettings(f"{file}: language = {settings.language!r}; there are {', '.join(_NO_ANSWER)}")
    try:
        parse_since(settings.wait)
    except ValueError as error:
        raise BadMailSettings(f"{file}: wait = {settings.wait!r}: {error}") from None


def job_of(subject: str) -> str | None:
    """The job that a subject says has ended, such as 42 or 42_7; None for all other mails.

    A mail about a whole array names its first job, of which a summary would mislead, so it has none.
    """
    match = _JOB.match(subject)
    if match is None or _ENDED.match(subject) is None or "Array Summary" in subject[: match.end()]:
        return None
    return f"{match[1]}_{match[2]}" if match[2] else match[1]


def recipient(text: str, domain: str) -> str:
    """The address for what Slurm calls the user to be told. Raises ValueError."""
    match = _ADDRESS.fullmatch(text)
    if match is None or text.startswith("-"):
        raise ValueError(f"{shortened(text)!r} is not an address")
    return text if match[1] else f"{text}@{domain}"


def message(settings: MailSettings, to: str, subject: str, text: str, now: float) -> EmailMessage:
    """The mail. A subject contains the job's name, so it is made printable, and has one line."""
    email = EmailMessage(policy=_UNFOLDED)
    email["From"], email["To"], email["Subject"] = settings.sender, to, shortened(subject, 300)
    email["Date"], email["Message-ID"] = formatdate(now), make_msgid(domain=settings.domain)
    email["Auto-Submitted"] = "auto-generated"
    email.set_content(text + "\n")
    return email


def without_summary(settings: MailSettings, why: str) -> str:
    """The text of a mail whose summary cannot be had."""
    return _NO_ANSWER[settings.language].format(why=shortened(why, 300).rstrip("."))


def sent_at_last(
    settings: MailSettings, email: EmailMessage, sleep: Callable[[float], None] = time.sleep
) -> None:
    """Send a mail, and try again while the mail server does not answer. Raises NotNow after the last try,
    and Never.
    """
    from peerway_jobs.mail.post import NotNow, send

    for pause in (*AGAIN_S, None):
        try:
            send(settings.outgoing, email)
            return
        except NotNow:
            if pause is None:
                raise
        sleep(pause)
