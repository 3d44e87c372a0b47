"""`peerway jobs`: the monitor of a cluster's jobs. Each of its verbs is a file of this folder."""

from __future__ import annotations

import click

from peerway.cli.verbs import Verbs

VERBS = {
    "agent": "Measure this node's jobs and send what was measured to the server.",
    "serve": "Run the server: it stores what agents send, judges jobs, and serves the pages and the API.",
    "show": "Show what a job requested and used, what the rules say of it, and what to change.",
    "list": "List jobs, the newest first.",
    "top": "Show the running jobs that waste most.",
    "replay": "Judge past jobs by other rules, to see what would change.",
    "summary": "Append the summary of a job to a file, for an epilog.",
    "notices": "Show what the server would write to the owners of inefficient jobs now.",
    "user": "Add a person who may log in, or change one.",
    "token": "Make a token for an agent or for a program.",
    "doctor": "Check that this node has everything the agent needs.",
}


@click.command("jobs", cls=Verbs, package=__name__, verbs=VERBS)
def command() -> None:
    """Find the inefficient and wrongly submitted jobs of a Slurm cluster."""
