"""Collectives: plans in which all ranks of a group take part.

total = ctx.all_reduce(gradients, op="sum")            # in place; every rank calls it
for _ in range(steps):
    compute(gradients); total.start(stream); total.finish(stream)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from peerway import _core
from peerway._arguments import collectives
from peerway._arguments.collectives import Array, Group, Request
from peerway._arguments.validation import device as split_device
from peerway.errors import Error
from peerway.memory import Region
from peerway.operations import Operations
from peerway.plan import Plan


class Collective(Plan):
    """The plan of a collective, made by a method of Context. All ranks of its group start and finish it, like
    any plan.
    """

    def __init__(self, core: _core.Plan, device: str, keep: object, regions: Sequence[Region]) -> None:
        super().__init__(core, device, keep)
        self._regions = regions

    def all_reduce_handle(self) -> bytes:
        """The pw_all_reduce_handle, as bytes, with which kernels combine the elements of an all-reduce
        themselves (peerway/device/all_reduce.cuh). Such an all-reduce is used only through its handle or only
        by start and finish.

        Raises Unsupported if this is no all-reduce of GPU memory that is one-shot by packets or lines.
        """
        return self._core.all_reduce_handle()

    def close(self) -> None:
        """Ends the collective and releases its arrays. Do not call it between a start and its finish. Closing
        twice does nothing.
        """
        super().close()
        for region in self._regions:
            region.close()


class Collectives(Operations):
    """The collectives of a Context, which inherits them.

    Each method makes a plan in which all ranks of a group take part, and all of them call it: `ranks`, in
    the same order at all of them, or all ranks. Arrays are those of any library without gaps, and are used
    without a copy, as elements in the order of their memory. `to` and `source` must not overlap, except as
    the methods say.
    """

    _rank: int
    _size: int

    def all_reduce(
        self,
        to: object,
        source: object = None,
        op: str = "sum",
        ranks: Sequence[int] | None = None,
        order: str = "group",
    ) -> Collective:
        """Makes a plan after which `to` has, at every rank, the elements of `source` of all ranks combined.
        Without `source` it works in place. `op` is "sum", "min", "max", "prod", "and" or "or".

        With order="group" operands are combined one after another, in the order of the group, so that every
        method and device gives the same bits. With order="any" they are combined as the method does it that
        is expected to be fastest; all ranks and all starts still get the same bits.
        """
        return self._collective(ranks, lambda _: collectives.all_reduce(to, source, op, order))

    def reduce_scatter(
        self,
        to: object,
        source: object,
        op: str = "sum",
        counts: Sequence[int] | None = None,
        ranks: Sequence[int] | None = None,
        order: str = "group",
    ) -> Collective:
        """Makes a plan after which `to` has this rank's part of the elements of `source` of all ranks
        combined. `counts` has the number of elements of each rank's part; by default all are as long as `to`.
        `to` may be this rank's part of `source`. `order` is that of all_reduce().
        """
        return self._collective(
            ranks, lambda group: collectives.reduce_scatter(group, to, source, op, order, counts)
        )

    def all_gather(
        self,
        to: object,
        source: object = None,
        counts: Sequence[int] | None = None,
        ranks: Sequence[int] | None = None,
    ) -> Collective:
        """Makes a plan after which `to` has `source` of every rank, in the order of the group. `counts` has
        the number of elements of each rank; by default all have as many. Without `source`, the rank's own
        part of `to` is its source.
        """
        return self._collective(ranks, lambda group: collectives.all_gather(group, to, source, counts))

    def broadcast(self, array: object, root: int = 0, ranks: Sequence[int] | None = None) -> Collective:
        """Makes a plan after which `array` has, at every rank, what it has at rank `root`."""
        return self._collective(ranks, lambda group: collectives.broadcast(group, array, root))

    def all_to_all(
        self,
        to: object,
        source: object,
        counts: Sequence[int] | None = None,
        receive_counts: Sequence[int] | None = None,
        ranks: Sequence[int] | None = None,
    ) -> Collective:
        """Makes a plan after which `to` has a part from each rank, in the order of the group. `counts` has
        the number of elements that this rank sends to each rank, `receive_counts` those that it receives; by
        default all parts are equal.
        """
        return self._collective(
            ranks, lambda group: collectives.all_to_all(group, to, source, counts, receive_counts)
        )

    def barrier(self, device: str = "host", ranks: Sequence[int] | None = None) -> Collective:
        """Makes a plan whose finish ends when all ranks have started it. On a GPU, ranks wait in the order of
        their streams. (team.barrier() needs no plan, and takes longer.)
        """
        return self._collective(ranks, lambda _: collectives.barrier(device))

    def _collective(self, ranks: Sequence[int] | None, request_of: Callable[[Group], Request]) -> Collective:
        """Makes what `request_of` returns for the group. If this rank refuses its arguments, all ranks of the
        group raise.
        """
        group = collectives.group_of(ranks, self._rank, self._size)
        chosen = None if ranks is None else group.ranks
        regions: dict[int, Region] = {}  # by the id of the array
        try:
            request = request_of(group)
            numbers = request.numbers(chosen)
            for array in request.arrays():
                regions[id(array)] = self._region_of(array)
        except BaseException as error:  # even of another library: the other ranks must hear of it
            _close(regions.values())
            with suppress(Error):
                _core.refuse_collective(self._core, chosen, str(error).removeprefix("peerway: "))
            raise
        to, source = (regions.get(id(array)) for array in (request.to, request.source))
        offset = request.source_offset * request.source.layout.item if request.source else 0
        try:
            core = _core.make_collective(
                self._core,
                numbers,
                None if to is None else to._core,
                None if source is None else source._core,
                offset,
                *split_device(request.device),
            )
        except BaseException:
            _close(regions.values())
            raise
        device = next((region.device for region in regions.values()), request.device)
        keep = [array.layout.keep for array in request.arrays()]
        return self._keep(Collective(core, device, keep, list(regions.values())))

    def _region_of(self, array: Array) -> Region:
        layout = array.layout
        return Region(self._core.register(layout.address, layout.extent_bytes, layout.read_only), layout.keep)


def _close(regions: Iterable[Region]) -> None:
    for region in regions:
        region.close()
