"""`peerway jobs notices`: shows the mails that the server would send now."""

from __future__ import annotations

import time
from pathlib import Path

import click

from peerway_common.terminal import say
from peerway_jobs.server_folder import data_option, monitor_at


@click.command()
@click.option(
    "--mail",
    "file",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="The mail settings, as for `peerway jobs serve --mail`.",
)
@data_option
def command(file: Path, data: Path) -> None:
    """Print the mails that are due now. This sends nothing and marks nothing as sent."""
    from peerway_jobs.mail.digest import digests, message
    from peerway_jobs.mail.settings import BadMail, read

    try:
        mail = read(file)
    except BadMail as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror or error}") from None
    count, now = 0, time.time()
    with monitor_at(data) as monitor:
        for digest in digests(monitor.jobs, mail, now):
            mail_text = message(monitor.jobs, mail, digest, now)
            say(f"To: {mail_text['To']}\nSubject: {mail_text['Subject']}\n\n{mail_text.get_content()}")
            count += 1
    say("1 mail is due" if count == 1 else f"{count} mails are due", err=True)
