"""Handles of operations that go on, as torch.distributed gives them to programs and to DDP."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import torch
from torch.distributed import Work
from torch.futures import Future

from peerway.errors import Error
from peerway.torch_distributed.errors import failure_of

Call = Callable[[], None]
Title = Callable[[], str]  # what an operation is called in errors


class HostWork(Work):  # type: ignore[misc, unused-ignore]
    """An operation on tensors of the host. `wait` waits in the calling thread."""

    def __init__(self, call: Call, outputs: Sequence[torch.Tensor], title: Title) -> None:
        super().__init__()
        self._call: Call | None = call
        self._outputs = list(outputs)
        self._title = title
        self._error: BaseException | None = None
        self._finished = threading.Event()
        self._lock = threading.Lock()
        self._futures: list[Any] = []

    def run(self) -> None:
        """Carries out the operation; what it raises is kept for those who wait."""
        assert self._call is not None
        try:
            with torch.inference_mode():  # also of tensors made in inference; nothing is to be differentiated
                self._call()
        except Error as error:
            self._error = failure_of(self._title(), error)
        except BaseException as error:
            self._error = error
        self._call = None  # releases the inputs
        with self._lock:
            self._finished.set()
            futures, self._futures = self._futures, []
        for future in futures:
            future.set_result(None)

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the operation has ended. Raises its error, and DistBackendError after `timeout`."""
        seconds = timeout.total_seconds() if timeout else None
        if not self._finished.wait(seconds):
            raise torch.distributed.DistBackendError(
                f"peerway: {self._title()} did not end within {seconds} s. It goes on; wait again."
            )
        if self._error is not None:
            raise self._error
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return self._finished.is_set()

    def is_success(self) -> bool:
        return self._finished.is_set() and self._error is None

    def exception(self) -> BaseException | None:
        return self._error

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def get_future(self) -> Any:
        """A future of the outputs, or of the error."""
        ended: Any = Future()
        outcome = ended.then(self._outcome)
        with self._lock:
            if not self._finished.is_set():
                self._futures.append(ended)
                return outcome
        ended.set_result(None)
        return outcome

    def _outcome(self, _: object) -> list[torch.Tensor]:
        if self._error is not None:
            raise self._error
        return self._outputs


class HostQueue:
    """Operations of the host, carried out one after the other in the order in which they were added: by a
    thread, or at once in the thread that adds them, if nothing is before them.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._pending: deque[HostWork] = deque()
        self._running = False
        self._closed = False
        self._thread: threading.Thread | None = None

    def add(self, work: HostWork, at_once: bool = False) -> HostWork:
        """Adds an operation. With `at_once` the caller will wait for it in any case."""
        if not (at_once and self.run_now(work.run)):
            with self._changed:
                self._pending.append(work)
                self._start_thread()
                self._changed.notify_all()
        return work

    def run_now(self, call: Call) -> bool:
        """Carries out an operation in the calling thread, if nothing is before it; returns whether it did."""
        with self._changed:
            if self._pending or self._running:
                return False
            self._running = True
        self._run(call)
        return True

    def close(self) -> None:
        """Waits for all operations, and ends the thread."""
        with self._changed:
            self._changed.wait_for(lambda: not self._pending and not self._running)
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _start_thread(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or (self._pending and not self._running))
                if self._closed:
                    return
                work = self._pending.popleft()
                self._running = True
            self._run(work.run)

    def _run(self, call: Call) -> None:
        try:
            call()
        finally:
            with self._changed:
                self._running = False
                self._changed.notify_all()


class StreamWork(Work):  # type: ignore[misc, unused-ignore]
    """An operation on a GPU. `wait` lets the current stream wait for it, and never the host."""

    def __init__(
        self, stream: Any, event: Any, outputs: Sequence[torch.Tensor], check: Callable[[], None]
    ) -> None:
        super().__init__()
        self._stream, self._event = stream, event
        self._outputs = list(outputs)
        self._check = check

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Lets the current stream wait for the operation. Raises the error of an operation that has ended
        with one already; a later one is raised by the group's next call.
        """
        del timeout  # the group's own applies: the wait is in the stream
        current = torch.cuda.current_stream(self._stream.device_index)
        if self._event is not None or current != self._stream:
            self._check()
        if current != self._stream:
            current.wait_event(self._after())
        return True

    def _after(self) -> Any:
        """An event after the operation. That of one in the program's own stream is recorded when it is asked
        for.
        """
        if self._event is None:
            self._event = torch.cuda.Event()
            self._event.record(self._stream)
        return self._event

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return bool(self._after().query())

    def is_success(self) -> bool:
        return self.is_completed()

    def exception(self) -> BaseException | None:
        return None

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def get_future(self) -> Any:
        """A future of the outputs. It is complete at once; waiting for it lets the stream wait."""
        future: Any = Future(devices=[self._stream.device])
        with torch.cuda.stream(self._stream):
            future.set_result(self._outputs)
        return future


class JoinedWork(Work):  # type: ignore[misc, unused-ignore]
    """Several operations as one."""

    def __init__(self, works: Sequence[Any], outputs: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._works = list(works)
        self._outputs = list(outputs)

    def wait(self, timeout: timedelta | None = None) -> bool:
        for work in self._works:
            work.wait(timeout) if timeout else work.wait()
        return True

    def synchronize(self) -> None:
        self.wait()

    def block_current_stream(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        return all(work.is_completed() for work in self._works)

    def is_success(self) -> bool:
        return all(work.is_success() for work in self._works)

    def exception(self) -> BaseException | None:
        return next((error for work in self._works if (error := work.exception()) is not None), None)

    def result(self) -> list[torch.Tensor]:
        return self._outputs

    def get_future(self) -> Any:
        futures = [work.get_future() for work in self._works]
        if not futures:
            done: Any = Future()
            done.set_result(self._outputs)
            return done
        joined: Any = torch.futures.collect_all(futures)

        def outputs_of(each: Any) -> list[torch.Tensor]:
            for future in each.wait():
                future.wait()
            return self._outputs

        return joined.then(outputs_of)
