"""`peerway jobs top`: shows the running jobs that waste most."""

from __future__ import annotations

import time
from pathlib import Path

import click

from peerway_common.cli.numbers import Whole
from peerway_jobs.asking import several, source_options
from peerway_jobs.cli.list import tell
from peerway_jobs.store.lists import Filter


@click.command()
@click.option("--finished", is_flag=True, help="Jobs that finished in the last 7 days instead.")
@click.option("-n", "most", type=Whole(1, 500), default=20, show_default=True, help="Maximum number of jobs.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@source_options
def command(finished: bool, most: int, as_json: bool, data: Path, server: str | None) -> None:
    """Show the running jobs that waste most, by idle GPU-hours and core-hours."""
    state = "finished" if finished else "running"
    wanted = Filter(state=state, ran_since=time.time() - 7 * 86400 if finished else 0)
    tell(several(data, server, wanted, most, "wasted"), as_json, f"no {state} jobs")
