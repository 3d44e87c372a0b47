"""`peerway jobs`: the monitor of a cluster's jobs. Each file of this folder is one of its commands."""

from __future__ import annotations

import click

from peerway_common.cli.verbs import Verbs, in_package

VERBS = {
    "agent": "Measure this node's jobs and send the measurements to the server.",
    "serve": "Run the server: it stores what agents send, judges jobs, and serves the pages and the API.",
    "show": "Show what a job requested and used, what the rules found, and what to change.",
    "list": "List jobs, the newest first.",
    "top": "Show the running jobs that waste most.",
    "usage": "Write allocated hours by application and node type, for `peerway worth`.",
    "replay": "Judge past jobs by other rules, to see what would change.",
    "summary": "Print the summary of a job, or append it to a file, from an epilog.",
    "notices": "Show the mails, or the messages to webhooks, that the server would now send.",
    "slurm-mail": "Send one of Slurm's mails, with the job's summary: Slurm's MailProg.",
    "policy": "Show what policies would do now.",
    "acts": "List what policies did.",
    "history": "Import past jobs from sacct, Jobstats and Prometheus.",
    "backup": "Save everything of a server in a new folder.",
    "restore": "Fill an empty server's folder from a backup.",
    "migrate": "Move the jobs of a server to PostgreSQL, or back.",
    "upgrade": "Migrate a server's database to the installed version, after a backup.",
    "user": "Add a person who may log in, or change one.",
    "token": "Make a token for an agent or for a program.",
    "doctor": "Check that this node, or the server, has everything it needs.",
}


@click.command("jobs", cls=Verbs, verbs=in_package(__name__, VERBS))
def command() -> None:
    """Find the inefficient and wrongly submitted jobs of a Slurm cluster."""
