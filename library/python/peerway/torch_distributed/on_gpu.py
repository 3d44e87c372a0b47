"""Operations on tensors of a GPU, in the order of streams: nothing here waits on the host, except where plans
are made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import torch

from peerway.errors import Error, InvalidArgument
from peerway.memory import Region
from peerway.torch_distributed.channels import StreamChannel, open_channels
from peerway.torch_distributed.engine import Engine, Key
from peerway.torch_distributed.errors import failure_of
from peerway.torch_distributed.operations import copy_within
from peerway.torch_distributed.work import StreamWork


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
        self._previous: tuple[Any, Any] | None = None  # stream and event of the last collective
        self._running: dict[int, tuple[Any, Any]] = {}  # plans and the events after them, by their ids
        self._captured: dict[int, Any] = {}  # plans in graphs, which may be replayed at any time
        self._enqueued: list[Any] = []  # plans of the present call
        self.channels |= open_channels(self, StreamChannel)
        self._streams = {key: torch.cuda.Stream(device, priority=-1) for key in self.channels}

    @property
    def device_name(self) -> str:
        kind = "hip" if torch.version.hip else "cuda"
        return f"{kind}:{self.device.index}"

    def run(self, plan: Any) -> None:
        """Enqueues a start and its finish in the current stream."""
        plan.run(torch.cuda.current_stream(self.device))
        self._enqueued.append(plan)

    def submit(
        self,
        call: Callable[[], None],
        tensors: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        title: str,
        waits: bool = False,
    ) -> StreamWork:
        """Enqueues a collective, which `call` carries out. `waits`: whether the caller will wait at once."""
        with self._lock:
            captured = torch.cuda.is_current_stream_capturing()
            direct = waits and not captured
            stream = torch.cuda.current_stream(self.device) if direct else self._stream
            if not captured and self._previous is not None and self._previous[0] != stream:
                stream.wait_event(self._previous[1])
            event = self._enqueue(call, tensors, stream, title)
            if not captured:
                self._previous = stream, event
        return StreamWork(stream, event, outputs, self._check_running)

    def transfer(self, peer: int, sends: bool, tensor: torch.Tensor, title: str, tag: int) -> StreamWork:
        """Sends a tensor to a rank, or receives it from there. Tags are not compared: messages between two
        ranks match in the order of the calls.
        """
        stream = self._streams[peer, sends]
        move = partial(self.channels[peer, sends].move, tensor, tag)
        with self._lock:
            event = self._enqueue(move, [tensor], stream, title)
        return StreamWork(stream, event, [tensor], self._check_running)

    def copy(self, to: torch.Tensor, source: torch.Tensor, title: str) -> StreamWork:
        """Copies a tensor within this rank, in the current stream."""
        stream = torch.cuda.current_stream(self.device)
        with self._lock:
            event = self._enqueue(partial(copy_within, to, source), [], stream, title)
        return StreamWork(stream, event, [to], self._check_running)

    def check(self, graphs: bool = True) -> None:
        """Raises the error that cancelled a plan of this group, if one was. Without `graphs` it passes over
        plans in graphs.
        """
        with self._lock:
            captured = torch.cuda.is_current_stream_capturing()
            try:
                for number, (plan, event) in list(self._running.items()):
                    ended = not captured and event.query()
                    plan.check()
                    if ended:
                        del self._running[number]
                for plan in self._captured.values() if graphs else ():
                    plan.check()
            except Error as error:
                raise failure_of("a collective on the GPU", error) from error

    def close(self) -> None:
        torch.cuda.synchronize(self.device)
        super().close()

    def _enqueue(
        self, call: Callable[[], None], tensors: Sequence[torch.Tensor], stream: Any, title: str
    ) -> Any:
        """Carries out `call` with `stream`, after all work in the current stream. Returns an event after
        it.
        """
        self.check(graphs=False)
        current = torch.cuda.current_stream(self.device)
        if stream != current:
            stream.wait_stream(current)
            for tensor in tensors:
                tensor.record_stream(stream)
        event = torch.cuda.Event()
        self._enqueued.clear()
        try:
            with torch.cuda.device(self.device), torch.cuda.stream(stream), torch.inference_mode():
                call()
                event.record(stream)
                captured = torch.cuda.is_current_stream_capturing()
        except BaseException as error:
            if stream != current:
                current.wait_stream(stream)  # joins a capture again
            if isinstance(error, Error):
                raise failure_of(title, error) from error
            raise
        for plan in self._enqueued:
            if captured:
                self._captured[id(plan)] = plan
            else:
                self._running[id(plan)] = plan, event
        return event

    def _check_running(self) -> None:
        self.check(graphs=False)

    def _tensor_over(self, region: Region) -> torch.Tensor:
        return torch.as_tensor(region, device=self.device)

    def _check_making(self, key: Key) -> None:
        if torch.cuda.is_current_stream_capturing():
            raise InvalidArgument(
                f"peerway: a CUDA graph is being captured, and there is no plan yet for {key.kind} of "
                f"{key.elements} elements of {key.dtype}. Run the step once before you capture it, as "
                "PyTorch asks for all graphs."
            )
