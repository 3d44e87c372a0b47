"""`peerway jobs show`: one job in the terminal."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import click

from peerway.jobs.asking import one, source_options
from peerway.printable import json_text
from peerway.terminal import say


@click.command()
@click.argument("job", metavar="JOBID")
@click.option("--restart", type=click.IntRange(0), help="Which run of a requeued job  [default: the last]")
@click.option("--json", "as_json", is_flag=True, help="Everything that is known, with the evidence.")
@click.option("--language", type=click.Choice(["en", "ru"]), default="en", show_default=True)
@source_options
def command(
    job: str, restart: int | None, as_json: bool, language: str, data: Path, server: str | None
) -> None:
    """Show what a job had and used, what the rules say of it and what to change."""
    from peerway.jobs.summary import summary

    found = one(data, server, job, restart)
    if found is None:
        raise click.ClickException(
            f"there is no job {job} here, or it is not yours; `peerway jobs list` shows some"
        )
    run, verdict = found
    if as_json:
        say(json_text({**asdict(run), "verdict": verdict}, indent=2))
    else:
        say(summary(run, verdict, time.time(), language))
