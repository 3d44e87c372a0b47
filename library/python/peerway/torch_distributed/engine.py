"""What carries out the operations of a group on one kind of device: a context of its own, memory that stays
where it is, and the plans between such memories.

The tensors of a program are copied into this memory and out of it, in the order of the stream or of the
queue. So a plan never refers to memory that PyTorch may free or use for another tensor. A plan's key has
nothing but the operation, the type and a size, which all ranks know alike; so all ranks make a plan together
or none does. Plans live as long as the group: a captured graph may use any of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, NamedTuple, TypeAlias

import torch
from torch.distributed import Work

from peerway.context import Context
from peerway.memory import Region
from peerway.team import Team
from peerway.torch_distributed.sizes import power_of_two, rounded
from peerway.torch_distributed.work import Title

MOST_PLACES = 4096  # sizes of tensors that are kept; plans are not limited by it
FINE_PLANS = 256  # from then on, new sizes are rounded up to powers of two


Copy: TypeAlias = tuple[int, int, int]  # addresses to copy to and from, and the number of bytes


class Key(NamedTuple):
    """What a plan does, in terms that all ranks of the group know alike. `elements` counts those of each
    part.
    """

    kind: str
    op: str
    dtype: torch.dtype
    elements: int
    root: int = 0


class Prepared(NamedTuple):
    """A plan and the memory that it works on. `elements` is that of the key, rounded up."""

    plan: Any
    elements: int
    to: torch.Tensor
    source: torch.Tensor


class Engine(ABC):
    """The operations of one group on one device, a torch.device. Making one is collective over the group.

    `store` is where the ranks meet: rank 0 leaves there what the others must know to connect.
    """

    largest_chunk = 8 << 20  # bytes; larger tensors go in chunks

    def __init__(self, store: Any, rank: int, size: int, device: torch.device, timeout: timedelta) -> None:
        self.rank, self.size, self.device = rank, size, device
        self.seconds = timeout.total_seconds()
        _meet(store, rank, size, timeout)
        self.team = Team.create(rank, size, _broadcast_by(store, rank))
        self.ctx = Context(self.team)
        self.channels: dict[tuple[int, bool], Any] = {}  # by the peer and whether it is sent to
        self._plans: list[Any] = []
        self._prepared: dict[Key, Prepared] = {}
        self._places: dict[Key, tuple[Any, torch.Tensor]] = {}
        self._memory: dict[str, torch.Tensor] = {}
        self._regions: dict[int, Region] = {}  # by address

    @property
    def device_name(self) -> str:
        """The device in Peerway's words: "host", "cuda:1"."""
        return "host"

    def chunk(self, dtype: torch.dtype, parts: int) -> int:
        """The largest number of elements of each of `parts` parts that are moved at once. In bytes it is the
        same for all types.
        """
        return max(self.largest_chunk // parts // 16, 1) * 16 // int(dtype.itemsize)

    def prepared(self, key: Key) -> Prepared:
        """The plan for the key, which is made if there is none yet: then the call is collective."""
        exact = self._rounded(key)
        if exact not in self._prepared:
            self._check_making(exact)
            self.team.barrier(self.seconds)  # a late rank has the group's time limit, not that of plans
            self._prepared[exact] = self._make(exact)
        return self._prepared[exact]

    def find(self, key: Key) -> Prepared | None:
        """The plan for the key, if it was made."""
        return self._prepared.get(self._rounded(key))

    def _rounded(self, key: Key) -> Key:
        """The key of the plan that serves a key."""
        fine = key._replace(elements=rounded(key.elements))
        if fine in self._prepared or len(self._prepared) < FINE_PLANS or not key.elements:
            return fine
        return key._replace(elements=power_of_two(key.elements))

    def place(self, key: Key) -> tuple[Any, torch.Tensor]:
        """The plan for the key and the memory of its result, of as many elements as the key has. It is kept
        for the next call, as most calls have the sizes of earlier ones.
        """
        known = self._places.get(key)
        if known is None:
            if len(self._places) >= MOST_PLACES:
                self._places.clear()
            prepared = self.prepared(key)
            known = self._places[key] = prepared.plan, prepared.to[: key.elements]
        return known

    def run(self, plan: Any) -> None:
        """Starts and finishes a plan: on the host here and now, on a GPU in the current stream."""
        plan._core.start()
        plan._core.finish(self.seconds)

    @abstractmethod
    def run_between(self, plan: Any, before: Copy, after: Copy) -> bool:
        """Runs a plan of the core between two copies, after the collectives before it: on the host here and
        now, on a GPU in the program's stream. Returns False, and does nothing, where submit() has to see to
        that order.
        """

    @abstractmethod
    def submit(
        self,
        call: Callable[[], None],
        tensors: Sequence[torch.Tensor],
        outputs: Sequence[torch.Tensor],
        title: Title,
        waits: bool = False,
    ) -> Work | None:
        """Begins a collective, which `call` carries out on `tensors`, after those before it. `waits`: whether
        the caller will wait at once; then there is no work if nothing is left to wait for. The result of the
        work is `outputs`.
        """

    @abstractmethod
    def transfer(self, peer: int, sends: bool, tensor: torch.Tensor, title: Title, tag: int) -> Work:
        """Begins to send a tensor to a rank, or to receive it from there."""

    @abstractmethod
    def copy(self, to: torch.Tensor, source: torch.Tensor, title: Title) -> Work:
        """Copies a tensor within this rank."""

    @abstractmethod
    def check(self) -> None:
        """Raises the error that cancelled an operation of this group, unless its work reports it."""

    def allocate(self, bytes: int) -> torch.Tensor:
        """Memory of Peerway as a tensor of uint8."""
        region = self.ctx.allocate(self.device_name, bytes)
        tensor = self._tensor_over(region)
        self._regions[tensor.data_ptr()] = region
        return tensor

    def region_of(self, memory: torch.Tensor) -> Region:
        """The region of memory that allocate() gave."""
        return self._regions[memory.data_ptr()]

    def adopt(self, plan: Any) -> None:
        """Gives a plan the time limit of the group."""
        plan.set_timeout(self.seconds)
        self._plans.append(plan)

    def set_time_limit(self, timeout: timedelta) -> None:
        """Changes the time limit of each operation."""
        self.seconds = timeout.total_seconds()
        for plan in self._plans:
            plan.set_timeout(self.seconds)

    def abort(self) -> None:
        """Ends the engine at once. Operations that go on end with an error."""
        self._end()

    def close(self) -> None:
        """Ends the engine, once no rank uses its plans any more. Collective, unless a rank was lost."""
        try:
            if not self.ctx._core.closed:
                self.team.barrier(self.seconds)
        finally:
            self._end()

    def _end(self) -> None:
        self.ctx.close()
        self.team.close()
        for kept in (self._plans, self._prepared, self._places, self._memory, self._regions, self.channels):
            kept.clear()

    def _tensor_over(self, region: Region) -> torch.Tensor:
        return torch.from_numpy(region.array())

    @abstractmethod
    def _check_making(self, key: Key) -> None:
        """Raises InvalidArgument where no plan can be made."""

    def _staged(self, name: str, dtype: torch.dtype, count: int) -> torch.Tensor:
        """`count` elements at the start of the memory of this name, which all plans share: they follow one
        another. It grows; the plans before keep what they have.
        """
        needed = count * dtype.itemsize
        memory = self._memory.get(name)
        if memory is None or memory.numel() < needed:
            memory = self._memory[name] = self.allocate(max(power_of_two(needed), 4096))
        return memory[:needed].view(dtype)

    def _make(self, key: Key) -> Prepared:
        whole = key.elements * self.size
        nothing = torch.empty(0, dtype=key.dtype)
        to = source = nothing
        if key.kind == "barrier":
            plan = self.ctx.barrier(self.device_name)
        elif key.kind == "all_reduce":
            to = self._staged("to", key.dtype, key.elements)
            plan = self.ctx.all_reduce(to, None, key.op)
        elif key.kind == "broadcast":
            to = self._staged("to", key.dtype, key.elements)
            plan = self.ctx.broadcast(to, key.root)
        elif key.kind == "all_gather":
            to = self._staged("to", key.dtype, whole)
            plan = self.ctx.all_gather(to)
        elif key.kind == "reduce_scatter":
            to = self._staged("to", key.dtype, key.elements)
            source = self._staged("source", key.dtype, whole)
            plan = self.ctx.reduce_scatter(to, source, key.op)
        else:
            to = self._staged("to", key.dtype, whole)
            source = self._staged("source", key.dtype, whole)
            plan = self.ctx.all_to_all(to, source)
        self.adopt(plan)
        return Prepared(plan, key.elements, to, source)


def _meet(store: Any, rank: int, size: int, timeout: timedelta) -> None:
    """Waits for all ranks at a store of torch.distributed: a late one has the group's time limit."""
    store.set(f"rank {rank}", "here")
    store.wait([f"rank {each}" for each in range(size)], timeout)


def _broadcast_by(store: Any, rank: int) -> Callable[[memoryview], None]:
    """A broadcast from rank 0 through a store of torch.distributed."""
    number = 0

    def broadcast(data: memoryview) -> None:
        nonlocal number
        key = f"peerway/{number}"
        number += 1
        if rank == 0:
            store.set(key, bytes(data).hex())
        else:
            data[:] = bytes.fromhex(store.get(key).decode())

    return broadcast
