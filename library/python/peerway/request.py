"""Requests: started operations, to be tested, waited for or awaited, alone or with others.

requests = [ctx.start_put(far[0:n], near[0:n]), ctx.start_get(near[n:2 * n], other[0:n])]
first = peerway.wait_any(requests, timeout=2)     # its place in the list
peerway.wait_all(requests)
await requests[0]                                 # beside other tasks of asyncio
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable

from peerway import _core
from peerway._arguments.validation import of_kind, seconds, shown
from peerway.errors import InvalidArgument, Timeout

_LONGEST_NAP = 1e-3


class Request:
    """Stands for one operation, for all operations towards a rank, or for a plan's finish. It is complete
    when these are complete at both ends or have failed. Dropping a request does not end its operation.
    """

    def __init__(self, core: _core.Request, keep: object = None) -> None:
        self._core = core
        self._keep = keep  # what the operation uses

    def complete(self) -> bool:
        """Makes progress and returns whether the operation is complete. If it failed, wait() raises the
        error.
        """
        return self._core.complete()

    def wait(self, timeout: float | None = None) -> None:
        """Returns once the operation is complete. Raises the error that it failed with, or Timeout after
        `timeout` seconds (None: no limit); after a Timeout the operation goes on.
        """
        self._core.wait(seconds(timeout))

    def __await__(self) -> Generator[object, None, None]:
        """`await request` is wait() for programs with asyncio: other tasks run meanwhile. If the awaiting
        task is cancelled, the operation goes on.
        """
        return self._awaited().__await__()

    async def _awaited(self) -> None:
        import asyncio  # a quarter of all that `import peerway` costs ranks beside NumPy

        # Naps of an eighth of the time waited so far: the end is found late by no more than that.
        began = time.monotonic()
        while not self._core.complete():
            waited = time.monotonic() - began
            await asyncio.sleep(0 if waited < 50e-6 else min(waited / 8, _LONGEST_NAP))
        self._core.wait(0)

    def close(self) -> None:
        """Releases the request; the operation goes on. Closing twice does nothing."""
        self._core.close()
        self._keep = None

    def __repr__(self) -> str:
        state = "closed" if self._core.closed else "complete" if self._core.complete() else "under way"
        return f"<peerway.Request, {state}>"


def wait_any(requests: Iterable[Request], timeout: float | None = None) -> int:
    """Returns once one of these requests is complete: its index in the list, the lowest if there are several.
    If that operation failed, the request's wait() raises the error. All requests must be of one context.
    Raises Timeout after `timeout` seconds (None: no limit).
    """
    cores = _cores("wait_any", requests)
    result = _core.wait_any(cores, seconds(timeout))
    if result is None:
        raise Timeout(
            f"peerway: waited {timeout} s for one of {len(cores)} requests. They go on: wait again, and "
            "see whether the other ranks are at work."
        )
    return result


def wait_all(requests: Iterable[Request], timeout: float | None = None) -> None:
    """Returns once all of these requests are complete. Raises the error of the first in the list that failed,
    or Timeout after `timeout` seconds (None: no limit). All requests must be of one context.
    """
    _core.wait_all(_cores("wait_all", requests), seconds(timeout))


def _cores(call: str, requests: Iterable[Request]) -> list[_core.Request]:
    if not isinstance(requests, Iterable):
        raise InvalidArgument(
            f"peerway: {call}: `requests` is {shown(requests)}; give a list: {call}([request])."
        )
    advice = "give what ctx.start_put(), ctx.start_get() or plan.start() returned."
    return [of_kind(f"{call}: a request", request, Request, advice)._core for request in requests]
