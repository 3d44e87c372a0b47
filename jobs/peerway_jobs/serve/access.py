"""Identifies who sent a request: by token (agent or person), by session cookie, or by a portal's header."""

from __future__ import annotations

import ipaddress
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.agent_tokens import AgentTokens
from peerway_jobs.serve.connections import PEER
from peerway_jobs.serve.people import People, Viewer
from peerway_jobs.store.audit import is_noted, note
from peerway_jobs.store.disk import DiskFailed

COOKIE = "peerway_session"
_BY_PORTAL = ("logged in", "portal")  # action and detail
_DAY_S = 86_400.0
_MOST_VISITORS = 20_000  # (name, address) pairs in memory; others are looked up in the log each time
_SAFE = ("GET", "HEAD", "OPTIONS")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Portal:
    """A portal that logs people in and names them in a header; requests from other addresses are ignored."""

    header: str
    proxies: tuple[Network, ...]

    def name(self, request: Request) -> str | None:
        """The name in the portal's header; None if the request does not come from the portal."""
        client = request.scope.get(PEER) or request.scope.get("client")
        try:
            peer = ipaddress.ip_address(client[0]) if client else None
        except ValueError:
            return None
        if peer is None or not any(peer in network for network in self.proxies):
            return None
        names = request.headers.getlist(self.header)
        return names[0] if len(names) == 1 and 0 < len(names[0]) <= 64 and names[0].isprintable() else None


class Access:
    """Checks of a request's sender, for the routes."""

    def __init__(self, monitor: Monitor, people: People, portal: Portal | None) -> None:
        self._monitor, self.people, self._portal = monitor, people, portal
        self._agents = AgentTokens(people)
        self._lock = threading.Lock()
        self._day = 0.0
        self._visitors: set[tuple[str, str]] = set()  # (name, address) that the portal let in on that day

    def viewer(self, request: Request) -> Viewer | None:
        """Who sent the request; None if unknown. A wrong token is refused, and no cookie is tried instead."""
        now = self._monitor.clock()
        kind, token = _authorization(request)
        if kind:
            holder = self.people.of_token(token, now) if kind == "bearer" else None
            if holder is None:
                raise HTTPException(
                    401, "the token is not known here, or has ended", {"WWW-Authenticate": "Bearer"}
                )
            return holder
        if self._portal and (name := self._portal.name(request)):
            viewer = self._same_site(request, self.people.viewer(name, by_cookie=True))
            self._note_portal(request, name, now)
            return viewer
        secret = request.cookies.get(COOKIE, "")
        holder = self.people.of_session(secret, now) if len(secret) == 43 else None
        return self._same_site(request, holder) if holder else None

    def person(self, request: Request, scope: str = "jobs:read") -> Viewer:
        """The sender, who must have this scope. Raises HTTPException."""
        viewer = self.viewer(request)
        if viewer is None:
            raise HTTPException(401, "log in, or send a token", {"WWW-Authenticate": "Bearer"})
        if viewer.node or scope not in viewer.scopes:
            raise HTTPException(403, f"the token has no scope {scope}")
        return viewer

    def admin(self, request: Request) -> Viewer:
        """The sender, who must be an administrator. Raises HTTPException."""
        viewer = self.person(request, "admin")
        if not viewer.is_admin:
            raise HTTPException(403, "only administrators may see this")
        return viewer

    def known_agent(self, request: Request) -> str:
        """The node of the agent that sent the request; empty if only `agent` can tell, which may wait."""
        kind, token = _authorization(request)
        return self._agents.node(token, self._monitor.clock()) if kind == "bearer" else ""

    def agent(self, request: Request) -> str:
        """The node of the agent that sent the request, from the database. Raises HTTPException."""
        viewer = self.viewer(request)
        if viewer is None or not viewer.node:
            raise HTTPException(401 if viewer is None else 403, "an agent's token is needed here")
        self._agents.read_again()
        return viewer.node

    def note(self, request: Request, who: str, action: str, detail: str = "") -> None:
        """Record in the audit log what somebody did."""
        note(self._monitor.jobs, self._monitor.clock(), who, _address(request), action, detail)

    def _note_portal(self, request: Request, name: str, now: float) -> None:
        """Record in the audit log that the portal logged somebody in.

        The portal names the person in each request, so this is recorded once per name, address and day (UTC).
        """
        day = now // _DAY_S
        visitor = (name, _address(request))
        with self._lock:
            if day != self._day:
                self._day, self._visitors = day, set()
            if visitor in self._visitors:
                return
            jobs = self._monitor.jobs
            if not is_noted(jobs, day * _DAY_S, *visitor, *_BY_PORTAL):  # noted before a restart
                try:
                    note(jobs, now, *visitor, *_BY_PORTAL)
                except DiskFailed:  # pages that only read must work while the disk is full
                    return
            if len(self._visitors) < _MOST_VISITORS:
                self._visitors.add(visitor)

    @staticmethod
    def _same_site(request: Request, viewer: Viewer) -> Viewer:
        check_same_site(request)
        return viewer


def _authorization(request: Request) -> tuple[str, str]:
    """The kind of the header Authorization in small letters, and what follows; empty without the header."""
    kind, _, secret = request.headers.get("authorization", "").partition(" ")
    return kind.lower(), secret.strip()


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def check_same_site(request: Request) -> None:
    """Refuse a changing request that a page of another site sent. Raises HTTPException."""
    if request.method in _SAFE:
        return
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    same = (
        urlsplit(origin).netloc == request.headers.get("host") if origin else site in ("same-origin", "none")
    )
    if not same or site in ("cross-site", "same-site"):
        raise HTTPException(403, "this was sent by a page of another site")
