"""What the process group has besides its operations: its engines, and how it passes operations to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from peerway.errors import Error
from peerway.torch_distributed import fast_path
from peerway.torch_distributed.engine import Engine
from peerway.torch_distributed.errors import failure_of
from peerway.torch_distributed.fast_path import FastPath
from peerway.torch_distributed.on_host import HostEngine
from peerway.torch_distributed.reductions import name_of
from peerway.torch_distributed.work import JoinedWork

Tensors = Sequence[torch.Tensor]

MOST_FAST_PATHS = 4096  # plans are not limited by it


class GroupBase(dist.ProcessGroup):  # type: ignore[misc, unused-ignore]
    """A process group without operations. Its engine for a kind of device is made when it is first needed,
    that of the host with the group.
    """

    def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
        super().__init__(rank, size)
        self._store, self._rank, self._size = store, rank, size
        self._name = self._description = ""
        self._time_limit = timeout
        self._coalesced: list[Any] | None = None  # works since start_coalescing
        self._fast_paths: dict[Any, FastPath] = {}
        self._engines: dict[str, Engine] = {}
        cpu = dist.PrefixStore("cpu", store)
        self._engines["cpu"] = HostEngine(cpu, rank, size, timeout)
        if all(self._engines["cpu"].team.all_gather(b"gpu" if _has_chosen_gpu() else b"")):
            self._open_gpu(torch.device("cuda", torch.cuda.current_device()))

    # What torch.distributed asks about a group.

    def getBackendName(self) -> str:
        return "peerway"

    def getRank(self) -> int:
        return self._rank

    def getSize(self) -> int:
        return self._size

    def setGroupName(self, name: str) -> None:
        self._name = name

    def getGroupName(self) -> str:
        return self._name

    def setGroupDesc(self, description: str) -> None:
        self._description = description

    def getGroupDesc(self) -> str:
        return self._description

    def _get_backend(self, device: Any) -> GroupBase:
        del device
        return self

    @property
    def supports_splitting(self) -> bool:
        return False

    @property
    def supports_coalescing(self) -> bool:
        return True

    @property
    def supports_time_estimate(self) -> bool:
        return False

    def _set_default_timeout(self, timeout: timedelta) -> None:
        self._time_limit = timeout
        for engine in self._engines.values():
            engine.set_time_limit(timeout)

    def check(self) -> None:
        """Raises the error that ended a collective on a GPU, if one did."""
        for engine in self._engines.values():
            engine.check()

    def shutdown(self) -> None:
        """Ends the group. Collective; a rank that was lost is not waited for."""
        engines, self._engines = self._engines, {}
        self._fast_paths.clear()
        for engine in reversed(engines.values()):
            with suppress(Error):
                engine.close()

    def abort(self) -> None:
        """Ends the group without waiting for other ranks."""
        engines, self._engines = self._engines, {}
        self._fast_paths.clear()
        for engine in engines.values():
            engine.abort()

    # How operations begin.

    def _run_fast(
        self, name: str, results: Tensors, sources: Tensors, opts: Any, op: Any = None, root: int = 0
    ) -> bool:
        """Runs a collective by its fast path; returns False if it must be submitted."""
        if getattr(opts, "asyncOp", True) or self._coalesced is not None:
            return False
        if len(results) != 1 or len(sources) != 1 or not fast_path.takes(sources[0]):
            return False
        result, source = results[0], sources[0]
        sizes: tuple[Any, ...] = source.dtype, source.numel(), source.device
        if result is not source:
            if not fast_path.takes(result):
                return False
            sizes += result.dtype, result.numel(), result.device
        key = name, hash(op), root, sizes  # a hash of an operation is its number, and faster than to compare
        path = self._fast_paths.get(key)
        if path is None:
            path = fast_path.find(self._engine_of(name, [result, source]), name, result, source, op, root)
            if path is None:
                return False
            if len(self._fast_paths) >= MOST_FAST_PATHS:
                self._fast_paths.clear()
            self._fast_paths[key] = path
        try:
            return path.run(result, source)
        except Error as error:
            raise failure_of(_title(name, result, op=op), error) from error

    def _submit(
        self,
        name: str,
        call: Callable[[Engine], None],
        tensors: Tensors,
        outputs: Tensors,
        opts: Any,
        op: Any = None,
    ) -> Any:
        engine = self._engine_of(name, tensors)
        waits = not getattr(opts, "asyncOp", True) and self._coalesced is None
        title = partial(_title, name, tensors[0] if tensors else None, op=op)
        return self._noted(engine.submit(partial(call, engine), tensors, outputs, title, waits))

    def _transfer(self, name: str, rank: int, sends: bool, tensor: torch.Tensor, tag: int = 0) -> Any:
        title = partial(_title, name, tensor, f" {'to' if sends else 'from'} rank {rank} of the group")
        return self._engine_of(name, [tensor]).transfer(rank, sends, tensor, title, tag)

    def _copied(self, name: str, to: torch.Tensor, source: torch.Tensor) -> Any:
        """The part of an operation that this rank has with itself."""
        return self._engine_of(name, [to]).copy(to, source, partial(_title, name, to))

    def _joined(self, works: list[Any], outputs: Tensors) -> Any:
        return self._noted(JoinedWork(works, outputs))

    def _noted(self, work: Any) -> Any:
        """Keeps a work for end_coalescing."""
        if self._coalesced is not None:
            self._coalesced.append(work)
        return work

    def _engine_of(self, name: str, tensors: Tensors) -> Engine:
        """The engine for the tensors, which must be of one device and dense."""
        if not self._engines:
            raise dist.DistBackendError(f"peerway: {name}: the process group was destroyed; make another.")
        if any(tensor.layout != torch.strided for tensor in tensors):
            raise ValueError(f"peerway: {name} of sparse tensors; give dense ones.")
        devices = {tensor.device for tensor in tensors} or {torch.device("cpu")}
        if len(devices) > 1:
            raise ValueError(f"peerway: {name} of tensors of {' and '.join(map(str, devices))}.")
        (device,) = devices
        if device.type == "cpu":
            return self._engines["cpu"]
        if device.type != "cuda":
            raise ValueError(f"peerway: {name} of tensors of {device}; there are cpu and cuda.")
        if "cuda" not in self._engines:
            self._open_gpu(device)
        engine = self._engines["cuda"]
        if engine.device != device:
            raise ValueError(
                f"peerway: {name} of tensors of {device}, but this group uses {engine.device} in this rank; "
                "call torch.cuda.set_device() before the group is made."
            )
        return engine

    def _open_gpu(self, device: torch.device) -> None:
        """Makes the engine of this rank's GPU. Collective."""
        from peerway.torch_distributed.on_gpu import GpuEngine

        store = dist.PrefixStore("cuda", self._store)
        self._engines["cuda"] = GpuEngine(store, self._rank, self._size, device, self._time_limit)


def _has_chosen_gpu() -> bool:
    """Whether the program uses a GPU already, so that it is known which."""
    return bool(torch.cuda.is_available() and torch.cuda.is_initialized())


def _title(name: str, tensor: torch.Tensor | None, peer: str = "", op: Any = None) -> str:
    """What an operation is called in errors."""
    if op is not None:
        name = f"{name} ({name_of(op)})"
    if tensor is None:
        return name
    return f"{name} of {tensor.numel()} {str(tensor.dtype).removeprefix('torch.')} on {tensor.device}{peer}"
