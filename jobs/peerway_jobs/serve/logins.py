"""Login by password or OpenID Connect, logout, and the choice of a language."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.serve.access import COOKIE, check_same_site
from peerway_jobs.serve.attempts import Attempts
from peerway_jobs.serve.dependencies import Server, Templates
from peerway_jobs.serve.oidc import LoginFailed, Provider
from peerway_jobs.serve.people import SESSION_SECONDS
from peerway_jobs.serve.state import State

_STATE = "peerway_login"
_MOST_PATH = 1000
_PATH = "peerway_asked"  # cookie: the page that was requested before the login
ROUTER = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)
OF_PROVIDER = APIRouter(include_in_schema=False, default_response_class=HTMLResponse)  # only with a provider


@dataclass
class Logins:
    """How people log in at this server. `secure`: send cookies only over TLS."""

    provider: Provider | None
    secure: bool
    attempts: Attempts = field(default_factory=Attempts)

    def is_secure(self, request: Request) -> bool:
        """Whether a cookie for this client is sent over TLS only, also if a trusted proxy has TLS."""
        return self.secure or request.url.scheme == "https"


async def _settings(request: Request) -> Logins:
    logins: Logins = request.app.state.logins
    return logins


async def _provider(request: Request) -> Provider:
    provider: Provider = request.app.state.logins.provider
    return provider


Settings = Annotated[Logins, Depends(_settings)]
OpenId = Annotated[Provider, Depends(_provider)]


def to_login(request: Request) -> Response:
    """Redirect to the login, and remember the requested page (such as a job linked in a mail) for
    afterwards.
    """
    response = RedirectResponse("/login", 303)
    path = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method == "GET" and path != "/" and len(path) <= _MOST_PATH:
        secure = request.url.scheme == "https"
        response.set_cookie(_PATH, quote(path), max_age=600, httponly=True, samesite="lax", secure=secure)
    return response


def _is_inside(place: str) -> bool:
    """Whether this is a path on this server."""
    return place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable()


def _begin_session(request: Request, server: State, logins: Logins, name: str) -> Response:
    server.access.note(request, name, "logged in")
    path = unquote(request.cookies.get(_PATH, ""))
    response = RedirectResponse(path if _is_inside(path) else "/jobs", 303)
    response.delete_cookie(_PATH)
    response.set_cookie(
        COOKIE,
        server.people.begin(name, server.monitor.clock()),
        max_age=int(SESSION_SECONDS),
        httponly=True,
        samesite="lax",
        secure=logins.is_secure(request),
    )
    return response


@ROUTER.get("/login")
def form(request: Request, pages: Templates) -> Response:
    """The login form."""
    return pages.show(request, "login.html.j2", None, error="", wait_s=0)


@ROUTER.post("/login")
def login(
    request: Request,
    server: Server,
    pages: Templates,
    logins: Settings,
    name: Annotated[str, Form(max_length=64)],
    password: Annotated[str, Form(max_length=1024)],
) -> Response:
    """Begin a session if the password is right."""
    check_same_site(request)
    attempts = logins.attempts
    peer = request.client.host if request.client else ""
    if wait := attempts.wait_s(name, peer):
        seconds = math.ceil(wait)
        page = pages.show(request, "login.html.j2", None, 429, error="too_many_logins", wait_s=seconds)
        page.headers["Retry-After"] = str(seconds)
        return page
    with attempts.checks:
        known = server.people.check(name, password)
    if not known:
        attempts.failed(name, peer)
        server.access.note(request, name, "wrong password")
        return pages.show(request, "login.html.j2", None, 401, error="wrong_login", wait_s=0)
    attempts.succeeded(name, peer)
    return _begin_session(request, server, logins, name)


@ROUTER.post("/logout")
def logout(request: Request, server: Server) -> Response:
    """End the session."""
    check_same_site(request)
    if viewer := server.access.viewer(request):
        server.access.note(request, viewer.name, "logged out")
    server.people.end(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/login", 303)
    response.delete_cookie(COOKIE)
    return response


@ROUTER.post("/language")
def language(
    request: Request,
    logins: Settings,
    to: Annotated[str, Form(max_length=2)],
    back: Annotated[str, Form(max_length=200)],
) -> Response:
    """Choose a language."""
    check_same_site(request)
    response = RedirectResponse(back if _is_inside(back) else "/jobs", 303)
    if to in LANGUAGES:
        response.set_cookie(
            "peerway_language", to, max_age=365 * 86400, samesite="lax", secure=logins.is_secure(request)
        )
    return response


@OF_PROVIDER.get("/oidc/start")
async def oidc_start(request: Request, server: Server, logins: Settings, provider: OpenId) -> Response:
    """Redirect to the provider."""
    try:
        url, secret = await provider.start(server.monitor.clock())
    except LoginFailed as error:
        raise HTTPException(503, str(error)) from None
    response = RedirectResponse(url, 303)
    response.set_cookie(
        _STATE, secret, max_age=600, httponly=True, samesite="lax", secure=logins.is_secure(request)
    )
    return response


@OF_PROVIDER.get("/oidc/back")
async def oidc_back(
    request: Request,
    server: Server,
    logins: Settings,
    provider: OpenId,
    state: Annotated[str, Query(max_length=200)] = "",
) -> Response:
    """Handle the return from the provider."""
    try:
        name = await provider.finish(str(request.url), state, request.cookies.get(_STATE, ""))
    except LoginFailed as error:
        raise HTTPException(403, str(error)) from None
    return _begin_session(request, server, logins, name)
