"""`peerway jobs`: the monitor of a cluster's jobs. Each of its verbs is a file of this folder."""

from __future__ import annotations

import click

from peerway.cli.verbs import Verbs

VERBS = {
    "agent": "Measure this node's jobs and send what was measured to the server.",
    "serve": "The server: takes what agents send, judges jobs, shows the pages and answers the API.",
    "show": "What a job had and used, what the rules say of it and what to change.",
    "list": "Jobs, the newest first.",
    "top": "The running jobs that waste most.",
    "replay": "What other rules would have said of past jobs.",
    "summary": "Append the summary of a job to a file, for an epilog.",
    "notices": "What the server would write to the owners of inefficient jobs now.",
    "user": "Add a person who may log in, or change one.",
    "token": "Make a token for an agent or for a program.",
    "doctor": "Whether everything that the agent needs on this node is there and right.",
}


@click.command("jobs", cls=Verbs, package=__name__, verbs=VERBS)
def command() -> None:
    """Find the inefficient and wrongly started jobs of a Slurm cluster."""
