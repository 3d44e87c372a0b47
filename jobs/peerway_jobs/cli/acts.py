"""`peerway jobs acts`: lists what policies did."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import click

from peerway_common.cli.numbers import Whole
from peerway_common.console import table_console
from peerway_common.printable import json_text, printable
from peerway_common.terminal import say
from peerway_jobs.server_folder import data_option, monitor_at


@click.command()
@click.option("-n", "most", type=Whole(1), default=100, show_default=True, help="Maximum number of acts.")
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the evidence of each act.")
@click.option("--held", "only_held", is_flag=True, help="Only the jobs that a policy holds now.")
@data_option
def command(most: int, as_json: bool, only_held: bool, data: Path) -> None:
    """List what policies did, or would have done in their dry run, the newest first."""
    from rich.table import Table

    from peerway_jobs.store.acts import held, newest

    with monitor_at(data) as monitor:
        base = monitor.jobs.reader
        acts = held(base)[::-1][:most] if only_held else newest(base, most)
    if as_json:
        say(json_text([asdict(act) for act in acts], indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("time (UTC)", "policy", "act", "job", "user", "account", "dry run", "outcome"):
        table.add_column(name)
    for act in acts:
        time = datetime.fromtimestamp(act.at, UTC).strftime("%Y-%m-%d %H:%M:%S")
        dry = "yes" if act.dry else "no"
        texts = (time, act.policy, act.act, act.job, act.user, act.account, dry, act.outcome)
        table.add_row(*map(printable, texts))
    table_console().print(table)
    if only_held and acts:
        say(f"To release them: scontrol release {','.join(act.job for act in acts)}")
