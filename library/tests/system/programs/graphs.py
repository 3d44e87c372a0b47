"""CUDA graphs by the driver's functions, which the fake driver has, too."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Callable, Iterator

import peerway


class Graph:
    """What `enqueue` puts into the stream, to be launched again and again."""

    def __init__(self, stream: peerway.Stream, enqueue: Callable[[], object]) -> None:
        self._driver = ctypes.CDLL(os.environ.get("PEERWAY_CUDA_LIBRARY") or "libcuda.so.1")
        self._queue = ctypes.c_void_p(stream.__cuda_stream__()[1])
        self._context, graph, thread_local = ctypes.c_void_p(), ctypes.c_void_p(), 1
        self._exec = ctypes.c_void_p()
        index = int(stream.device.partition(":")[2])
        self._call("cuDevicePrimaryCtxRetain", ctypes.byref(self._context), index)
        with self._current():
            self._call("cuStreamBeginCapture_v2", self._queue, thread_local)
            enqueue()
            self._call("cuStreamEndCapture", self._queue, ctypes.byref(graph))
            self._call("cuGraphInstantiateWithFlags", ctypes.byref(self._exec), graph, ctypes.c_ulonglong(0))
            self._call("cuGraphDestroy", graph)

    def launch(self) -> None:
        """Launch the graph in the stream that it was captured from."""
        with self._current():
            self._call("cuGraphLaunch", self._exec, self._queue)

    def close(self) -> None:
        """Free the graph, which must not run any more."""
        with self._current():
            self._call("cuGraphExecDestroy", self._exec)

    @contextlib.contextmanager
    def _current(self) -> Iterator[None]:
        before = ctypes.c_void_p()
        self._call("cuCtxPushCurrent_v2", self._context)
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent_v2", ctypes.byref(before))

    def _call(self, name: str, *arguments: object) -> None:
        error = getattr(self._driver, name)(*arguments)
        if error != 0:
            raise RuntimeError(f"{name} returned {error}")
