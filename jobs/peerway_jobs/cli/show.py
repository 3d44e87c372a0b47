"""`peerway jobs show`: shows one job in the terminal."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path

import click

from peerway_common.printable import json_text
from peerway_common.terminal import say
from peerway_jobs.asking import known_run, language_option, source_options


@click.command()
@click.argument("job", metavar="JOBID")
@click.option(
    "--restart", type=int, metavar="N", help="Which run of a requeued job; 0: the first  [default: the last]"
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the evidence.")
@language_option
@source_options
def command(
    job: str, restart: int | None, as_json: bool, language: str, data: Path, server: str | None
) -> None:
    """Show what a job requested and used, what the rules found, and what to change."""
    from peerway_jobs.summary import summary

    known = known_run(data, server, job, restart)
    if known is None:
        raise click.ClickException(
            f"there is no job {job} here, or you may not see it; a job appears when it has begun. "
            "`peerway jobs list` lists your jobs"
        )
    if as_json:
        say(json_text({**asdict(known.run), "verdict": known.verdict, "final": known.final}, indent=2))
    else:
        say(summary(known.run, known.verdict, time.time(), language))
