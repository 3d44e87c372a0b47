"""Streams: queues of work on a device, of Peerway and of other libraries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from peerway import _core
from peerway._arguments.validation import device as split_device
from peerway._arguments.validation import seconds, shown
from peerway.errors import InvalidArgument


class Stream:
    """An ordered queue of work on a device, made by Context.stream: on the host a worker thread, on a GPU a
    CUDA stream, which CuPy, PyTorch and others accept through `__cuda_stream__`.
    """

    def __init__(self, core: _core.Stream) -> None:
        self._core = core
        self.device = core.device

    def call(self, body: Callable[[], object]) -> None:
        """Enqueues `body`, which is called on a host thread in the stream's order. It must not use CUDA."""
        if not callable(body):
            raise InvalidArgument(f"peerway: call: {shown(body)} cannot be called; give a function.")
        self._core.call(body)

    def wait(self, timeout: float | None = None) -> None:
        """Returns once all enqueued work is done. Plan.check() raises if a plan in it was cancelled. Raises
        Timeout after `timeout` seconds (None: no limit).
        """
        self._core.wait(seconds(timeout))

    def __cuda_stream__(self) -> tuple[int, int]:
        if self.device == "host":
            raise InvalidArgument(
                "peerway: a stream of the host is not a CUDA stream; make one with ctx.stream('cuda')."
            )
        return 0, self._core.queue

    def close(self) -> None:
        """Waits for all enqueued work, then ends the stream. Closing twice does nothing."""
        self._core.close()

    def __repr__(self) -> str:
        return f"<peerway.Stream on {self.device}{', closed' if self._core.closed else ''}>"


def stream_handle(stream: object, device: str) -> tuple[str, int, int]:
    """Kind and index of a stream's device, and its handle. If a stream of CUDA or HIP does not report its
    device, it is assumed to be on `device`, the plan's.
    """
    if isinstance(stream, Stream):
        kind, index = split_device(stream.device)
        return kind, index, stream._core.queue
    kind = "hip" if device.startswith("hip") else "cuda"  # libraries on ROCm call HIP's streams CUDA's
    return kind, _index_of(stream, device), _queue_of(stream)


def _queue_of(stream: Any) -> int:
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, queue = protocol() if callable(protocol) else protocol
        return int(queue)
    for name in ("ptr", "cuda_stream"):  # CuPy, PyTorch
        if hasattr(stream, name):
            return int(getattr(stream, name))
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    raise InvalidArgument(
        f"peerway: {shown(stream)} is not a stream; give a peerway.Stream, a stream of CuPy or PyTorch, an "
        "object with __cuda_stream__, or the number of a CUDA stream."
    )


def _index_of(stream: object, device: str) -> int:
    for name in ("device_id", "device_index"):  # CuPy, PyTorch
        index = getattr(stream, name, None)
        if isinstance(index, int) and index >= 0:
            return index
    return split_device(device)[1] if device.startswith(("cuda", "hip")) else -1
