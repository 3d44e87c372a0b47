"""`peerway jobs doctor`: whether the whole chain from Slurm to the server works on this node."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

import click

from peerway.cli.jobs.agent import settings_option
from peerway.terminal import say


@click.command("doctor")
@settings_option
@click.option(
    "--self-test", is_flag=True, help="Also run a short job on this node, and find it in the spool."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
def command(file: Path, self_test: bool, as_json: bool) -> None:
    """Check what the agent needs here: cgroups, prolog, GPUs, rights, token, server and clocks.

    The exit code is 1 when something is broken. Run it as the agent's user, beside the agent.
    """
    from peerway.jobs.agent import checks, settings
    from peerway.jobs.agent.self_test import run

    try:
        chosen = settings.read(file)
    except settings.BadSettings as error:
        raise click.ClickException(str(error)) from None
    broken = False
    findings = list(checks.all_checks(chosen))
    if self_test:
        findings.append(run(chosen))
    for each in findings:
        broken = broken or each.state == "broken"
        if as_json:
            say(json.dumps(asdict(each)))
            continue
        say(f"{each.state:<8} {each.check:<10} {each.found}")
        if each.advice:
            say(f"{'':<20}{each.advice}")
    sys.exit(1 if broken else 0)
