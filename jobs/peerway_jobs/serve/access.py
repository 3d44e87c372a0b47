"""Who asks: an agent's or a person's token, a session's cookie, or the header of a portal in front."""

from __future__ import annotations

import ipaddress
import threading
from dataclasses import dataclass
from urllib.parse import urlsplit

from fastapi import HTTPException, Request

from peerway_jobs.monitor import Monitor
from peerway_jobs.serve.connections import PEER
from peerway_jobs.serve.people import People, Viewer
from peerway_jobs.store.audit import is_noted, note
from peerway_jobs.store.disk import DiskFailed

COOKIE = "peerway_session"
_BY_PORTAL = ("logged in", "portal")  # action and detail
_DAY_S = 86_400.0
_MOST_VISITORS = 20_000  # names and addresses; those beyond are looked up in the log each time
_SAFE = ("GET", "HEAD", "OPTIONS")
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True)
class Portal:
    """A portal that logs people in and names them in a header. Only what comes from its addresses counts."""

    header: str
    proxies: tuple[Network, ...]

    def name(self, request: Request) -> str | None:
        """Whom it names; None where the request does not come from it."""
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
    """What the routes ask of a request."""

    def __init__(self, monitor: Monitor, people: People, portal: Portal | None) -> None:
        self._monitor, self.people, self._portal = monitor, people, portal
        self._lock = threading.Lock()
        self._day = 0.0
        self._visitors: set[tuple[str, str]] = set()  # whom the portal let in on that day, and from where

    def viewer(self, request: Request) -> Viewer | None:
        """Who asks; None for nobody. A wrong token is refused, and no cookie is tried in its place."""
        now = self._monitor.clock()
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if kind:
            holder = self.people.of_token(token.strip(), now) if kind.lower() == "bearer" else None
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
        """Who asks, with this scope. Raises HTTPException."""
        viewer = self.viewer(request)
        if viewer is None:
            raise HTTPException(401, "log in, or send a token", {"WWW-Authenticate": "Bearer"})
        if viewer.node or scope not in viewer.scopes:
            raise HTTPException(403, f"the token has no scope {scope}")
        return viewer

    def admin(self, request: Request) -> Viewer:
        """An administrator. Raises HTTPException."""
        viewer = self.person(request, "admin")
        if not viewer.is_admin:
            raise HTTPException(403, "only administrators may see this")
        return viewer

    def agent(self, request: Request) -> str:
        """The node of an agent's token. Raises HTTPException."""
        viewer = self.viewer(request)
        if viewer is None or not viewer.node:
            raise HTTPException(401 if viewer is None else 403, "an agent's token is needed here")
        return viewer.node

    def note(self, request: Request, who: str, action: str, detail: str = "") -> None:
        """Keep in the audit log what somebody did."""
        note(self._monitor.jobs, self._monitor.clock(), who, _address(request), action, detail)

    def _note_portal(self, request: Request, name: str, now: float) -> None:
        """Keep in the audit log that the portal let somebody in: it names them in each request, so once for
        each name and address a day (UTC).
        """
        day = now // _DAY_S
        visitor = (name, _address(request))
        with self._lock:
            if day != self._day:
                self._day, self._visitors = day, set()
            if visitor in self._visitors:
                return
            jobs = self._monitor.jobs
            if not is_noted(jobs, day * _DAY_S, *visitor, *_BY_PORTAL):  # before a restart
                try:
                    note(jobs, now, *visitor, *_BY_PORTAL)
                except DiskFailed:  # pages that only read go on while the disk is full
                    return
            if len(self._visitors) < _MOST_VISITORS:
                self._visitors.add(visitor)

    @staticmethod
    def _same_site(request: Request, viewer: Viewer) -> Viewer:
        check_same_site(request)
        return viewer


def _address(request: Request) -> str:
    return request.client.host if request.client else ""


def check_same_site(request: Request) -> None:
    """Refuse what changes something and was sent by a page of another site. Raises HTTPException."""
    if request.method in _SAFE:
        return
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site")
    same = (
        urlsplit(origin).netloc == request.headers.get("host") if origin else site in ("same-origin", "none")
    )
    if not same or site in ("cross-site", "same-site"):
        raise HTTPException(403, "this was sent by a page of another site")
