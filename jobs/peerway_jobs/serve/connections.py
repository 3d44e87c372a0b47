"""Handling of connections: idle ones are closed, HEAD is answered like GET, and the client's address and
scheme are taken from trusted proxies.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from fastapi import HTTPException
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from peerway_jobs.frames import MOST_BODY

if TYPE_CHECKING:
    import ipaddress

HEAD_S = 20.0  # seconds for a request's header, from its first byte or the start of the connection
BODY_S = 60.0  # seconds between two parts of a body
LAST_ANSWER = {"Connection": "close"}  # the unread rest of a body would look like the next request
PEER = "peerway.peer"  # key in a scope: the address of the connection itself, whatever a proxy says


class PromptProtocol(H11Protocol):
    """uvicorn's HTTP protocol, but a request whose header does not arrive in time ends its connection."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Stop the timer once the header is complete; single bytes do not extend it."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Start the timer if part of the next request has already arrived."""
        super().on_response_complete()
        if self.conn.trailing_data[0]:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        super().connection_lost(exc)
        self._unwatch()

    def _watch(self) -> None:
        if self.conn.their_state is not h11.IDLE:
            self._unwatch()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.close)

    def _unwatch(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def settings(app: ASGIApp, cert: Path | None = None, key: Path | None = None, **more: Any) -> uvicorn.Config:
    """The configuration of uvicorn."""
    return uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # app.py trusts chosen proxies only
        ssl_certfile=cert,
        ssl_keyfile=key,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=65536,
        **more,
    )


class Bounded:
    """Limits the size of a body to an agent's largest POST, and the wait for each part of it to BODY_S.

    The limits apply to every request, because a body is read before its sender is known.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        taken, more = 0, scope["type"] == "http"

        async def bounded() -> Message:
            nonlocal taken, more
            if not more:
                return await receive()
            try:
                async with asyncio.timeout(BODY_S):
                    message = await receive()
            except TimeoutError:
                why = f"no part of the body came in {BODY_S:g} s"
                raise HTTPException(408, why, headers=LAST_ANSWER) from None
            more = message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > MOST_BODY:
                raise HTTPException(413, f"a body has at most {MOST_BODY:,} bytes", headers=LAST_ANSWER)
            return message

        await self._app(scope, bounded, send)


class Headed:
    """Adds headers to each answer and passes path, status and seconds of each request to `saw`.

    Starlette's decorator for this runs each request in tasks of its own, which costs an agent's POST more CPU
    time than its batch.
    """

    def __init__(
        self, app: ASGIApp, headers: Mapping[str, str], saw: Callable[[str, int, float], None]
    ) -> None:
        self._app, self._headers, self._saw = app, headers, saw

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun, path = time.monotonic(), scope["path"]

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._saw(path, message["status"], time.monotonic() - begun)
                headers = MutableHeaders(scope=message)
                headers.update(self._headers)
                if not path.startswith(("/static", "/plotly")):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        await self._app(scope, receive, headed)


class Heads:
    """Answers HEAD like GET; uvicorn leaves out the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


class Proxied:
    """Takes client and scheme from X-Forwarded-For and X-Forwarded-Proto, but only of trusted proxies."""

    def __init__(
        self, app: ASGIApp, proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]
    ) -> None:
        self._app = ProxyHeadersMiddleware(app, [str(each) for each in proxies])  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, PEER: scope["client"]}
        await self._app(scope, receive, send)  # type: ignore[arg-type]
