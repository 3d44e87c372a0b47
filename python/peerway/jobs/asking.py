"""Where a verb gets jobs from: the database in the server's folder, or the server's API with a token."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click

from peerway.jobs.places import data_option, monitor_at
from peerway.jobs.store.lists import Filter
from peerway.jobs.store.runs import Run

TIMEOUT_S = 30
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def source_options(function: Decorated) -> Decorated:
    """Give --server and --data."""
    function = click.option(
        "--server",
        envvar="PEERWAY_JOBS_SERVER",
        metavar="URL",
        help="Ask this server, with the token in PEERWAY_JOBS_TOKEN  [default: the folder of --data]",
    )(function)
    return data_option(function)


def one(
    data: Path, server: str | None, job: str, restart: int | None
) -> tuple[Run, dict[str, Any] | None] | None:
    """A run and its verdict; None where there is no such job."""
    if not job.isascii() or not job.isdigit():
        raise click.ClickException(
            f"a job is a number such as 4242, not {job!r}; of an array's job `scontrol show job {job}` has "
            "it as JobId"
        )
    if server:
        query = {} if restart is None else {"restart": restart}
        found = _ask(server, f"jobs/{urllib.parse.quote(job, safe='')}", query)
        return None if found is None else (_run(found), found["verdict"])
    from peerway.jobs.store.verdicts import verdict_of

    with monitor_at(data) as monitor:
        run = monitor.jobs.run(job, restart)
        return None if run is None else (run, verdict_of(monitor.jobs, run))


def several(data: Path, server: str | None, wanted: Filter, most: int, order: str) -> list[Run]:
    """The jobs that are asked for."""
    if server:
        query = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
        found = _ask(server, "jobs", {**{k: v for k, v in query.items() if v}, "most": most, "order": order})
        return [_run(each) for each in found or []]
    from peerway.jobs.store.lists import listed

    with monitor_at(data) as monitor:
        return listed(monitor.jobs.reader, ("1", []), wanted, most=most, order=order)


def _run(found: dict[str, Any]) -> Run:
    names = {field.name for field in fields(Run)}
    values = {key: value for key, value in found.items() if key in names}
    if not isinstance(values.get("verdict"), str):
        values["verdict"] = (found.get("verdict") or {}).get("state", "waiting")
    return Run(**values)


def _ask(server: str, path: str, query: dict[str, Any]) -> Any:
    if not server.startswith(("https://", "http://")):
        raise click.ClickException(f"a server is an address such as https://jobs.example.org, not {server!r}")
    url = f"{server.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    token = os.environ.get("PEERWAY_JOBS_TOKEN", "")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            _refused(server, token, error)
            return None
    except (OSError, ValueError) as error:
        why = getattr(error, "reason", error)  # of what urllib wraps
        raise click.ClickException(f"cannot ask {server}: {getattr(why, 'strerror', None) or why}") from None


def _refused(server: str, token: str, error: urllib.error.HTTPError) -> None:
    """Return for what is not there. Raises click.ClickException for all else."""
    if error.code == 404:
        return
    if error.code == 401:
        raise click.ClickException(
            f"{server} does not know the token in PEERWAY_JOBS_TOKEN, or it has ended: make one on the page "
            "Tokens"
            if token
            else "PEERWAY_JOBS_TOKEN is not set: make a token on the page Tokens"
        ) from None
    detail = error.read(1000).decode(errors="replace")
    raise click.ClickException(f"{server} answered {error.code}: {detail}") from None
