"""Reads the settings of webhooks from a TOML file, and their addresses from files of their own."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from peerway_jobs.address import is_open
from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.server_folder import parse_since
from peerway_jobs.toml_table import read_tables

KINDS = ("slack", "mattermost", "json")
EVENTS = ("jobs", "alarms", "policies")
_MOST_SECRET = 1 << 12  # bytes


class BadWebhooks(ValueError):
    """A setting cannot be used; the message says which one and what is allowed, and contains no secret."""


@dataclass(frozen=True)
class Webhook:
    """One webhook: where its messages go, and which."""

    name: str
    kind: str
    url_file: str  # contains its address, which is a secret
    events: tuple[str, ...]
    every: str = "1d"
    least_gpu_hours: float = 1.0
    least_core_hours: float = 50.0
    accounts: tuple[str, ...] = ()
    language: str = "en"
    secret_file: str = ""

    @property
    def every_s(self) -> float:
        """Seconds between two messages about jobs."""
        return parse_since(self.every)

    def url(self) -> str:
        """Its address, read now. Raises BadWebhooks."""
        address = secret(self.url_file)
        try:
            usable = urlsplit(address).scheme in ("https", "http") and bool(urlsplit(address).hostname)
        except ValueError:
            usable = False
        if not usable or any(letter.isspace() for letter in address):
            raise BadWebhooks(f"{self.url_file} holds no address: one line that begins with https://")
        if is_open(address):
            raise BadWebhooks(
                f"{self.url_file}: http:// would send messages over the network unencrypted; use https://"
            )
        return address


@dataclass(frozen=True)
class Webhooks:
    """All webhooks of a server, and the address of its pages for the links."""

    page: str
    hooks: tuple[Webhook, ...]

    def with_event(self, event: str) -> list[Webhook]:
        """The webhooks that want this event."""
        return [hook for hook in self.hooks if event in hook.events]


def secret(file: str) -> str:
    """The one line of a file that only its user may read. Raises BadWebhooks."""
    try:
        with Path(file).open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(_MOST_SECRET).decode().strip()
    except OSError as error:
        raise BadWebhooks(f"cannot read {file}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise BadWebhooks(f"{file} is not UTF-8") from None
    if stat.S_IMODE(mode) & 0o077:
        raise BadWebhooks(f"others may read {file} (mode {stat.S_IMODE(mode):04o}); chmod 600 it")
    if not content:
        raise BadWebhooks(f"{file} is empty")
    return content


def read(file: Path) -> Webhooks:
    """Read and check a file, and the addresses in the files that it names. Raises BadWebhooks, OSError."""
    content = read_tables(Webhook, file, ("webhook", "webhooks"), BadWebhooks, _check)
    return Webhooks(content.page, content.tables)


def _check(where: str, hook: Webhook) -> None:
    for name, value, allowed in (
        ("kind", hook.kind, KINDS),
        ("language", hook.language, LANGUAGES),
        *(("events", event, EVENTS) for event in hook.events),
    ):
        if value not in allowed:
            raise BadWebhooks(f"{where}: {name} = {value!r}; there are {', '.join(allowed)}")
    try:
        if hook.every_s < 60:
            raise ValueError("it is shorter than a minute")
    except ValueError as error:
        raise BadWebhooks(f"{where}: every = {hook.every!r}: {error}") from None
    if hook.secret_file and hook.kind != "json":
        raise BadWebhooks(f'{where}: secret_file is only for kind = "json"')
    try:
        hook.url()
        if hook.secret_file:
            secret(hook.secret_file)
    except BadWebhooks as error:
        raise BadWebhooks(f"{where}: {error}") from None
