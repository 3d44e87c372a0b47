"""`peerway jobs`: the monitor of a cluster's jobs. Each of its verbs is a file of this folder."""

from __future__ import annotations

import click

from peerway.cli.verbs import Verbs

VERBS = {
    "agent": "Measure this node's jobs and send what was measured to the server.",
    "doctor": "Whether everything that the agent needs on this node is there and right.",
}


@click.command("jobs", cls=Verbs, package=__name__, verbs=VERBS)
def command() -> None:
    """Find the inefficient and wrongly started jobs of a Slurm cluster."""
