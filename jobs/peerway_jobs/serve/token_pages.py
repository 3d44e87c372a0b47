"""The page of a person's tokens and of the choice to get mails."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from peerway_jobs.serve.dependencies import InPerson, LoggedIn, Server, Templates
from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.state import State

_SCOPES = ("jobs:read", "cluster:read")
ROUTER = APIRouter(include_in_schema=False, default_response_class=HTMLResponse, dependencies=[LoggedIn])


@ROUTER.get("/tokens")
def tokens(request: Request, server: Server, pages: Templates, viewer: InPerson) -> Response:
    """The viewer's tokens."""
    return _page(request, server, pages, viewer)


@ROUTER.post("/tokens")
def change_tokens(
    request: Request,
    server: Server,
    pages: Templates,
    viewer: InPerson,
    revoke: Annotated[str, Form(max_length=8)] = "",
    days: Annotated[int, Form(ge=1, le=3650)] = 90,
) -> Response:
    """Revoke a token, or make a new one, which is shown once."""
    access = server.access
    if revoke:
        access.people.revoke(viewer.name, revoke)
        access.note(request, viewer.name, "token revoked", revoke)
        return RedirectResponse("/tokens", 303)
    new = access.people.make_token(viewer.name, list(_SCOPES), server.monitor.clock(), days=days)
    access.note(request, viewer.name, "token made", " ".join(_SCOPES))
    return _page(request, server, pages, viewer, new)


@ROUTER.post("/notices")
def notices(server: Server, viewer: InPerson, mail: Annotated[bool, Form()] = False) -> Response:
    """Choose whether to get mails."""
    server.access.people.set_mail(viewer.name, mail)
    return RedirectResponse("/tokens", 303)


def _page(request: Request, server: State, pages: Pages, viewer: Viewer, new: str = "") -> Response:
    people = server.access.people
    return pages.show(
        request,
        "tokens.html.j2",
        viewer,
        tokens=people.tokens(viewer.name),
        new=new,
        mail=people.wants_mail(viewer.name),
    )
