"""The settings of the agent, from one TOML file. The agent finds out everything else by itself."""

from __future__ import annotations

import os
import re
import socket
import stat
from dataclasses import dataclass, fields
from pathlib import Path

from peerway_common.located_toml import LocatedToml
from peerway_jobs.address import is_address, is_open
from peerway_jobs.batch_check import is_node_name

TEMPLATE = Path(__file__).parents[1] / "slurm" / "jobs-agent.toml"
_TOKEN = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)
_PAGE = re.compile(r"(?:(\[[0-9a-fA-F:]+\]|[A-Za-z0-9.-]+):(\d{1,5}))?", re.ASCII)


class BadSettings(ValueError):
    """A setting is wrong; the message says which and what to do."""


@dataclass(slots=True)
class Settings:
    """The settings of slurm/jobs-agent.toml. `root` (a file tree) and `nvml` (a module) are for tests."""

    server: str = ""
    token_file: str = ""
    ca_file: str = ""
    node: str = ""
    interval_s: float = 10
    spool_mb: float = 256
    state: str = "/var/lib/peerway-jobs-agent"
    page: str = "127.0.0.1:9472"
    root: str = "/"
    nvml: str = "pynvml"

    def servers(self) -> list[str]:
        """The addresses of the servers that share a database; the first is preferred."""
        return self.server.split()

    def page_address(self) -> tuple[str, int] | None:
        """The host and port of the OpenMetrics page; None for no page."""
        match = _PAGE.fullmatch(self.page)
        assert match is not None
        return (match[1].strip("[]"), int(match[2])) if match[1] else None


def read(file: Path) -> Settings:
    """Read and check a file. Raises BadSettings."""
    try:
        content = LocatedToml.read(file, BadSettings).values
    except FileNotFoundError:
        raise BadSettings(
            f"there is no file {file}: name the agent's settings with --settings, or make it from the "
            f"template {TEMPLATE}"
        ) from None
    except OSError as error:
        raise BadSettings(f"cannot read {file}: {error.strerror}") from None
    known = {each.name: each for each in fields(Settings)}
    for name, value in content.items():
        if name not in known:
            raise BadSettings(f"{file}: there is no setting '{name}'; there are {', '.join(known)}")
        kinds, word = ((int, float), "number") if known[name].type == "float" else ((str,), "text")
        if not isinstance(value, kinds) or isinstance(value, bool):
            raise BadSettings(f"{file}: {name} = {value!r} is not a {word}")
    settings = Settings(**content)
    settings.node = settings.node or socket.gethostname().partition(".")[0]
    _check(settings, file)
    return settings


def _check(settings: Settings, file: Path) -> None:
    if not is_node_name(settings.node):
        raise BadSettings(f"{file}: node = {settings.node!r} may not be a node's name")
    if not 0.05 <= settings.interval_s <= 3600:
        raise BadSettings(f"{file}: interval_s = {settings.interval_s:g}; it may be 0.05 to 3600")
    if not 1 <= settings.spool_mb <= 1 << 20:
        raise BadSettings(f"{file}: spool_mb = {settings.spool_mb:g}; it may be 1 to {1 << 20}")
    if _PAGE.fullmatch(settings.page) is None:
        raise BadSettings(f"{file}: page = {settings.page!r} is not HOST:PORT")
    if not settings.servers():
        return  # without a server, the agent measures, spools and shows the page
    for address in settings.servers():
        if not is_address(address):
            raise BadSettings(f"{file}: server = {address!r} is not https://HOST[:PORT][/PATH]")
        if is_open(address):
            raise BadSettings(
                f"{file}: server = {address!r} would send this node's token unencrypted; use https://"
            )
    if not settings.token_file:
        raise BadSettings(
            f"{file}: there is a server and no token_file; the server's administrator makes one"
        )


def read_token(file: Path) -> str:
    """This node's token. Raises BadSettings if others may read the file, or if it contains no token."""
    try:
        with file.open("rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            content = stream.read(128).decode(errors="replace").strip()
    except OSError as error:
        raise BadSettings(f"cannot read the token file {file}: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise BadSettings(
            f"others may read the token file {file} (mode {stat.S_IMODE(mode):04o}); chmod 600 it"
        )
    if _TOKEN.fullmatch(content) is None:
        raise BadSettings(f"{file} holds no token: 43 characters of base64url on one line")
    return content
