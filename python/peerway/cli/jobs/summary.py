"""`peerway jobs summary`: for an epilog, which writes the summary beside the job's output."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

import click

from peerway.jobs.asking import one, source_options


@click.command()
@click.argument("job", metavar="JOBID")
@click.option(
    "--out", required=True, type=click.Path(dir_okay=False, path_type=Path), help="The file to append to."
)
@click.option("--language", type=click.Choice(["en", "ru"]), default="en", show_default=True)
@source_options
def command(job: str, out: Path, language: str, data: Path, server: str | None) -> None:
    """Append the summary of a job to a file; run it as the job's user.

    In an epilog: `setpriv --reuid=$SLURM_JOB_UID --clear-groups peerway jobs summary $SLURM_JOB_ID --out
    FILE`.
    """
    from peerway.jobs.summary import summary

    found = one(data, server, job, None)
    if found is None:
        raise click.ClickException(f"there is no job {job} here, or it is not yours")
    text = summary(*found, time.time(), language)
    try:
        # A link or a pipe in a user's folder must not lead an epilog elsewhere.
        number = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise click.ClickException(f"{out} is not a plain file")
            file.write("\n" + text)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror or error}") from None
