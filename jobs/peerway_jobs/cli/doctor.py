"""`peerway jobs doctor`: checks this node's agent or, with --data, the server."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from peerway_common.terminal import say
from peerway_jobs.cli.agent import settings_option
from peerway_jobs.server_folder import check_folder

if TYPE_CHECKING:
    from peerway_jobs.agent.checks import Diagnosis


@click.command("doctor")
@settings_option
@click.option(
    "--self-test",
    is_flag=True,
    help="Also run a short job on this node, and look for it in the spool and at the server.",
)
@click.option(
    "--data",
    type=click.Path(file_okay=False, readable=False, path_type=Path),
    help="Check the server that has this folder, in place of an agent; run it as the server's user.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON Lines.")
def command(file: Path, self_test: bool, data: Path | None, as_json: bool) -> None:
    """Check what the agent needs here: cgroups, prolog, GPUs, permissions, token, server and clocks.

    Run it as the agent's user while the agent runs. With --data it checks what a server needs instead: its
    database, the rules, the disk and Slurm. The exit code is 1 if something is broken.
    """
    if data and self_test:
        raise click.UsageError("--self-test checks an agent and --data a server: give only one")
    diagnoses = _of_server(data) if data else _of_node(file, self_test)
    for each in diagnoses:
        if as_json:
            say(json.dumps(asdict(each)))
            continue
        say(f"{each.state:<8} {each.check:<10} {each.observed}")
        if each.advice:
            say(f"{'':<20}{each.advice}")
    sys.exit(any(each.state == "broken" for each in diagnoses))


def _of_server(data: Path) -> list[Diagnosis]:
    from peerway_jobs.serve import checks

    check_folder(data)
    return list(checks.all_checks(data))


def _of_node(file: Path, self_test: bool) -> list[Diagnosis]:
    from peerway_jobs.agent import checks, settings
    from peerway_jobs.agent.self_test import run

    try:
        chosen = settings.read(file)
    except settings.BadSettings as error:
        raise click.ClickException(str(error)) from None
    diagnoses = list(checks.all_checks(chosen))
    if self_test:
        diagnoses.append(run(chosen))
    return diagnoses
