"""Connections: none stays open for a request that does not come, HEAD is answered as GET, and what a trusted
proxy says of whom it stands for is heeded.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h11
import uvicorn
from fastapi import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from peerway_jobs.frames import MOST_BODY

if TYPE_CHECKING:
    import ipaddress

HEAD_S = 20.0  # seconds for the head of a request, from its first byte or the connection's begin
BODY_S = 60.0  # seconds between two parts of a body
LAST_ANSWER = {"Connection": "close"}  # what was not read of a body cannot be told from a next request
PEER = "peerway.peer"  # of a scope: the address that the connection comes from, whatever a proxy says


class PromptProtocol(H11Protocol):
    """HTTP as uvicorn has it; a request whose head does not come in time ends its connection."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Give the client its time."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A byte now and then gives no more time."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Half of the next request may be here already."""
        super().on_response_complete()
        if self.conn.trailing_data[0]:
            self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget it."""
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
    """How the server listens."""
    return uvicorn.Config(
        app,
        http=PromptProtocol,
        ws="none",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,  # app.py heeds those of trusted proxies
        ssl_certfile=cert,
        ssl_keyfile=key,
        timeout_keep_alive=75,
        h11_max_incomplete_event_size=65536,
        **more,
    )


class Bounded:
    """Takes no more of a request than the largest POST of an agent has, and waits no longer for a part of it
    than BODY_S: a body is read before it is known who sent it.
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
                message = await asyncio.wait_for(receive(), BODY_S)
            except TimeoutError:
                why = f"no part of the body came in {BODY_S:g} s"
                raise HTTPException(408, why, headers=LAST_ANSWER) from None
            more = message.get("more_body", False)
            taken += len(message.get("body", b""))
            if taken > MOST_BODY:
                raise HTTPException(413, f"a body has at most {MOST_BODY:,} bytes", headers=LAST_ANSWER)
            return message

        await self._app(scope, bounded, send)


class Heads:
    """Answers HEAD as GET, without the body; uvicorn leaves that out."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] == "HEAD":
            scope = {**scope, "method": "GET"}
        await self._app(scope, receive, send)


class Proxied:
    """Takes client and scheme from the headers X-Forwarded-For and -Proto of trusted proxies alone."""

    def __init__(
        self, app: ASGIApp, proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]
    ) -> None:
        self._app = ProxyHeadersMiddleware(app, [str(each) for each in proxies])  # type: ignore[arg-type]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, PEER: scope["client"]}
        await self._app(scope, receive, send)  # type: ignore[arg-type]
