"""`peerway jobs notices`: shows the mails and the messages to webhooks that the server would send now."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.printable import json_text, printable
from peerway_common.terminal import say
from peerway_jobs.server_folder import data_option, monitor_at

if TYPE_CHECKING:
    from peerway_jobs.mail.settings import Mail
    from peerway_jobs.monitor import Monitor
    from peerway_jobs.webhooks.settings import Webhooks

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--mail", type=_FILE, help="The mail settings, as for `peerway jobs serve --mail`.")
@click.option("--webhooks", type=_FILE, help="The webhooks, as for `peerway jobs serve --webhooks`.")
@data_option
def command(mail: Path | None, webhooks: Path | None, data: Path) -> None:
    """Print the mails and messages that are due now. This sends nothing and marks nothing as sent."""
    from peerway_jobs.mail import settings as of_mail
    from peerway_jobs.webhooks import settings as of_webhooks

    if not mail and not webhooks:
        raise click.UsageError("give --mail or --webhooks: the settings of what would be sent")
    try:
        mails = of_mail.read(mail) if mail else None
        messages = of_webhooks.read(webhooks) if webhooks else None
    except (of_mail.BadMail, of_webhooks.BadWebhooks) as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot read {error.filename}: {error.strerror or error}") from None
    with monitor_at(data) as monitor:
        if mails:
            _show_mails(monitor, mails)
        if messages:
            _show_messages(monitor, messages)


def _show_mails(monitor: Monitor, settings: Mail) -> None:
    from peerway_jobs.mail.digest import digests, message

    count, now = 0, time.time()
    for digest in digests(monitor.jobs, settings, now):
        mail_text = message(monitor.jobs, settings, digest, now)
        say(f"To: {mail_text['To']}\nSubject: {mail_text['Subject']}\n\n{mail_text.get_content()}")
        count += 1
    say("1 mail is due" if count == 1 else f"{count} mails are due", err=True)


def _show_messages(monitor: Monitor, settings: Webhooks) -> None:
    from peerway_jobs.webhooks.events import due
    from peerway_jobs.webhooks.messages import body

    count, now = 0, time.time()
    for hook in settings.hooks:
        for event in due(monitor.jobs, hook, settings.page, now, now):
            content = json.loads(body(settings, hook, event, now))
            text = content["text"] if hook.kind != "json" else json_text(content, indent=2)
            say(f"To: {hook.name}\n\n{printable(text, lines=True)}\n")
            count += 1
    say("1 message is due" if count == 1 else f"{count} messages are due", err=True)
