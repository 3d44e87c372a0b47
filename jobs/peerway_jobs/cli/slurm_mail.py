"""`peerway jobs slurm-mail`: Slurm's MailProg; slurm/mail.sh calls it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from peerway_jobs.mail_program import MailSettings

_AGAIN_S = 5.0  # between two questions to the server
_SETTINGS = Path("/etc/peerway/jobs-mail.toml")


@click.command()
@click.option("-s", "subject", required=True, help="The subject, as Slurm writes it.")
@click.argument("address")
@click.option(
    "--settings",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    default=_SETTINGS,
    show_default=True,
    help="TOML file that says where summaries come from and how mails go out.",
)
def command(subject: str, address: str, file: Path) -> None:
    """Send one of Slurm's mails to ADDRESS, with the job's summary if it is about the end of a job.

    The mail is sent in any case, without a summary if there is none in time.
    """
    from peerway_jobs.mail.post import Never, NotNow
    from peerway_jobs.mail_program import BadMailSettings, job_of, message, read, recipient, sent_at_last

    try:
        settings = read(file)
        to = recipient(address, settings.domain)
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror or error}") from None
    except (BadMailSettings, ValueError) as error:
        raise click.ClickException(str(error)) from None
    job = job_of(subject)
    text = _summary(settings, job) if job else ""
    try:
        sent_at_last(settings, message(settings, to, subject, text, time.time()))
    except (NotNow, Never) as error:
        raise click.ClickException(f"no mail can be sent to {to}: {error}") from None


def _summary(settings: MailSettings, job: str) -> str:
    """The summary of a job once its verdict is final, or why there is none."""
    from peerway_jobs.agent.settings import BadSettings, read_token
    from peerway_jobs.asking import NotNow, with_token
    from peerway_jobs.mail_program import without_summary
    from peerway_jobs.summary import summary

    end = time.monotonic() + settings.wait_s
    while True:
        known, why = None, f"the server does not know job {job}"
        try:
            token = read_token(Path(settings.token_file))
            known = with_token(settings.server, job, token, settings.ca_file)
        except NotNow as error:
            why = error.message
        except (BadSettings, click.ClickException) as error:
            return without_summary(settings, getattr(error, "message", str(error)))
        remaining = end - time.monotonic()
        if (known and known.final) or remaining <= 0:
            break
        time.sleep(min(_AGAIN_S, remaining))
    if known is None:
        return without_summary(settings, why)
    return summary(known.run, known.verdict, time.time(), settings.language)
