"""How people come in and go: a password, a provider of OpenID Connect; and the language that they choose."""

from __future__ import annotations

import math
from typing import Annotated
from urllib.parse import quote, unquote

from fastapi import APIRouter, Form, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse

from peerway_jobs.rules.template import LANGUAGES
from peerway_jobs.serve.access import COOKIE, check_same_site
from peerway_jobs.serve.attempts import Attempts
from peerway_jobs.serve.oidc import LoginFailed, Provider
from peerway_jobs.serve.people import SESSION_SECONDS
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.state import State

_STATE = "peerway_login"
_MOST_ASKED = 1000
_ASKED = "peerway_asked"  # the page that was asked for before the login


class Login(Exception):
    """Nobody is logged in."""


def to_login(request: Request) -> Response:
    """Send whoever is not logged in to do so; afterwards they get the page that they asked for, such as that
    of a job whose link is in a mail.
    """
    response = RedirectResponse("/login", 303)
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    if request.method == "GET" and asked != "/" and len(asked) <= _MOST_ASKED:
        secure = request.url.scheme == "https"
        response.set_cookie(_ASKED, quote(asked), max_age=600, httponly=True, samesite="lax", secure=secure)
    return response


def _is_inside(place: str) -> bool:
    """Whether this is a page of this server."""
    return place.startswith("/") and not place.startswith(("//", "/\\")) and place.isprintable()


def add_logins(html: APIRouter, pages: Pages, state: State, provider: Provider | None, secure: bool) -> None:  # noqa: C901
    """The routes of logging in and out."""
    attempts, people, clock = Attempts(), state.people, state.monitor.clock

    def is_secure(request: Request) -> bool:
        return secure or request.url.scheme == "https"  # also where a trusted proxy has TLS

    def entered(request: Request, name: str) -> Response:
        state.access.note(request, name, "logged in")
        asked = unquote(request.cookies.get(_ASKED, ""))
        response = RedirectResponse(asked if _is_inside(asked) else "/jobs", 303)
        response.delete_cookie(_ASKED)
        response.set_cookie(
            COOKIE,
            people.begin(name, clock()),
            max_age=int(SESSION_SECONDS),
            httponly=True,
            samesite="lax",
            secure=is_secure(request),
        )
        return response

    @html.get("/login")
    def form(request: Request) -> Response:
        return pages.show(request, "login.html.j2", None, error="", wait_s=0)

    @html.post("/login")
    def login(
        request: Request,
        name: Annotated[str, Form(max_length=64)],
        password: Annotated[str, Form(max_length=1024)],
    ) -> Response:
        check_same_site(request)
        peer = request.client.host if request.client else ""
        if wait := attempts.wait_s(name, peer):
            seconds = math.ceil(wait)
            page = pages.show(request, "login.html.j2", None, 429, error="too_many_logins", wait_s=seconds)
            page.headers["Retry-After"] = str(seconds)
            return page
        with attempts.checks:
            known = people.check(name, password)
        if not known:
            attempts.failed(name, peer)
            state.access.note(request, name, "wrong password")
            return pages.show(request, "login.html.j2", None, 401, error="wrong_login", wait_s=0)
        attempts.succeeded(name, peer)
        return entered(request, name)

    @html.post("/logout")
    def logout(request: Request) -> Response:
        check_same_site(request)
        if viewer := state.access.viewer(request):
            state.access.note(request, viewer.name, "logged out")
        people.end(request.cookies.get(COOKIE, ""))
        response = RedirectResponse("/login", 303)
        response.delete_cookie(COOKIE)
        return response

    @html.post("/language")
    def language(
        request: Request, to: Annotated[str, Form(max_length=2)], back: Annotated[str, Form(max_length=200)]
    ) -> Response:
        check_same_site(request)
        response = RedirectResponse(back if _is_inside(back) else "/jobs", 303)
        if to in LANGUAGES:
            response.set_cookie(
                "peerway_language", to, max_age=365 * 86400, samesite="lax", secure=is_secure(request)
            )
        return response

    if provider is None:
        return

    @html.get("/oidc/start")
    async def oidc_start(request: Request) -> Response:
        try:
            url, secret = await provider.start(clock())
        except LoginFailed as error:
            raise HTTPException(503, str(error)) from None
        response = RedirectResponse(url, 303)
        response.set_cookie(
            _STATE, secret, max_age=600, httponly=True, samesite="lax", secure=is_secure(request)
        )
        return response

    @html.get("/oidc/back")
    async def oidc_back(request: Request, state: Annotated[str, Query(max_length=200)] = "") -> Response:
        try:
            name = await provider.finish(str(request.url), state, request.cookies.get(_STATE, ""))
        except LoginFailed as error:
            raise HTTPException(403, str(error)) from None
        return entered(request, name)
