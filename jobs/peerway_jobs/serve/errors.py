"""Answers for errors: JSON for the API, HTML for pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from fastapi import FastAPI, Request, Response
from fastapi.exception_handlers import http_exception_handler, request_validation_exception_handler
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from peerway_jobs.rules.load import BadRules
from peerway_jobs.serve.access import Access
from peerway_jobs.serve.dependencies import Login
from peerway_jobs.serve.logins import to_login
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.state import LOG
from peerway_jobs.store.samples import StoreFailed


def add_errors(app: FastAPI, pages: Pages, access: Access, report: Callable[[str, Exception], None]) -> None:
    """Register the error handlers; errors of the database are passed to `report`."""

    def page(request: Request, status: int, why: str) -> Response:
        try:
            viewer = access.viewer(request)
        except (HTTPException, sqlite3.Error):  # or the database does not answer
            viewer = None
        if status == 404:
            why = ""
        return pages.show(request, "error.html.j2", viewer, status, code=status, why=why)

    @app.exception_handler(Login)
    async def login(request: Request, _: Exception) -> Response:
        return to_login(request)

    @app.exception_handler(HTTPException)
    async def refused(request: Request, error: HTTPException) -> Response:
        if request.url.path.startswith("/api/"):
            return await http_exception_handler(request, error)
        answer = page(request, error.status_code, str(error.detail))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(ClientDisconnect)
    async def gone(_request: Request, _error: ClientDisconnect) -> Response:
        """Whoever sent the request ended in the middle of it: nobody reads the answer."""
        return Response(status_code=400)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        if request.url.path.startswith("/api/"):
            return await request_validation_exception_handler(request, error)
        wrong = "; ".join(f"{'.'.join(map(str, each['loc'][1:]))}: {each['msg']}" for each in error.errors())
        return page(request, 404 if request.url.path.startswith("/jobs/") else 422, wrong)

    @app.exception_handler(sqlite3.DatabaseError)
    async def unwritable(request: Request, error: sqlite3.DatabaseError) -> Response:
        report("answering", error)
        brief = getattr(error, "brief", error)
        why = f"the server cannot write or read its database: {brief}; an administrator has to look"
        return await refused(request, HTTPException(503, why))

    @app.exception_handler(Exception)
    async def defect(request: Request, _: Exception) -> Response:  # the server logs it with its traceback
        why = "the server failed to answer; its log says why, and an administrator has to look"
        return await refused(request, HTTPException(500, why))

    @app.exception_handler(StoreFailed)
    async def away(request: Request, error: StoreFailed) -> Response:
        LOG.warning("%s", error)
        why = "the database of samples does not answer; nothing is lost, try again later"
        return await refused(request, HTTPException(503, why))

    @app.exception_handler(BadRules)
    async def bad_rules(request: Request, error: BadRules) -> Response:
        return await http_exception_handler(request, HTTPException(422, str(error)))
