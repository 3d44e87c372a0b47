"""Reads policies from a TOML file."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.server_folder import parse_since
from peerway_jobs.store.runs import Run
from peerway_jobs.toml_table import read_tables

ACTIONS = ("warn", "hold", "cancel")
LEAST_IDLE_S = 600.0
LEAST_DRY_S = 3600.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", re.ASCII)
# Settings that change on which jobs a policy acts, and how: it is then tried dry again.
_OF_FORM = ("idle", "action", "after_warning", "use", "partitions")


class BadPolicies(ValueError):
    """A setting cannot be used; the message says which one and what is allowed."""


@dataclass(frozen=True)
class Policy:
    """One policy."""

    name: str
    idle: str
    action: str = "warn"
    after_warning: str = "1h"
    dry_run: str = "7d"
    use: float = 0.01
    partitions: tuple[str, ...] = ()
    exempt_users: tuple[str, ...] = ()
    exempt_projects: tuple[str, ...] = ()
    most_an_hour: int = 10

    @property
    def idle_s(self) -> float:
        """How long all GPUs of a job must have been idle."""
        return parse_since(self.idle)

    @property
    def after_warning_s(self) -> float:
        """The time between the warning and the act."""
        return parse_since(self.after_warning)

    @property
    def dry_run_s(self) -> float:
        """How long the policy only records what it would do."""
        return parse_since(self.dry_run)

    @property
    def form(self) -> str:
        """Identifies the settings that decide on which jobs it acts, and how."""
        values = json.dumps([getattr(self, name) for name in _OF_FORM])
        return hashlib.sha256(values.encode()).hexdigest()[:16]

    def exempts(self, run: Run) -> str:
        """Why it does not concern a run; empty if it does."""
        if self.partitions and run.partition not in self.partitions:
            return f"partition {run.partition}"
        if run.user in self.exempt_users:
            return f"user {run.user} is exempt"
        for project in (run.account, run.project):
            if project and project in self.exempt_projects:
                return f"project {project} is exempt"
        return ""


@dataclass(frozen=True)
class Policies:
    """All policies of a server."""

    page: str
    policies: tuple[Policy, ...]
    language: str = "en"

    def need_mail(self) -> list[str]:
        """The names of the policies that act after a warning."""
        return [policy.name for policy in self.policies if policy.action != "warn"]


def read(file: Path) -> Policies:
    """Read and check a file. Raises BadPolicies, OSError."""
    content = read_tables(Policy, file, ("policy", "policies"), BadPolicies, _check, ("language",))
    language = content.settings.get("language", "en")
    if language not in LANGUAGES:
        raise BadPolicies(f"{file}: language = {language!r}; there are {', '.join(LANGUAGES)}")
    return Policies(content.page, content.tables, language)


def _check(where: str, policy: Policy) -> None:
    if _NAME.fullmatch(policy.name) is None:
        raise BadPolicies(f"{where}: a name may contain only letters, digits, - and _")
    if policy.action not in ACTIONS:
        raise BadPolicies(f"{where}: action = {policy.action!r}; there are {', '.join(ACTIONS)}")
    for name, least in (("idle", LEAST_IDLE_S), ("after_warning", 0.0), ("dry_run", LEAST_DRY_S)):
        value = getattr(policy, name)
        try:
            if parse_since(value) < least:
                raise ValueError(f"it is at least {least / 60:.0f} minutes")
        except ValueError as error:
            raise BadPolicies(f"{where}: {name} = {value!r}: {error}") from None
    if not 0 <= policy.use <= 0.5:
        raise BadPolicies(f"{where}: use = {policy.use:g}; it may be 0 to 0.5")
    if policy.most_an_hour < 1:
        raise BadPolicies(f"{where}: most_an_hour = {policy.most_an_hour}; it is at least 1")
