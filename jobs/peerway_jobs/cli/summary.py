"""`peerway jobs summary`: appends a job's summary to its output, for an epilog."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.cli.options import parsed
from peerway_common.terminal import say
from peerway_jobs.asking import KnownRun, NotNow, known_run, language_option, of_node, source_options
from peerway_jobs.server_folder import parse_since

if TYPE_CHECKING:
    from peerway_jobs.agent.settings import Settings

_AGAIN_S = 5.0  # between two questions


@click.command()
@click.argument("job", metavar="JOBID")
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The file to append to; a link is not followed  [default: the terminal]",
)
@click.option(
    "--wait",
    callback=parsed(parse_since),
    metavar="TIME",
    help="Wait at most this long for the final verdict: 30s, 2m. Then print what is known.  "
    "[default: do not wait]",
)
@click.option(
    "--agent",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Ask with the token of this node's agent, whose settings are in FILE. Nothing is printed or "
    "written on other nodes than the job's first.",
)
@language_option
@source_options
def command(
    job: str,
    out: Path | None,
    wait: float | None,
    agent: Path | None,
    language: str,
    data: Path,
    server: str | None,
) -> None:
    """Print the summary of a job, or append it to a file.

    slurm/summary.sh, beside prolog.sh, calls it in an epilog.
    """
    from peerway_jobs.summary import summary

    settings = _settings(agent) if agent else None
    end = time.monotonic() + (wait or 0)
    while True:
        remaining = end - time.monotonic()
        try:
            known = _of_node(settings, job) if settings else known_run(data, server, job, None)
        except NotNow:
            if remaining <= 0:
                raise
            known = None
        if remaining <= 0 or (known and known.final):
            break
        time.sleep(min(_AGAIN_S, remaining))
    if known is None:
        raise click.ClickException(f"there is no job {job} here, or you may not see it")
    if settings and not _is_first(settings.node, known):
        return
    text = summary(known.run, known.verdict, time.time(), language)
    if out:
        _append(out, text)
    else:
        say(text)


def _settings(file: Path) -> Settings:
    """Read the agent's settings. Root then becomes the owner of the token, since the rest needs no
    privilege.
    """
    from peerway_jobs.agent.settings import BadSettings, read

    try:
        settings = read(file)
        if not settings.server:
            raise BadSettings(f"{file} names no server")
        owner = os.stat(settings.token_file)  # noqa: PTH116
    except (BadSettings, OSError) as error:
        raise click.ClickException(str(error)) from None
    if os.geteuid() == 0 and owner.st_uid:
        os.setgroups([])
        os.setgid(owner.st_gid)
        os.setuid(owner.st_uid)
    return settings


def _of_node(settings: Settings, job: str) -> KnownRun | None:
    from peerway_jobs.agent.settings import BadSettings, read_token

    try:
        token = read_token(Path(settings.token_file))
    except BadSettings as error:
        raise click.ClickException(str(error)) from None
    return of_node(settings.server, job, token, settings.ca_file)


def _is_first(node: str, known: KnownRun) -> bool:
    return node == min(known.nodes)


def _append(out: Path, text: str) -> None:
    """Append to the file, without following a link or a pipe that a user put there."""
    try:
        number = os.open(out, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
        with os.fdopen(number, "w", encoding="utf-8") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise click.ClickException(f"{out} is not a plain file")
            file.write("\n" + text)
    except OSError as error:
        raise click.ClickException(f"cannot write {out}: {error.strerror or error}") from None
