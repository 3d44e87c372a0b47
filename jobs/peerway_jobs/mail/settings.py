"""Reads the settings of mails from a TOML file."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from peerway_common.located_toml import LocatedToml
from peerway_jobs.server_folder import parse_since

_ADDRESS = re.compile(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+", re.ASCII)


class BadMail(ValueError):
    """A setting cannot be used; the message says which one and what is allowed."""


@dataclass(frozen=True)
class Mail:
    """How mail is sent, to whom, and how often at most."""

    server: str  # smtp://HOST[:PORT], smtps://HOST[:PORT], or sendmail:/usr/sbin/sendmail
    sender: str
    to: str  # {user}@example.org
    page: str  # the address of the pages of jobs
    every: str = "1d"
    language: str = "en"
    least_gpu_hours: float = 1.0
    least_core_hours: float = 50.0
    most_an_hour: int = 100
    user: str = ""  # to log in at the SMTP server, only over TLS
    password_file: str = ""

    @property
    def every_s(self) -> float:
        """Seconds between two mails to one person."""
        return parse_since(self.every)

    @property
    def address(self) -> SplitResult:
        """The parts of `server`."""
        return urlsplit(self.server)


def read(file: Path) -> Mail:
    """Read and check a file. Raises BadMail, OSError."""
    content = LocatedToml.read(file, BadMail).values
    known = {each.name: each for each in fields(Mail)}
    if unknown := sorted(set(content) - set(known)):
        raise BadMail(f"{file}: there is no {', '.join(unknown)}; there are {', '.join(known)}")
    if missing := [name for name in ("server", "sender", "to", "page") if not content.get(name)]:
        raise BadMail(f"{file}: {', '.join(missing)} must be set")
    for name, value in content.items():
        text = known[name].type == "str"
        if not isinstance(value, str if text else (int, float)) or isinstance(value, bool):
            raise BadMail(f"{file}: {name} = {value!r} is no {'text' if text else 'number'}")
    mail = Mail(**content)
    _check(mail, file)
    return mail


def _check(mail: Mail, file: Path) -> None:
    parts = mail.address
    smtp = parts.scheme in ("smtp", "smtps") and parts.hostname and not parts.username
    if not smtp and not (parts.scheme == "sendmail" and Path(parts.path).is_absolute()):
        raise BadMail(
            f"{file}: server = {mail.server!r} is none of smtp://HOST[:PORT], smtps://HOST[:PORT] and "
            "sendmail:/usr/sbin/sendmail"
        )
    if not _ADDRESS.fullmatch(mail.sender):
        raise BadMail(f"{file}: sender = {mail.sender!r} is not an address")
    if mail.to.count("{user}") != 1 or not _ADDRESS.fullmatch(mail.to.replace("{user}", "user")):
        raise BadMail(f"{file}: to = {mail.to!r} is not an address with {{user}} in it")
    if not mail.page.startswith(("https://", "http://")):
        raise BadMail(f"{file}: page = {mail.page!r} is not the address of a page")
    if mail.language not in ("en", "ru"):
        raise BadMail(f"{file}: language = {mail.language!r}; there are en and ru")
    try:
        if mail.every_s < 1:
            raise ValueError("it is shorter than a second")
    except ValueError as error:
        raise BadMail(f"{file}: every = {mail.every!r}: {error}") from None
    if bool(mail.user) != bool(mail.password_file):
        raise BadMail(f"{file}: user and password_file must be given together")
