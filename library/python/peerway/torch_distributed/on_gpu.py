"""Operations on tensors of a GPU, in the order of streams: nothing here waits on the host, except where plans
are made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from typing import Any

import torch

from peerway import _core
from peerway.errors import Error, InvalidArgument
from peerway.memory import Region
from peerway.torch_distributed.channels import StreamChannel, open_channels
from peerway.torch_distributed.engine import Copy, Engine, Key
from peerway.torch_distributed.errors import failure_of
from peerway.torch_distributed.operations import copy_within
from peerway.torch_distributed.work import StreamWork, Title

RECENT = 8  # plans that each call checks; GpuEngine.check() checks all


class GpuEngine(Engine):
    """The operations of one group on this rank's GPU.

    Collectives follow one another: those that the program waits for at once run in its own stream, the others
    in a stream of the group, and each waits for the one before. While a stream is captured, all of them run
    in the group's stream, which forks from the captured one and joins it again in Work.wait.
    """

    largest_chunk = 64 << 20

    def __init__(self, store: Any, rank: int, size: int, device: torch.device, timeout: timedelta) -> None:
        super().__init__(store, rank, size, device, timeout)
        self._lock = threading.RLock()  # DDP calls from threads of its own
        self._stream = torch.cuda.Stream(device, priority=-1)
        self._previous: Any = None  # the stream of the last collective outside of graphs
        self._recent: list[Any] = []  # the cores of the last plans that were started
        # For run(): kind, number and stream. Only _enqueue sets it, under _lock.
        self._queue: tuple[str, int, int] | None = None
        self.channels |= open_channels(self, StreamChannel)
        self._streams = {key: torch.cuda.Stream(device, priority=-1) for key in self.channels}

    device_kind = "hip" if torch.version.hip else "cuda"

    @property
    def device_name(self) -> str:
        return f"{self.device_kind}:{self.device.index}"

    def run(self, plan: Any) -> None:
        """Enqueues a start and its finish in the stream of the operation that is being enqueued."""
        plan._core.run_on(self._queue)
        self._started(plan._core)

    def run_between(self, plan: Any, before: Copy, after: Copy) -> bool:
        with self._lock:
            queue = torch._C._cuda_getCurrentRawStream(self.device.index)
            follows = self._previous is not None and self._previous.cuda_stream == queue
            if not follows or torch.cuda.is_current_stream_capturing():
                return False
            self._check_recent()
            plan.run_between_on(queue, before, after)
            self._started(plan)
        return True

    def submit(
        self,
        call: Callable[[], None],
        tensors: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        title: Title,
        waits: bool = False,
    ) -> StreamWork | None:
        """Enqueues a collective in the program's stream if it waits at once, else in that of the group."""
        with self._lock:
            current = self._current_stream()
            captured = torch.cuda.is_current_stream_capturing()
            stream = current if waits and not captured else self._stream
            if not captured:
                if self._previous is not None and self._previous != stream:
                    stream.wait_stream(self._previous)
                self._previous = stream
            event = self._enqueue(call, tensors, current, stream, title)
        if waits and event is None:
            return None
        return StreamWork(stream, event, outputs, self._check_recent)

    def transfer(self, peer: int, sends: bool, tensor: torch.Tensor, title: Title, tag: int) -> StreamWork:
        """Sends a tensor to a rank, or receives it from there. Tags are not compared: messages between two
        ranks match in the order of the calls.
        """
        stream = self._streams[peer, sends]
        move = partial(self.channels[peer, sends].move, tensor, tag)
        with self._lock:
            current = self._current_stream()
            event = self._enqueue(move, [tensor], current, stream, title)
        return StreamWork(stream, event, [tensor], self._check_recent)

    def copy(self, to: torch.Tensor, source: torch.Tensor, title: Title) -> StreamWork:
        """Copies a tensor within this rank, in the current stream."""
        stream = self._current_stream()
        with self._lock:
            event = self._enqueue(partial(copy_within, to, source), [], stream, stream, title)
        return StreamWork(stream, event, [to], self._check_recent)

    def check(self) -> None:
        """Raises the error that cancelled a plan of this group, if one was."""
        self._check([plan._core for plan in self._plans])

    def _current_stream(self) -> Any:
        return torch.cuda.current_stream(self.device.index)  # a torch.device would take twice as long

    def _started(self, plan: Any) -> None:
        """Notes a plan of the core for the checks of later calls."""
        if plan not in self._recent:
            self._recent.append(plan)
            del self._recent[:-RECENT]

    def _check_recent(self) -> None:
        self._check(self._recent)

    def _check(self, plans: Sequence[Any]) -> None:
        try:
            _core.check_plans(plans)
        except Error as error:
            raise failure_of("a collective on the GPU", error) from error

    def close(self) -> None:
        torch.cuda.synchronize(self.device)
        super().close()

    def _enqueue(
        self,
        call: Callable[[], None],
        tensors: Sequence[torch.Tensor],
        current: Any,
        stream: Any,
        title: Title,
    ) -> Any:
        """Carries out `call` in `stream`, after all work in the current stream. Returns an event after it, or
        None if the current stream is the same.
        """
        self._check_recent()
        self._queue = (self.device_kind, self.device.index, stream.cuda_stream)
        mode = torch.inference_mode() if any(tensor.is_inference() for tensor in tensors) else nullcontext()
        try:
            if stream == current:
                with mode:
                    call()
                return None
            stream.wait_stream(current)
            for tensor in tensors:
                tensor.record_stream(stream)
            with torch.cuda.device(self.device), torch.cuda.stream(stream), mode:
                call()
            event = torch.cuda.Event()
            event.record(stream)
            return event
        except BaseException as error:
            if stream != current:
                current.wait_stream(stream)  # joins a capture again
            if isinstance(error, Error):
                raise failure_of(title(), error) from error
            raise

    def _tensor_over(self, region: Region) -> torch.Tensor:
        return torch.as_tensor(region, device=self.device)

    def _check_making(self, key: Key) -> None:
        if torch.cuda.is_current_stream_capturing():
            raise InvalidArgument(
                f"peerway: a CUDA graph is being captured, and there is no plan yet for {key.kind} of "
                f"{key.elements} elements of {key.dtype}. Run the step once before you capture it, as "
                "PyTorch asks for all graphs."
            )
