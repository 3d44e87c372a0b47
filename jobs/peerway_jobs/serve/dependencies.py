"""What the routes of the API and of the pages depend on: the server's state, its templates, and who asks."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, HTTPException, Path, Query, Request

from peerway_jobs.serve.people import Viewer
from peerway_jobs.serve.rendering import Pages
from peerway_jobs.serve.state import State
from peerway_jobs.store.lists import PLACE, Place

JOB = r"^[0-9]{1,10}(_[0-9]{1,10})?$"  # 123_4 is the fourth of array 123
JobId = Annotated[str, Path(pattern=JOB)]
Before = Annotated[str, Query(pattern=f"^({PLACE})?$", description="As in the link to the next page.")]
Restart = Annotated[int | None, Query(ge=-(1 << 31), le=1 << 31)]


class Login(Exception):
    """Nobody is logged in."""


async def server_state(request: Request) -> State:
    """The state of the application that answers."""
    state: State = request.app.state.peerway
    return state


async def templates(request: Request) -> Pages:
    """Its templates."""
    pages: Pages = request.app.state.pages
    return pages


Server = Annotated[State, Depends(server_state)]
Templates = Annotated[Pages, Depends(templates)]


# -- of the API: who may not ask gets an answer of HTTP


def reader(request: Request, server: Server) -> Viewer:
    """Who may read jobs."""
    return server.access.person(request)


def cluster_reader(request: Request, server: Server) -> Viewer:
    """Who may read the cluster's state."""
    return server.access.person(request, "cluster:read")


def administrator(request: Request, server: Server) -> Viewer:
    """An administrator."""
    return server.access.admin(request)


def agent_node(request: Request, server: Server) -> str:
    """The node of an agent's token."""
    return server.access.agent(request)


Reader = Annotated[Viewer, Depends(reader)]
ClusterReader = Annotated[Viewer, Depends(cluster_reader)]
Administrator = Annotated[Viewer, Depends(administrator)]
AgentNode = Annotated[str, Depends(agent_node)]


# -- of the pages: the same rights, and who is not logged in is sent to do so


def logged_in(request: Request, server: Server) -> None:
    """Raises Login for nobody."""
    if server.access.viewer(request) is None:
        raise Login


LoggedIn = Depends(logged_in)


def in_person(viewer: Reader) -> Viewer:
    """Somebody who logged in: no token makes or shows tokens."""
    if not viewer.by_cookie:
        raise HTTPException(403, "log in: this is not done with a token")
    return viewer


InPerson = Annotated[Viewer, Depends(in_person)]


def older_page(request: Request, following: Place | None) -> str:
    """The address of the next page of a list; empty after the last."""
    return f"?{request.url.include_query_params(before=following.text()).query}" if following else ""
