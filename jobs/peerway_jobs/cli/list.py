"""`peerway jobs list`: lists jobs, the newest first."""

from __future__ import annotations

import getpass
import time
from dataclasses import asdict
from pathlib import Path

import click

from peerway_common.cli.numbers import Whole
from peerway_common.cli.options import parsed
from peerway_common.console import table_console
from peerway_common.printable import json_text
from peerway_common.terminal import say
from peerway_jobs.asking import several, source_options
from peerway_jobs.server_folder import parse_since
from peerway_jobs.store.lists import MOST, Filter
from peerway_jobs.store.runs import Run


@click.command()
@click.option("--user", metavar="NAME", help="Jobs of this user  [default: you]")
@click.option("--everyone", is_flag=True, help="Jobs of all users whose jobs you may see.")
@click.option("--account", default="", metavar="NAME", help="Only jobs of this account.")
@click.option("--inefficient", is_flag=True, help="Only jobs that the rules found inefficient.")
@click.option("--running", is_flag=True, help="Only running jobs.")
@click.option(
    "--since",
    callback=parsed(parse_since),
    metavar="TIME",
    help="Only jobs that started in this time up to now: 90s, 30m, 12h, 7d.",
)
@click.option(
    "-n", "most", type=Whole(1, MOST), default=50, show_default=True, help="Maximum number of jobs."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@source_options
def command(
    user: str | None,
    everyone: bool,
    account: str,
    inefficient: bool,
    running: bool,
    since: float | None,
    most: int,
    as_json: bool,
    data: Path,
    server: str | None,
) -> None:
    """List jobs, the newest first."""
    if user and everyone:
        raise click.UsageError("--user names one user, and --everyone means all: give one of the two")
    wanted = Filter(
        user="" if everyone else user or getpass.getuser(),
        account=account,
        state="running" if running else "",
        verdict="inefficient" if inefficient else "",
        since=time.time() - since if since else 0,
    )
    of = (
        f" of {wanted.user}; --everyone lists those of all users whose jobs you may see"
        if wanted.user
        else ""
    )
    tell(several(data, server, wanted, most, "started"), as_json, f"no such jobs{of}")


def tell(runs: list[Run], as_json: bool, none: str) -> None:
    """Print jobs as a table or as JSON; `none` is printed if there are none."""
    from rich.table import Table

    from peerway_jobs.rules.template import duration, hours, plain

    if as_json:
        say(json_text([{k: v for k, v in asdict(run).items() if k != "script"} for run in runs], indent=2))
        return
    if not runs:
        say(none, err=True)
        return
    table = Table(box=None, pad_edge=False)
    for name in (
        "job",
        "user",
        "name",
        "state",
        "elapsed",
        "cores",
        "GPUs",
        "CPU",
        "GPU",
        "idle GPU h",
        "verdict",
        "finding",
    ):
        table.add_column(name, no_wrap=name not in ("name", "finding"))
    now = time.time()
    for run in runs:
        table.add_row(
            run.job,
            run.user,
            run.name[:24],
            run.state,
            plain(duration(run.elapsed(now), "en")),
            f"{run.cores:g}",
            f"{run.gpus:g}",
            _share(run.cpu_efficiency),
            _share(run.gpu_efficiency) if run.gpus else "",
            plain(hours(run.idle_gpu_hours, "en")) if run.gpus else "",
            run.verdict,
            run.tag,
        )
    table_console().print(table)


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:.0f} %"
