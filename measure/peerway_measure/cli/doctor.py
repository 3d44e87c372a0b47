"""`peerway doctor`: which technologies work on this node, why others do not, and what to do about it."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from peerway_common.cli.numbers import Number
from peerway_common.cli.options import BadInput
from peerway_common.console import Terminal
from peerway_common.terminal import say
from peerway_measure.doctor import report_json
from peerway_measure.doctor.checks import examine
from peerway_measure.doctor.finding import Status
from peerway_measure.doctor.page import show
from peerway_measure.doctor.probes import gather
from peerway_measure.doctor.system import System


@click.command(
    "doctor", short_help="Report which GPUDirect technologies work on this node, and why the others do not."
)
@click.option("--json", "as_json", is_flag=True, help="Print all facts and findings as JSON.")
@click.option("--why", is_flag=True, help="Say for each finding why it matters.")
@click.option("--strict", is_flag=True, help="End with code 1 if there is a warning.")
@click.option(
    "--from",
    "saved",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Show a report that --json wrote to this file, perhaps on another node.",
)
@click.option(
    "--timeout",
    type=Number(0.1, 3600),
    default=10.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for the answer of each driver or program.",
)
def command(as_json: bool, why: bool, strict: bool, saved: Path | None, timeout: float) -> None:
    """Report which GPUDirect technologies work on this node, why the others do not, and what to do about it.

    Needs no GPU, no network and no special rights. Each line has a status: ok; off (could be switched on);
    warning; unknown; absent (not on this node). The exit code is 0 whatever is found, unless --strict is
    given.
    """
    try:
        facts = report_json.read(saved) if saved else gather(System(timeout=timeout))
    except OSError as error:
        raise BadInput(f"cannot read {saved}: {error.strerror or error}") from error
    except ValueError as error:
        raise BadInput(str(error)) from error
    findings = examine(facts)
    if as_json:
        say(report_json.to_json(facts, findings))
    else:
        show(Terminal(), facts, findings, why)
    if strict and any(finding.status is Status.WARNING for finding in findings):
        sys.exit(1)
