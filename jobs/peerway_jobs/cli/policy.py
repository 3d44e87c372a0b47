"""`peerway jobs policy`: shows what policies would do now."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from peerway_common.console import table_console
from peerway_common.printable import json_text, printable
from peerway_common.terminal import say
from peerway_jobs.server_folder import data_option, monitor_at


@click.command()
@click.argument("file", metavar="POLICIES", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="As JSON, with the evidence.")
@data_option
def command(file: Path, as_json: bool, data: Path) -> None:
    """Show what policies would do now about each running job with GPUs. This changes nothing."""
    from rich.table import Table

    from peerway_jobs.policies.consider import evidence_of, preview
    from peerway_jobs.policies.settings import BadPolicies, read

    try:
        policies = read(file)
    except BadPolicies as error:
        raise click.ClickException(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"cannot read {file}: {error.strerror or error}") from None
    rows: list[dict[str, Any]] = []
    with monitor_at(data) as monitor:
        for policy, run, exempt, case in preview(monitor, policies, time.time()):
            act = case.decision.act if case else ""
            rows.append({
                "policy": policy.name, "job": run.job, "restart": run.restart, "user": run.user,
                "account": run.account, "act": act, "why": exempt or (case.decision.why if case else ""),
                "dry": case.dry if case else True, "evidence": evidence_of(case) if case else {},
            })  # fmt: skip
    if as_json:
        say(json_text(rows, indent=2))
        return
    table = Table(box=None, pad_edge=False)
    for name in ("policy", "job", "user", "account", "would", "because"):
        table.add_column(name)
    for row in rows:
        idle = row["evidence"].get("idle_s")
        why = row["why"] or f"its GPUs have been idle for {idle:.0f} s"
        texts = (row["policy"], row["job"], row["user"], row["account"], row["act"] or "-", why)
        table.add_row(*(printable(str(text)) for text in texts))
    table_console().print(table)
    acting = sum(bool(row["act"]) for row in rows)
    say(f"{acting} of {len(rows)} would be acted on now")
