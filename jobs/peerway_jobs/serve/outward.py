"""What the server does outside: mails, messages to webhooks, comments in Slurm, and policies. All of it is
off by default.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from peerway_jobs.admin_comment import Comments
from peerway_jobs.mail import settings as mail_settings
from peerway_jobs.mail.notices import Notices
from peerway_jobs.mail.settings import Mail
from peerway_jobs.monitor import Monitor
from peerway_jobs.policies import settings as policy_settings
from peerway_jobs.policies.enforce import Enforcer
from peerway_jobs.policies.settings import Policies
from peerway_jobs.webhooks import settings as webhook_settings
from peerway_jobs.webhooks.deliver import Deliveries
from peerway_jobs.webhooks.settings import Webhooks

Worker = Callable[[threading.Event], None]


@dataclass(frozen=True)
class Outward:
    """Which of it is on."""

    mail: Mail | None = None
    webhooks: Webhooks | None = None
    policies: Policies | None = None
    admin_comment: bool = False

    def workers(self, monitor: Monitor, tell: Callable[[str], None]) -> Iterator[Worker]:
        """Functions for threads of their own; each ends when its event is set."""
        if self.mail:
            yield Notices(monitor, self.mail, tell).work
        if self.webhooks:
            yield Deliveries(monitor, self.webhooks, tell).work
        if self.admin_comment:
            yield Comments(monitor, tell).work
        if self.policies:
            yield Enforcer(monitor, self.policies, self.mail, tell).work


def read_outward(
    mail: Path | None, webhooks: Path | None, policies: Path | None, admin_comment: bool, slurm: bool
) -> Outward:
    """Read the files of settings. Raises ValueError, OSError."""
    outward = Outward(
        mail_settings.read(mail) if mail else None,
        webhook_settings.read(webhooks) if webhooks else None,
        policy_settings.read(policies) if policies else None,
        admin_comment,
    )
    if not slurm and (policies or admin_comment):
        option = "--policies" if policies else "--admin-comment"
        raise ValueError(f"{option} acts through Slurm, and --no-slurm asks for none of it; give only one")
    if outward.policies and not mail:
        if names := outward.policies.need_mail():
            raise ValueError(
                f"policy {', '.join(names)} acts only after a warning by mail, and no mail is sent; "
                'give --mail, or set action = "warn"'
            )
        if not (outward.webhooks and outward.webhooks.with_event("policies")):
            raise ValueError(
                "policies warn nobody: give --mail, or --webhooks with a webhook that has the event policies"
            )
    return outward
