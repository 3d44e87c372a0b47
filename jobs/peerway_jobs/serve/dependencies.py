"""FastAPI dependencies of the routes: the server's state, its templates, and the sender of the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Path, Query, Request
from fastapi.concurrency import run_in_threadpool

from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.state import State
from peerway_jobs.store.lists import PLACE, Place

JOB = r"^[0-9]{1,10}(_[0-9]{1,10})?$"  # 123_4 is task 4 of array 123
JobId = Annotated[str, Path(pattern=JOB)]
Before = Annotated[str, Query(pattern=f"^({PLACE})?$", description="As in the link to the next page.")]
Restart = Annotated[int | None, Query(ge=-(1 << 31), le=1 << 31)]


class Login(Exception):
    """Nobody is logged in."""


async def server_state(request: Request) -> State:
    """The state of the application."""
    state: State = request.app.state.peerway
    return state


async def templates(request: Request) -> Pages:
    """The templates of the application."""
    pages: Pages = request.app.state.pages
    return pages


Server = Annotated[State, Depends(server_state)]
Templates = Annotated[Pages, Depends(templates)]


# -- for the API: a request without the right gets an HTTP error


def reader(request: Request, server: Server) -> Viewer:
    """The sender, who may read jobs."""
    return server.access.person(request)


def cluster_reader(request: Request, server: Server) -> Viewer:
    """The sender, who may read the cluster's state."""
    return server.access.person(request, "cluster:read")


def administrator(request: Request, server: Server) -> Viewer:
    """The sender, who is an administrator."""
    return server.access.admin(request)


async def agent_node(request: Request, server: Server) -> str:
    """The node of the agent that sent the request."""
    access = server.access
    return access.known_agent(request) or await run_in_threadpool(access.agent, request)


Reader = Annotated[Viewer, Depends(reader)]
ClusterReader = Annotated[Viewer, Depends(cluster_reader)]
Administrator = Annotated[Viewer, Depends(administrator)]
AgentNode = Annotated[str, Depends(agent_node)]


# -- for the pages: the same rights, but a request without a login is redirected to the login


def logged_in(request: Request, server: Server) -> None:
    """Raise Login if the sender is unknown."""
    if server.access.viewer(request) is None:
        raise Login


LoggedIn = Depends(logged_in)


def in_person(viewer: Reader) -> Viewer:
    """The sender, who has logged in: tokens cannot make or show tokens."""
    if not viewer.by_cookie:
        raise HTTPException(403, "log in: this is not done with a token")
    return viewer


InPerson = Annotated[Viewer, Depends(in_person)]


def older_page(request: Request, following: Place | None) -> str:
    """The address of the next page of a list; empty after the last page."""
    return f"?{request.url.include_query_params(before=following.text()).query}" if following else ""


def page_link(request: Request) -> Callable[..., str]:
    """A function that gives the address of this page with other choices; an empty value removes one."""

    def link(**changes: object) -> str:
        url = request.url.remove_query_params(list(changes))
        wanted = {name: value for name, value in changes.items() if value}
        query = (url.include_query_params(**wanted) if wanted else url).query
        return f"{request.url.path}?{query}" if query else request.url.path

    return link
