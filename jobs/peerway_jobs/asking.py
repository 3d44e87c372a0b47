"""Gets jobs for the commands: from the database in the server's folder, or by the server's API with a
token.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from peerway_common.printable import printable, shortened
from peerway_jobs.address import is_address, is_open, stays_here
from peerway_jobs.answered import NotOurs, nodes_of, run_of, verdict_of_run
from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.server_folder import data_option, monitor_at
from peerway_jobs.store.lists import Filter
from peerway_jobs.store.runs import Run

TIMEOUT_S = 30
_NO_SUCH = object()  # the answer when there is no such job
_NOT_OURS = "none of a jobs server; give the address of its pages, as https://jobs.example.org"
Decorated = TypeVar("Decorated", bound=Callable[..., Any])


def source_options(function: Decorated) -> Decorated:
    """Add the options --server and --data to a command."""
    function = click.option(
        "--server",
        envvar="PEERWAY_JOBS_SERVER",
        show_envvar=True,
        metavar="URL",
        help="Ask this server, with the token in PEERWAY_JOBS_TOKEN  [default: the folder of --data]",
    )(function)
    return data_option(function)


def language_option(function: Decorated) -> Decorated:
    """Add the option --language to a command."""
    return click.option(
        "--language",
        type=click.Choice(LANGUAGES),
        default=LANGUAGES[0],
        show_default=True,
        help="The language of the findings.",
    )(function)


class NotNow(click.ClickException):
    """The server did not answer, but may answer later."""


@dataclass(frozen=True)
class KnownRun:
    """A run and its verdict. Only agents are given `nodes`."""

    run: Run
    verdict: dict[str, Any] | None
    final: bool  # the verdict covers the whole run
    nodes: tuple[str, ...] = ()


def known_run(data: Path, server: str | None, job: str, restart: int | None) -> KnownRun | None:
    """A run and its verdict; None if there is no such job. Raises click.ClickException."""
    _check(job)
    if server:
        query = {} if restart is None else {"restart": restart}
        return _known_run(server, _ask(server, f"jobs/{job}", query))
    from peerway_jobs.store.pending import is_final
    from peerway_jobs.verdicts import verdict_of

    with monitor_at(data, takes_server=True) as monitor:
        run = monitor.jobs.run(job, restart)
        if run is None:
            return None
        return KnownRun(run, verdict_of(monitor.jobs, run), is_final(monitor.jobs, run))


def of_node(servers: str, job: str, token: str, ca_file: str) -> KnownRun | None:
    """A run of this node, asked with its agent's token; None if there is no such job. Of several servers, the
    first that answers is asked.

    Raises NotNow if the server may answer later, also if its answer names no nodes, as that of something
    else at this address; click.ClickException for other errors.
    """
    _check(job)
    context = _context(ca_file)
    *others, last = servers.split()
    for server in others:
        with suppress(NotNow):
            return _of_node(server, job, token, context)
    return _of_node(last, job, token, context)


def _of_node(server: str, job: str, token: str, context: ssl.SSLContext) -> KnownRun | None:
    known = _known_run(server, _ask(server, f"agent/jobs/{job}", {}, token, context))
    if known and not known.nodes:
        _not_ours(server)
    return known


def with_token(server: str, job: str, token: str, ca_file: str) -> KnownRun | None:
    """A run, asked with the token of a person; None if there is no such job, or the person may not see it.

    Raises NotNow if the server may answer later, click.ClickException for other errors.
    """
    _check(job)
    return _known_run(server, _ask(server, f"jobs/{job}", {}, token, _context(ca_file)))


def _context(ca_file: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file or None)
    except OSError as error:
        raise click.ClickException(str(error)) from None


def _check(job: str) -> None:
    if re.fullmatch(r"[0-9]{1,10}(_[0-9]{1,10})?", job) is None:
        raise click.ClickException(f"a job is a number such as 4242, or 4242_7 of an array, not {job!r}")


def _known_run(server: str, answer: Any) -> KnownRun | None:
    if answer is _NO_SUCH:
        return None
    try:
        return KnownRun(run_of(answer), *verdict_of_run(answer), nodes_of(answer))
    except NotOurs:
        _not_ours(server)


def several(data: Path, server: str | None, wanted: Filter, most: int, order: str) -> list[Run]:
    """The runs that `wanted` selects, at most `most`, in this order. Raises click.ClickException."""
    if server:
        query = {field.name: getattr(wanted, field.name) for field in fields(wanted)}
        answer = _ask(server, "jobs", {**{k: v for k, v in query.items() if v}, "most": most, "order": order})
        if answer is _NO_SUCH or not isinstance(answer, list):
            _not_ours(server)
        try:
            return [run_of(each) for each in answer]
        except NotOurs:
            _not_ours(server)
    from peerway_jobs.store.lists import listed

    with monitor_at(data, takes_server=True) as monitor:
        return listed(monitor.jobs.reader, ("TRUE", []), wanted, most=most, order=order)[0]


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, because the token is meant only for the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        """Return None, so that urllib raises HTTPError and `_refused` reports it."""


def _opener(server: str, context: ssl.SSLContext | None) -> urllib.request.OpenerDirector:
    handlers: list[urllib.request.BaseHandler] = [_Stays(), urllib.request.HTTPSHandler(context=context)]
    if stays_here(server):
        handlers.append(urllib.request.ProxyHandler({}))  # a proxy would be another host
    return urllib.request.build_opener(*handlers)


def _ask(
    server: str,
    path: str,
    query: dict[str, Any],
    token: str | None = None,
    context: ssl.SSLContext | None = None,
) -> Any:
    if not is_address(server):
        raise click.ClickException(
            f"--server takes an address such as https://jobs.example.org, not {server!r}"
        )
    if is_open(server):
        raise click.ClickException(
            f"--server {server!r} would send the token in PEERWAY_JOBS_TOKEN unencrypted; use https://"
        )
    url = f"{server.rstrip('/')}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    if token is None:
        token = os.environ.get("PEERWAY_JOBS_TOKEN", "")
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
    try:
        with _opener(server, context).open(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            _refused(server, token, error)
            return _NO_SUCH
    except (json.JSONDecodeError, UnicodeDecodeError):
        _not_ours(server)
    except (OSError, ValueError, http.client.HTTPException) as error:  # HTTPException: the answer broke off
        why = getattr(error, "reason", error)  # what urllib wrapped
        raise NotNow(
            f"cannot ask {server}: {getattr(why, 'strerror', None) or why}; "
            "--server or PEERWAY_JOBS_SERVER names another"
        ) from None


def _not_ours(server: str) -> NoReturn:
    raise NotNow(f"cannot ask {server}: its answer is {_NOT_OURS}") from None


def _detail(text: str) -> str:
    """The server's explanation of an error, printable."""
    try:
        detail = json.loads(text)["detail"]
        wrong = (
            detail if isinstance(detail, str) else "; ".join(f"{e['loc'][-1]}: {e['msg']}" for e in detail)
        )
    except (ValueError, KeyError, TypeError, IndexError):
        wrong = text
    return printable(shortened(wrong, 500))


def _refused(server: str, token: str, error: urllib.error.HTTPError) -> None:
    """Return if the server says that there is no such job; raise click.ClickException for every other
    error.
    """
    if error.code == 404:
        if error.headers.get_content_type() == "application/json":
            return
        raise click.ClickException(f"cannot ask {server}: its answer (404) is {_NOT_OURS}") from None
    if 300 <= error.code < 400:
        where = printable(shortened(error.headers.get("Location", "nowhere"), 500))
        raise click.ClickException(
            f"{server} points to {where}, and the token is not sent on: name that server with --server"
        ) from None
    if error.code == 401:
        raise click.ClickException(
            f"{server} does not accept the token in PEERWAY_JOBS_TOKEN, or it has expired: make one on the "
            f"page {server.rstrip('/')}/tokens"
            if token
            else f"PEERWAY_JOBS_TOKEN is not set: make a token on the page {server.rstrip('/')}/tokens"
        ) from None
    detail = _detail(error.read(10_000).decode(errors="replace"))
    kind = NotNow if error.code >= 500 else click.ClickException
    raise kind(f"{server} answered {error.code}: {detail}") from None
